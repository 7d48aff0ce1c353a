/* config.json of a checkpoint: read strictly, one key at a time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/hf_impl.h"

static const cJSON *item(const taut_hf *hf, const char *key)
{
    const cJSON *o = cJSON_GetObjectItemCaseSensitive(hf->config, key);
    return cJSON_IsNull(o) ? NULL : o;
}

/* A key that is there twice: which one counts is not said anywhere.  Only the outermost object is read. */
static const char *twice(const cJSON *object)
{
    for (const cJSON *a = object->child; a; a = a->next)
        for (const cJSON *b = a->next; b; b = b->next)
            if (strcmp(a->string, b->string) == 0) return a->string;
    return NULL;
}

/* All of a file of the folder. */
static taut_status read_json(cJSON **out, char path[4096], const taut_hf *hf, const char *name)
{
    char *text = NULL;
    size_t len = 0;
    *out = NULL;
    snprintf(path, 4096, "%s/%s", hf->beside, name);
    taut_status s = taut_file_read(&text, &len, path);
    if (s) return s;
    const char *end = NULL;
    *out = cJSON_ParseWithLengthOpts(text, len, &end, false);
    size_t used = *out ? (size_t)(end - text) : 0;
    while (used < len && text[used] && strchr(" \t\r\n", text[used])) used++;
    free(text);
    if (!cJSON_IsObject(*out) && !cJSON_IsArray(*out)) return taut_fail(TAUT_BAD_FILE, "%s: no JSON object", path);
    return used < len ? taut_fail(TAUT_BAD_FILE, "%s: something stands behind the JSON object", path) : TAUT_OK;
}

taut_status taut_hf_json(cJSON **out, const taut_hf *hf, const char *name)
{
    char path[4096];
    const taut_status s = read_json(out, path, hf, name);
    if (s) return s;
    if (!cJSON_IsObject(*out)) return taut_fail(TAUT_BAD_FILE, "%s: no JSON object", path);
    const char *key = twice(*out);
    return key ? taut_fail(TAUT_BAD_FILE, "%s: %.40s is there twice", path, key) : TAUT_OK;
}

taut_status taut_hf_json_list(cJSON **out, const taut_hf *hf, const char *name)
{
    char path[4096];
    const taut_status s = read_json(out, path, hf, name);
    if (s || cJSON_IsArray(*out)) return s;
    return taut_fail(TAUT_BAD_FILE, "%s: no JSON array", path);
}

bool taut_hf_json_there(const taut_hf *hf, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", hf->beside, name);
    return taut_file_exists(path);
}

bool taut_hf_list(char dst[96], const cJSON *object, const char *key)
{
    const cJSON *n, *list = cJSON_GetObjectItemCaseSensitive(object, key);
    size_t used = 0;
    cJSON_ArrayForEach(n, list)
    {
        if (!cJSON_IsNumber(n) || used > 60) used = 96;
        if (used < 96) used += (size_t)snprintf(dst + used, 96 - used, "%s%.17g", used ? " " : "", n->valuedouble);
    }
    return used > 0 && used < 96;
}

bool taut_hf_has(const taut_hf *hf, const char *key) { return item(hf, key) != NULL; }

bool taut_hf_denies(const taut_hf *hf, const char *key) { return cJSON_IsFalse(item(hf, key)); }

taut_status taut_hf_int(const taut_hf *hf, int64_t *out, const char *key, int64_t lo, int64_t hi)
{
    const cJSON *o = item(hf, key);
    const double v = cJSON_IsNumber(o) ? o->valuedouble : NAN;
    if (!(v >= (double)lo && v <= (double)hi && v == floor(v)))
        return taut_fail(TAUT_BAD_FILE, "%s/config.json: %s is %s, not a whole number from %lld to %lld", hf->folder,
                         key, o ? "something else" : "missing", (long long)lo, (long long)hi);
    *out = (int64_t)v;
    return TAUT_OK;
}

taut_status taut_hf_real(const taut_hf *hf, double *out, const char *key, double def)
{
    const cJSON *o = item(hf, key);
    *out = o ? cJSON_GetNumberValue(o) : def;
    if (*out >= 0 && *out <= 1e6) return TAUT_OK;
    return taut_fail(TAUT_BAD_FILE, "%s/config.json: %s is no number from 0 to 1e6", hf->folder, key);
}

taut_status taut_hf_activation(const taut_hf *hf, const char **out, const char *key)
{
    static const char *const names[][2] = { { "gelu", "gelu" },
                                            { "gelu_python", "gelu" },
                                            { "gelu_new", "gelu_tanh" },
                                            { "gelu_pytorch_tanh", "gelu_tanh" },
                                            { "gelu_fast", "gelu_tanh" },
                                            { "relu", "relu" },
                                            { "silu", "silu" },
                                            { "swish", "silu" },
                                            { "tanh", "tanh" } };
    const char *word = cJSON_GetStringValue(item(hf, key));
    for (size_t i = 0; word && i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i][0]) == 0) {
            *out = names[i][1];
            return TAUT_OK;
        }
    return taut_fail(TAUT_BAD_FILE, "%s/config.json: %s is %.40s, which is no activation that taut has", hf->folder,
                     key, word ? word : "missing");
}

taut_status taut_hf_wants(const taut_hf *hf, const char *key, const char *value)
{
    const cJSON *o = item(hf, key);
    const char *word = cJSON_IsTrue(o) ? "true" : cJSON_IsFalse(o) ? "false" : cJSON_GetStringValue(o);
    if (!o || (word && strcmp(word, value) == 0)) return TAUT_OK;
    return taut_fail(TAUT_BAD_FILE, "%s/config.json: taut has no model with %s = %.40s (only %s)", hf->folder, key,
                     word ? word : "something else", value);
}
