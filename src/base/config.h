/* Recipes: section.key = value, from an .ini text and from overrides.
 *
 * A key is known because somebody asks for it: the getters name the key, its default and its legal range,
 * and there is no other list.  Getters never fail; they answer the default and remember the first problem,
 * which taut_config_finish returns once everything has been asked for:
 *
 *     taut_config *cfg;
 *     taut_status s = taut_config_open(&cfg, "tiny.ini");
 *     if (s) return s;
 *     const int64_t steps = taut_config_int(cfg, "train.steps", 1000, 1, 1000000000);
 *     const int opt = taut_config_choice(cfg, "train.optimiser", "adamw|muon|sgd", 0);
 *     s = taut_config_finish(cfg);
 *
 * Lines are `key = value` below a `[section]`; a comment starts a line with ; or #, or follows a space.
 * Sections and keys are letters, digits, _ and -.  Numbers read and print the same in every locale. */
#ifndef TAUT_BASE_CONFIG_H
#define TAUT_BASE_CONFIG_H
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct taut_config taut_config;

/* Fail only for lack of memory or an unreadable file; problems inside the text wait for finish.
 * name stands before every problem: "tiny.ini: ...". */
taut_status taut_config_parse(taut_config **out, const char *text, const char *name) TAUT_MUST_USE;
taut_status taut_config_open(taut_config **out, const char *path) TAUT_MUST_USE;
/* "section.key=value" wins over the text and over an earlier override.  Before the first getter. */
taut_status taut_config_set(taut_config *cfg, const char *assignment) TAUT_MUST_USE;
/* The same of a key that neither gives: what data say of themselves. */
taut_status taut_config_fill(taut_config *cfg, const char *assignment) TAUT_MUST_USE;
void taut_config_free(taut_config *cfg);

int64_t taut_config_int(taut_config *cfg, const char *key, int64_t def, int64_t lo, int64_t hi);
/* Also fractions: 1/6, 8/255.  An infinite lo or hi is no limit; the value itself is always finite. */
double taut_config_real(taut_config *cfg, const char *key, double def, double lo, double hi);
bool taut_config_bool(taut_config *cfg, const char *key, bool def);               /* true false yes no on off 1 0 */
const char *taut_config_text(taut_config *cfg, const char *key, const char *def); /* lives as long as cfg */
/* The index in "adamw|muon|sgd". */
int taut_config_choice(taut_config *cfg, const char *key, const char *choices, int def);
bool taut_config_has(const taut_config *cfg, const char *key); /* was it given?  Does not make it known */

/* What the text or an override says, NULL: nothing; does not make it known.  Is nothing given at all? */
const char *taut_config_said(const taut_config *cfg, const char *key);
bool taut_config_empty(const taut_config *cfg);

/* The first problem with what was asked for so far. */
taut_status taut_config_problem(const taut_config *cfg) TAUT_MUST_USE;
/* The first problem, also a key of one section (all of them: NULL) that nobody asked for. */
taut_status taut_config_finish_section(taut_config *cfg, const char *section) TAUT_MUST_USE;
/* The first problem, also a key that nobody asked for. */
taut_status taut_config_finish(taut_config *cfg) TAUT_MUST_USE;

/* The resolved recipe: every asked key with its final value, defaults included, by section in the order
 * first asked.  Parses back to the same values, bit for bit.  The caller frees; NULL: out of memory. */
char *taut_config_print(const taut_config *cfg);

/* What was asked for, one after the other: the key (NULL: there are no more) and its value (NULL: it has none). */
const char *taut_config_answer(const taut_config *cfg, int index, const char **value);

/* A recipe on record.  print_sets: what was overridden, as comments for the head of a printed recipe (the caller frees;
 * NULL: out of memory).  take_sets: what such comments of a text say is overridden again, but for keys that are overridden
 * already; before the first getter.  differs: the first key, not in the list `may` (NULL ends it), whose value is not the
 * record's, with the value now (NULL: nobody asks for it) and then; NULL: there is none. */
char *taut_config_print_sets(const taut_config *cfg);
taut_status taut_config_take_sets(taut_config *cfg, const char *text) TAUT_MUST_USE;
const char *taut_config_differs(const taut_config *now, const taut_config *record, const char *const *may,
                                const char *value[2]);
#endif
