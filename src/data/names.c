#include "data/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "data/table.h"

int64_t taut_names_find(const taut_names *n, const char *name)
{
    for (int64_t i = 0; i < n->count; i++)
        if (strcmp(n->name[i], name) == 0) return i;
    return -1;
}

static taut_status add(taut_names *n, const char *name, const char *key)
{
    if (!name || !*name) return taut_fail(TAUT_BAD_CONFIG, "%s wants names with commas between them", key);
    if (taut_names_find(n, name) >= 0) return taut_fail(TAUT_BAD_CONFIG, "%s names '%.60s' twice", key, name);
    char *copy = taut_strdup(name);
    if (!copy) return taut_no_memory(key);
    n->name[n->count++] = copy;
    return TAUT_OK;
}

taut_status taut_names_read(taut_names *n, const char *list, const char *key)
{
    char *text = taut_strdup(list), *rest = text;
    size_t most = 1;
    for (const char *p = list; *p; p++) most += *p == ',';
    *n = (taut_names){ taut_calloc(most, sizeof *n->name), 0 };
    taut_status s = text && n->name ? TAUT_OK : taut_no_memory(key);
    while (!s && rest) s = add(n, taut_cell_cut(&rest, ','), key);
    free(text);
    if (s) taut_names_free(n);
    return s;
}

void taut_names_free(taut_names *n)
{
    for (int64_t i = 0; i < n->count; i++) free(n->name[i]);
    free(n->name);
    *n = (taut_names){ 0 };
}

/* A recipe takes " #" and " ;" for the start of a comment. */
static bool can_stand(const char *name)
{
    for (const char *p = name; *p; p++)
        if (iscntrl((unsigned char)*p) || (strchr(";#", *p) && p > name && p[-1] == ' ')) return false;
    return true;
}

taut_status taut_names_print(char **list, char *const *name, int64_t count)
{
    size_t room = 1;
    for (int64_t i = 0; i < count; i++) {
        room += 2 * strlen(name[i]) + 3;
        if (!can_stand(name[i]))
            return taut_fail(TAUT_BAD_DATA, "column '%.60s' has a name that cannot stand in a recipe: rename it",
                             name[i]);
    }
    char *to = *list = taut_malloc(room);
    if (!to) return taut_no_memory("names");
    for (int64_t i = 0; i < count; i++) {
        if (i) *to++ = ',';
        to = taut_cell_put(to, name[i]);
    }
    *to = 0;
    return TAUT_OK;
}

static bool is_utf8(const char *text)
{
    uint32_t code;
    for (int size; *text; text += size)
        if (!(size = taut_utf8_get(&code, text, strlen(text)))) return false;
    return true;
}

char *taut_name_copy(const char *name)
{
    const bool utf8 = is_utf8(name);
    char *copy = taut_malloc(2 * strlen(name) + 1), *to = copy;
    if (!copy) return NULL;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        if (!utf8 && *p >= 0x80) *to++ = (char)(0xC0 | *p >> 6);
        *to++ = !utf8 && *p >= 0x80 ? (char)(0x80 | (*p & 0x3F)) : (char)*p;
    }
    *to = 0;
    return copy;
}
