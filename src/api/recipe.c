/* A recipe as taut reads it, before anything is trained. */
#include <stdio.h>
#include <stdlib.h>

#include "api/call.h"
#include "api/lookup.h"
#include "api/net.h"
#include "base/file.h"
#include "train/keys.h"
#include "train/recipe.h"
#include "train/resume.h"

/* A run that is there is one of this recipe. */
static taut_status check_run(const taut_config *cfg, const char *run)
{
    char path[4096];
    if (!run || snprintf(path, sizeof path, "%s/state.safetensors", run) >= (int)sizeof path) return TAUT_OK;
    if (!taut_file_exists(path)) return TAUT_OK;
    snprintf(path, sizeof path, "%s/recipe.ini", run);
    return taut_resume_check(cfg, path);
}

static taut_status all_keys(char **json)
{
    cJSON *keys = NULL, *o = cJSON_CreateObject();
    const taut_status s = taut_recipe_keys(&keys);
    if (!s) cJSON_AddItemToObject(o, "keys", keys);
    return taut_json_out(json, o, s);
}

taut_status taut_recipe_json(char **json, const char *recipe, const taut_recipe_options *options)
{
    taut_recipe_options o;
    taut_recipe r;
    taut_config *cfg = NULL;
    NEED(json);
    *json = NULL;
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s && !recipe) return all_keys(json);
    if (!s) s = taut_recipe_open(&cfg, recipe, o.overrides, o.count);
    if (!s) s = taut_recipe_read(&r, cfg);
    if (!s) s = check_run(cfg, o.run);
    cJSON *found = s ? NULL : cJSON_CreateObject(), *values = cJSON_AddObjectToObject(found, "values");
    const char *key, *value;
    for (int i = 0; !s && (key = taut_config_answer(cfg, i, &value)); i++)
        if (value) cJSON_AddStringToObject(values, key, value);
    taut_config_free(cfg);
    return taut_json_out(json, found, s);
}
