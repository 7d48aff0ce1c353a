/* For whoever lists the keys of recipes: what was asked for, of whom, and who else would have asked. */
#ifndef TAUT_BASE_CONFIG_LIST_H
#define TAUT_BASE_CONFIG_LIST_H
#include <stddef.h>

#include "base/config.h"

typedef struct {
    const char *type; /* int, real, bool, choice, text */
    char what[320];   /* "a whole number from 1 to 10", "one of adamw, muon, sgd" */
} taut_config_want;

/* From now on every key counts as given (taut_config_has), so that those are asked for too which are only where somebody names
 * them; what is not there has its default. */
void taut_config_list(taut_config *cfg);
/* What was asked for, one after the other: the key (NULL: there are no more), its default (NULL: none), what may stand there. */
const char *taut_config_wanted(const taut_config *cfg, int index, const char **def, taut_config_want *want);
/* For a key that nobody has asked for: writes which other choice would ("model.attention = window"); false: none. */
typedef bool taut_config_elsewhere(char *to, size_t room, const char *key);
void taut_config_ask_elsewhere(taut_config *cfg, taut_config_elsewhere *who);
#endif
