/* A recipe on record: what was overridden when it was first used, and whether the one of today is the same.  Overrides stand
 * as comments at the head of a printed recipe, so that people can read them and a recipe stays a recipe. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/config_impl.h"

static const char mark[] = "# --set ";

char *taut_config_print_sets(const taut_config *cfg)
{
    size_t room = 1;
    for (int i = 0; i < cfg->givens; i++)
        if (cfg->given[i].by == TAUT_GIVEN_SET)
            room += sizeof mark + strlen(cfg->given[i].key) + strlen(cfg->given[i].value) + 2;
    char *text = taut_malloc(room), *p = text;
    if (!text) return NULL;
    *p = 0;
    for (int i = 0; i < cfg->givens; i++)
        if (cfg->given[i].by == TAUT_GIVEN_SET)
            p += sprintf(p, "%s%s=%s\n", mark, cfg->given[i].key, cfg->given[i].value);
    return text;
}

/* One line of a record; an override that was given now wins. */
static taut_status take_set(taut_config *cfg, const char *line, size_t len)
{
    char *copy = taut_strdup(line);
    if (!copy) return taut_no_memory(cfg->name);
    copy[len] = 0;
    char *equal = strchr(copy, '=');
    if (equal) *equal = 0;
    const taut_config_given *g = taut_config_find(cfg, copy);
    if (equal) *equal = '=';
    const taut_status s = g && g->by == TAUT_GIVEN_SET ? TAUT_OK : taut_config_set(cfg, copy);
    free(copy);
    return s;
}

taut_status taut_config_take_sets(taut_config *cfg, const char *text)
{
    taut_status s = TAUT_OK;
    for (size_t len; !s && *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        if (strncmp(text, mark, sizeof mark - 1) == 0)
            s = take_set(cfg, text + sizeof mark - 1, len - (sizeof mark - 1));
    }
    return s;
}

static bool is_in(const char *key, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(key, *list) == 0) return true;
    return false;
}

const char *taut_config_differs(const taut_config *now, const taut_config *record, const char *const *may,
                                const char *value[2])
{
    for (int i = 0; i < now->askeds; i++) {
        const taut_config_asked *a = &now->asked[i];
        const taut_config_given *g = taut_config_find(record, a->key);
        const char *old = g ? g->value : a->def; /* a key that is younger than the record */
        if (!a->value || is_in(a->key, may) || (old && strcmp(old, a->value) == 0)) continue;
        value[0] = a->value, value[1] = old ? old : "";
        return a->key;
    }
    for (int i = 0; i < record->givens; i++) {
        const taut_config_given *g = &record->given[i];
        bool asked = is_in(g->key, may);
        for (int j = 0; j < now->askeds && !asked; j++) asked = strcmp(now->asked[j].key, g->key) == 0;
        if (asked) continue;
        value[0] = NULL, value[1] = g->value;
        return g->key;
    }
    return NULL;
}
