/* Reading a recipe into the list of what was given: from a text, line by line through inih, and overrides. */
#include "base/config.h"

#include <ctype.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/config_impl.h"
#include "base/file.h"

/* inih cuts lines at 200 bytes and keys at 50 without a word: of a longer line it gets the key alone. */
enum { INIH_LINE = 190, LONGEST_LINE = 1 << 17, LONGEST_KEY = 48 };

void taut_config_note(taut_config *cfg, taut_status status, const char *format, ...)
{
    if (cfg->status) return;
    va_list args;
    va_start(args, format);
    vsnprintf(cfg->problem, sizeof cfg->problem, format, args);
    va_end(args);
    cfg->status = status;
}

void taut_config_note_memory(taut_config *cfg)
{
    taut_config_note(cfg, TAUT_NO_MEMORY, "out of memory: %s", cfg->name);
}

void taut_config_free(taut_config *cfg)
{
    if (!cfg) return;
    for (int i = 0; i < cfg->givens; i++) {
        free(cfg->given[i].key);
        free(cfg->given[i].value);
    }
    for (int i = 0; i < cfg->askeds; i++) {
        free(cfg->asked[i].key);
        free(cfg->asked[i].def);
        free(cfg->asked[i].value);
    }
    free(cfg->given);
    free(cfg->asked);
    free(cfg->name);
    free(cfg);
}

bool taut_config_key_legal(const char *key)
{
    const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const size_t section = strspn(key, letters);
    if (section == 0 || section > LONGEST_KEY || key[section] != '.') return false;
    const size_t rest = strspn(key + section + 1, letters);
    return rest > 0 && rest <= LONGEST_KEY && key[section + 1 + rest] == 0;
}

bool taut_config_value_legal(const char *key, const char *value)
{
    const size_t len = strlen(value);
    if (strlen(key) + len + 3 > LONGEST_LINE) return false;
    for (size_t i = 0; i < len; i++) {
        if (iscntrl((unsigned char)value[i])) return false;
        if (strchr(";#", value[i]) && (i == 0 || value[i - 1] == ' ')) return false;
    }
    return len == 0 || (value[0] != ' ' && value[len - 1] != ' ');
}

taut_config_given *taut_config_find(const taut_config *cfg, const char *key)
{
    for (int i = 0; i < cfg->givens; i++)
        if (strcmp(cfg->given[i].key, key) == 0) return &cfg->given[i];
    return NULL;
}

static bool add_given(taut_config *cfg, const char *key, const char *value, taut_config_giver by)
{
    taut_config_given *more = taut_realloc(cfg->given, sizeof *more * ((size_t)cfg->givens + 1));
    if (!more) return false;
    cfg->given = more;
    taut_config_given *g = &more[cfg->givens];
    *g = (taut_config_given){ taut_strdup(key), taut_strdup(value), by, false };
    if (!g->key || !g->value) {
        free(g->key);
        free(g->value);
        return false;
    }
    cfg->givens++;
    return true;
}

typedef struct {
    taut_config *cfg;
    const char *rest;
    int line;
    const char *value; /* of a line that is longer than inih takes, and its length; NULL: inih has it */
    size_t len;
} source;

static void malformed(taut_config *cfg, int line)
{
    taut_config_note(cfg, TAUT_BAD_CONFIG, "%s: line %d is neither \"key = value\" nor \"[section]\"", cfg->name, line);
}

/* Of a line that is too long for inih: its key to inih, its value aside; of a comment its sign. */
static bool set_aside(source *src, char *dst, size_t text)
{
    const bool comment = strchr(";#", src->rest[0]) != NULL;
    const size_t key = comment ? 1 : strcspn(src->rest, "=:\n") + 1;
    if (key > INIH_LINE || key > text) return false;
    memcpy(dst, src->rest, key);
    memcpy(dst + key, "\n", 2);
    if (!comment) src->value = src->rest + key, src->len = text - key;
    return true;
}

/* One line for inih, without its indent (inih would take it for the continuation of the line before) and
 * always with a newline. */
static char *next_line(char *dst, int room, void *stream)
{
    source *src = stream;
    if (*src->rest == 0 || src->cfg->status) return NULL;
    src->line++;
    src->value = NULL;
    src->rest += strspn(src->rest, " \t");
    const size_t len = strcspn(src->rest, "\n"), text = len > 0 && src->rest[len - 1] == '\r' ? len - 1 : len;
    for (size_t i = 0; i < text; i++) {
        if (!iscntrl((unsigned char)src->rest[i]) || src->rest[i] == '\t') continue;
        taut_config_note(src->cfg, TAUT_BAD_CONFIG, "%s: line %d has a control character", src->cfg->name, src->line);
        return NULL;
    }
    if (text > LONGEST_LINE || room < INIH_LINE + 2 || (text > INIH_LINE && !set_aside(src, dst, text))) {
        taut_config_note(src->cfg, TAUT_BAD_CONFIG, "%s: line %d is longer than %d bytes", src->cfg->name, src->line,
                         text > LONGEST_LINE ? LONGEST_LINE : INIH_LINE);
        return NULL;
    }
    if (text <= INIH_LINE) {
        memcpy(dst, src->rest, text);
        memcpy(dst + text, "\n", 2);
    }
    for (char *p = dst; *p; p++)
        if (*p == '\t') *p = ' ';
    const char *close = dst[0] == '[' ? strchr(dst, ']') : dst;
    if (!close)
        malformed(src->cfg, src->line);
    else if (*close == ']' && !strchr("\n;#", close[1 + strspn(close + 1, " ")]))
        taut_config_note(src->cfg, TAUT_BAD_CONFIG, "%s: line %d has something behind its ]", src->cfg->name,
                         src->line);
    src->rest += len + (src->rest[len] == '\n');
    return dst;
}

