/* Asking a recipe.  Each question leaves its key, default and answer in a list: the list is what makes a
 * key known, and what the resolved recipe is printed from. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/config_impl.h"
#include "base/number.h"

static bool same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static bool copy_text(char **copy, const char *text)
{
    *copy = text ? taut_strdup(text) : NULL;
    return *copy || !text;
}

/* Returns the stored answer, which lives as long as cfg; NULL without memory. */
static const taut_config_asked *record(taut_config *cfg, const char *key, const char *def, const char *value,
                                       const char *type, const char *what)
{
    for (int i = 0; i < cfg->askeds; i++) {
        taut_config_asked *a = &cfg->asked[i];
        if (strcmp(a->key, key) != 0) continue;
        if (!same_text(a->def, def))
            taut_config_note(cfg, TAUT_BAD_CONFIG, "%s: %s has two defaults, \"%s\" and \"%s\"", cfg->name, key,
                             a->def ? a->def : "", def ? def : "");
        return a;
    }
    taut_config_asked *more = taut_realloc(cfg->asked, sizeof *more * ((size_t)cfg->askeds + 1));
    if (more) cfg->asked = more;
    taut_config_asked a = { .want.type = type };
    snprintf(a.want.what, sizeof a.want.what, "%s", what);
    if (!more || !copy_text(&a.key, key) || !copy_text(&a.def, def) || !copy_text(&a.value, value)) {
        free(a.key);
        free(a.def);
        free(a.value);
        taut_config_note_memory(cfg);
        return NULL;
    }
    more[cfg->askeds] = a;
    return &more[cfg->askeds++];
}

static taut_config_given *look(taut_config *cfg, const char *key)
{
    TAUT_CHECK(taut_config_key_legal(key), "a key is section.key");
    taut_config_given *g = taut_config_find(cfg, key);
    if (g) g->used = true;
    return g;
}

/* Where a value comes from, before its key in a line: an override is named without dashes, which are the program's. */
static const char *origin(char room[280], const taut_config *cfg, const taut_config_given *g)
{
    if (g->by == TAUT_GIVEN_SET) return "set ";
    snprintf(room, 280, "%.270s: ", g->by == TAUT_GIVEN_DATA ? "the data" : cfg->name);
    return room;
}

/* what: "a whole number from 1 to 10" */
static void refuse(taut_config *cfg, const taut_config_given *g, const char *what)
{
    char room[280];
    taut_config_note(cfg, TAUT_BAD_CONFIG, "%s%s = \"%s\" is not %s", origin(room, cfg, g), g->key, g->value, what);
}

/* A default may be computed from other keys, so an illegal one is a problem of the recipe, not a bug. */
static void refuse_default(taut_config *cfg, const char *key, const char *def, const char *what)
{
    taut_config_note(cfg, TAUT_BAD_CONFIG, "%s: %s is not given, and its default \"%s\" is not %s", cfg->name, key, def,
                     what);
}

int64_t taut_config_int(taut_config *cfg, const char *key, int64_t def, int64_t lo, int64_t hi)
{
    const taut_config_given *g = look(cfg, key);
    char what[96], def_text[32], value_text[32];
    if (hi == INT64_MAX)
        snprintf(what, sizeof what, "a whole number of at least %" PRId64, lo);
    else
        snprintf(what, sizeof what, "a whole number from %" PRId64 " to %" PRId64, lo, hi);
    int64_t value = def;
    if (g && (!taut_number_int(&value, g->value) || value < lo || value > hi)) {
        refuse(cfg, g, what);
        value = def;
    }
    snprintf(def_text, sizeof def_text, "%" PRId64, def);
    snprintf(value_text, sizeof value_text, "%" PRId64, value);
    if (!g && (def < lo || def > hi)) refuse_default(cfg, key, def_text, what);
    record(cfg, key, def_text, value_text, "int", what);
    return value;
}

double taut_config_real(taut_config *cfg, const char *key, double def, double lo, double hi)
{
    const taut_config_given *g = look(cfg, key);
    char what[128], from[32], to[32], def_text[32], value_text[32];
    taut_number_print(from, lo);
    taut_number_print(to, hi);
    /* the smallest double above 0 is how a caller says "positive" */
    const char *least = lo == DBL_MIN || lo == DBL_TRUE_MIN ? "above 0" : from;
    snprintf(what, sizeof what, "a number%s%s%s%s", lo > -INFINITY ? " from " : "", lo > -INFINITY ? least : "",
             hi < INFINITY    ? " to "
             : lo > -INFINITY ? " up"
                              : "",
             hi < INFINITY ? to : "");
    double value = def;
    if (g && (!taut_number_real(&value, g->value) || !(value >= lo && value <= hi))) {
        refuse(cfg, g, what);
        value = def;
    }
    taut_number_print(def_text, def);
    taut_number_print(value_text, value);
    if (!g && !(isfinite(def) && def >= lo && def <= hi)) refuse_default(cfg, key, def_text, what);
    record(cfg, key, def_text, value_text, "real", what);
    return value;
}

bool taut_config_bool(taut_config *cfg, const char *key, bool def)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on", "0", "1" };
    const taut_config_given *g = look(cfg, key);
    int found = -1;
    for (int i = 0; g && i < 8; i++)
        if (strcmp(g->value, words[i]) == 0) found = i;
    if (g && found < 0) refuse(cfg, g, "true or false");
    const bool value = found < 0 ? def : found % 2;
    record(cfg, key, words[def], words[value], "bool", "true or false");
    return value;
}

