/* Every key of a recipe, found by asking all that can be asked: no list to keep, but for what keys mean (keys.def). */
#ifndef TAUT_TRAIN_KEYS_H
#define TAUT_TRAIN_KEYS_H
#include <cjson/cJSON.h>

#include "train/recipe.h"

/* recipe.c: asks for every key of a recipe, without a look at data. */
taut_status taut_recipe_ask(taut_recipe *, taut_config *) TAUT_MUST_USE;
/* For config_list.h: who else would ask for a key that this recipe does not. */
bool taut_key_elsewhere(char *to, size_t room, const char *key);
/* [{ key, type, wants, default, meaning, used_by }], by section; used_by in words, "" for all. */
taut_status taut_recipe_keys(cJSON **out) TAUT_MUST_USE;
#endif