/* A value without blanks around it and without the comment behind it. */
static void tidy(char *value)
{
    char *end = value;
    for (char *p = value; *p; p++)
        if (*p == '\t') *p = ' ';
    const size_t blanks = strspn(value, " ");
    memmove(value, value + blanks, strlen(value + blanks) + 1);
    for (char *p = value; *p && !(strchr(";#", *p) && (p == value || p[-1] == ' ')); p++)
        if (*p != ' ') end = p + 1;
    *end = 0;
}

/* Called by inih for each pair; 1 goes on. */
static int take_pair(void *arg, const char *section, const char *name, const char *text)
{
    source *src = arg;
    taut_config *cfg = src->cfg;
    char key[2 * INIH_LINE];
    if (cfg->status) return 1;
    snprintf(key, sizeof key, "%s.%s", section, name);
    const size_t len = src->value ? src->len : strlen(text);
    char *value = taut_malloc(len + 1);
    if (!value) return taut_config_note_memory(cfg), 1;
    memcpy(value, src->value ? src->value : text, len);
    value[len] = 0;
    tidy(value);
    if (!*section)
        taut_config_note(cfg, TAUT_BAD_CONFIG, "%s: line %d: \"%s\" stands outside any [section]", cfg->name, src->line,
                         name);
    else if (!taut_config_key_legal(key))
        taut_config_note(cfg, TAUT_BAD_CONFIG, "%s: line %d: \"%s\" in [%s] is not a legal key", cfg->name, src->line,
                         name, section);
    else if (taut_config_find(cfg, key))
        taut_config_note(cfg, TAUT_BAD_CONFIG, "%s: line %d: %s is given twice", cfg->name, src->line, key);
    else if (!add_given(cfg, key, value, TAUT_GIVEN_TEXT))
        taut_config_note_memory(cfg);
    free(value);
    return 1;
}

taut_status taut_config_parse(taut_config **out, const char *text, const char *name)
{
    *out = NULL;
    taut_config *cfg = taut_calloc(1, sizeof *cfg);
    if (!cfg || !(cfg->name = taut_strdup(name))) {
        free(cfg);
        return taut_no_memory(name);
    }
    source src = { cfg, strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? text + 3 : text, 0, NULL, 0 };
    const int bad_line = ini_parse_stream(next_line, &src, take_pair, &src);
    if (bad_line > 0) malformed(cfg, bad_line);
    if (bad_line < 0 || cfg->status == TAUT_NO_MEMORY) {
        taut_config_free(cfg);
        return taut_no_memory(name);
    }
    *out = cfg;
    return TAUT_OK;
}

taut_status taut_config_open(taut_config **out, const char *path)
{
    *out = NULL;
    char *text;
    size_t len;
    taut_status status = taut_file_read(&text, &len, path);
    if (status) return status;
    if (strlen(text) != len)
        status = taut_fail(TAUT_BAD_CONFIG, "%s: not a recipe: it has a NUL byte", path);
    else
        status = taut_config_parse(out, text, path);
    free(text);
    return status;
}

const char *taut_config_said(const taut_config *cfg, const char *key)
{
    const taut_config_given *g = taut_config_find(cfg, key);
    return g ? g->value : NULL;
}

bool taut_config_empty(const taut_config *cfg) { return cfg->givens == 0 && !cfg->status; }

static taut_status give(taut_config *cfg, const char *key, const char *value, taut_config_giver by)
{
    if (!taut_config_key_legal(key))
        return taut_fail(TAUT_BAD_CONFIG, "set %s=%s: wants section.key=value", key, value);
    taut_config_given *g = taut_config_find(cfg, key);
    if (g && by == TAUT_GIVEN_DATA) return TAUT_OK;
    if (!taut_config_value_legal(key, value))
        return taut_fail(TAUT_BAD_CONFIG, "set %s: the value is too long or could not stand in a recipe", key);
    if (!g) return add_given(cfg, key, value, by) ? TAUT_OK : taut_no_memory(key);
    TAUT_CHECK(!g->used, "an override comes before the question");
    char *copy = taut_strdup(value);
    if (!copy) return taut_no_memory(key);
    free(g->value);
    g->value = copy;
    g->by = by;
    return TAUT_OK;
}

static taut_status assign(taut_config *cfg, const char *assignment, taut_config_giver by)
{
    char *copy = taut_strdup(assignment);
    if (!copy) return taut_no_memory(assignment);
    char *equals = strchr(copy, '='), *key = copy + strspn(copy, " ");
    taut_status status;
    if (!equals) {
        status = taut_fail(TAUT_BAD_CONFIG, "set %s: wants section.key=value", assignment);
    } else {
        char *end = equals, *value = equals + 1 + strspn(equals + 1, " "), *stop = value + strlen(value);
        while (end > key && end[-1] == ' ') end--;
        while (stop > value && stop[-1] == ' ') stop--;
        *end = *stop = 0;
        status = give(cfg, key, value, by);
    }
    free(copy);
    return status;
}

taut_status taut_config_set(taut_config *cfg, const char *assignment)
{
    return assign(cfg, assignment, TAUT_GIVEN_SET);
}

taut_status taut_config_fill(taut_config *cfg, const char *assignment)
{
    return assign(cfg, assignment, TAUT_GIVEN_DATA);
}

bool taut_config_has(const taut_config *cfg, const char *key)
{
    return cfg->listing || taut_config_find(cfg, key) != NULL;
}