const char *taut_config_text(taut_config *cfg, const char *key, const char *def)
{
    const taut_config_given *g = look(cfg, key);
    const char *value = g ? g->value : def;
    if (!g && def && !taut_config_value_legal(key, def))
        refuse_default(cfg, key, def, "a text that can stand in a recipe");
    const taut_config_asked *a = record(cfg, key, def, value, "text", "text");
    return a ? a->value : def;
}

int taut_config_choice(taut_config *cfg, const char *key, const char *choices, int def)
{
    const taut_config_given *g = look(cfg, key);
    char words[512];
    const char *list[64];
    int count = 0, found = def;
    TAUT_CHECK(strlen(choices) < sizeof words, "that many choices");
    strcpy(words, choices);
    for (char *p = words; p;) {
        TAUT_CHECK(count < 64, "that many choices");
        list[count++] = p;
        p = strchr(p, '|');
        if (p) *p++ = 0;
    }
    TAUT_CHECK(def >= 0 && def < count, "the default is one of the choices");
    char what[768], meant[800];
    int used = snprintf(what, sizeof what, "%s", count > 1 ? "one of " : "");
    for (int i = 0; i < count; i++)
        used += snprintf(what + used, sizeof what - (size_t)used, "%s%s", i ? ", " : "", list[i]);
    if (g) {
        for (found = 0; found < count && strcmp(list[found], g->value) != 0;) found++;
        if (found == count) {
            const char *near = taut_nearest(g->value, list, count);
            snprintf(meant, sizeof meant, "%s%s%s%s", what, near ? " (did you mean " : "", near ? near : "",
                     near ? "?)" : "");
            refuse(cfg, g, meant);
            found = def;
        }
    }
    record(cfg, key, list[def], list[found], "choice", what);
    return found;
}

/* The known key nearest to an unknown one, or the same key in another section. */
static const char *suggestion(const taut_config *cfg, const char *key)
{
    const char *best = NULL;
    for (int i = 0; i < cfg->askeds; i++) {
        const char *pair[2] = { best, cfg->asked[i].key };
        const char *near = best ? taut_nearest(key, pair, 2) : taut_nearest(key, &pair[1], 1);
        if (near) best = near;
    }
    for (int i = 0; i < cfg->askeds && !best; i++)
        if (strcmp(strchr(cfg->asked[i].key, '.'), strchr(key, '.')) == 0) best = cfg->asked[i].key;
    return best;
}

taut_status taut_config_problem(const taut_config *cfg)
{
    return cfg->status ? taut_fail(cfg->status, "%s", cfg->problem) : TAUT_OK;
}

static bool in_section(const char *key, const char *section)
{
    const size_t len = strlen(section);
    return strncmp(key, section, len) == 0 && key[len] == '.';
}

taut_status taut_config_finish_section(taut_config *cfg, const char *section)
{
    for (int i = 0; i < cfg->givens && !cfg->status; i++) {
        const taut_config_given *g = &cfg->given[i];
        if (g->used || (section && !in_section(g->key, section))) continue;
        const char *near = suggestion(cfg, g->key);
        char room[280], owner[80];
        if (cfg->elsewhere && cfg->elsewhere(owner, sizeof owner, g->key))
            taut_config_note(cfg, TAUT_BAD_CONFIG, "%s%s: unknown key here, it belongs to %s", origin(room, cfg, g),
                             g->key, owner);
        taut_config_note(cfg, TAUT_BAD_CONFIG, "%s%s: unknown key%s%s%s", origin(room, cfg, g), g->key,
                         near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    }
    return taut_config_problem(cfg);
}

taut_status taut_config_finish(taut_config *cfg) { return taut_config_finish_section(cfg, NULL); }

const char *taut_config_answer(const taut_config *cfg, int index, const char **value)
{
    if (index < 0 || index >= cfg->askeds) return NULL;
    *value = cfg->asked[index].value;
    return cfg->asked[index].key;
}

void taut_config_ask_elsewhere(taut_config *cfg, taut_config_elsewhere *who) { cfg->elsewhere = who; }

void taut_config_list(taut_config *cfg) { cfg->listing = true; }

const char *taut_config_wanted(const taut_config *cfg, int index, const char **def, taut_config_want *want)
{
    if (index < 0 || index >= cfg->askeds) return NULL;
    *def = cfg->asked[index].def;
    *want = cfg->asked[index].want;
    return cfg->asked[index].key;
}

static size_t section_len(const char *key) { return (size_t)(strchr(key, '.') - key); }

static bool same_section(const char *a, const char *b)
{
    return section_len(a) == section_len(b) && strncmp(a, b, section_len(a)) == 0;
}

char *taut_config_print(const taut_config *cfg)
{
    size_t room = 1;
    for (int i = 0; i < cfg->askeds; i++)
        if (cfg->asked[i].value) room += 2 * strlen(cfg->asked[i].key) + strlen(cfg->asked[i].value) + 16;
    char *text = taut_malloc(room), *p = text;
    if (!text) return NULL;
    *p = 0;
    for (int i = 0; i < cfg->askeds; i++) {
        const char *first = cfg->asked[i].key;
        bool done = !cfg->asked[i].value;
        for (int j = 0; j < i && !done; j++) done = cfg->asked[j].value && same_section(cfg->asked[j].key, first);
        if (done) continue;
        p += sprintf(p, "%s[%.*s]\n", p == text ? "" : "\n", (int)section_len(first), first);
        for (int j = i; j < cfg->askeds; j++) {
            const taut_config_asked *a = &cfg->asked[j];
            if (a->value && same_section(a->key, first))
                p += sprintf(p, "%s = %s\n", strchr(a->key, '.') + 1, a->value);
        }
    }
    return text;
}
