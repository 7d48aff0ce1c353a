/* An encoder without a head gives features.  How the tokens' become one is said by the files that sentence-transformers lays
 * beside the checkpoint: modules.json, and the folder of its pooling; without them it is the mean. */
#include <stdio.h>
#include <string.h>

#include "model/hf_impl.h"

/* The last word of "sentence_transformers.models.Pooling". */
static const char *kind_of(const cJSON *module)
{
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(module, "type"));
    const char *dot = type ? strrchr(type, '.') : NULL;
    return dot ? dot + 1 : type ? type : "without a type";
}

/* The folder of the pooling, "" if nobody names one; what is no part of a network that taut has is refused. */
static taut_status read_modules(taut_hf *hf, char folder[64])
{
    cJSON *list = NULL;
    const cJSON *module;
    snprintf(folder, 64, "%s", taut_hf_json_there(hf, "1_Pooling/config.json") ? "1_Pooling" : "");
    if (!taut_hf_json_there(hf, "modules.json")) return TAUT_OK;
    taut_status s = taut_hf_json_list(&list, hf, "modules.json");
    cJSON_ArrayForEach(module, list)
    {
        const char *kind = kind_of(module), *path = cJSON_GetStringValue(cJSON_GetObjectItem(module, "path"));
        if (strcmp(kind, "Pooling") == 0 && path && strlen(path) < 64 && *path && *path != '.' && !strpbrk(path, "/\\"))
            snprintf(folder, 64, "%s", path);
        else if (strcmp(kind, "Normalize") == 0)
            taut_hf_note(hf,
                         "features are not divided by their length, which has no Lipschitz constant (embed --unit)");
        else if (!s && strcmp(kind, "Transformer") != 0)
            s = taut_fail(TAUT_BAD_FILE, "%s/modules.json: taut has no module %.40s behind an encoder", hf->folder,
                          kind);
    }
    cJSON_Delete(list);
    return s;
}

/* "mean" or "class"; pooling_mode in newer files, one of pooling_mode_..._tokens in older ones. */
static taut_status read_mode(const char **pool, const taut_hf *hf, const char *name, const cJSON *json)
{
    static const char old[] = "pooling_mode_";
    char given[160] = "";
    const cJSON *item;
    cJSON_ArrayForEach(item, json)
    {
        const bool named = strcmp(item->string, "pooling_mode") == 0;
        const char *word = named ? cJSON_GetStringValue(item)
                           : strncmp(item->string, old, strlen(old)) == 0 && cJSON_IsTrue(item)
                               ? item->string + strlen(old)
                               : NULL;
        if (word) snprintf(given + strlen(given), sizeof given - strlen(given), "%s%.40s", *given ? ", " : "", word);
    }
    *pool = strcmp(given, "mean") == 0 || strcmp(given, "mean_tokens") == 0 ? "mean"
            : strcmp(given, "cls") == 0 || strcmp(given, "cls_token") == 0  ? "class"
                                                                            : NULL;
    if (*pool) return TAUT_OK;
    return taut_fail(TAUT_BAD_FILE, "%s/%s: pooling by %s; taut has mean and cls", hf->folder, name,
                     *given ? given : "nothing");
}

taut_status taut_hf_pooling(taut_hf *hf, const char **pool)
{
    char folder[64], name[96];
    cJSON *json = NULL;
    *pool = "mean";
    taut_status s = read_modules(hf, folder);
    snprintf(name, sizeof name, "%s/config.json", folder);
    if (!s && *folder) s = taut_hf_json(&json, hf, name);
    if (!s && *folder) s = read_mode(pool, hf, name, json);
    cJSON_Delete(json);
    if (!s)
        taut_hf_note(hf, strcmp(*pool, "mean") == 0 ? "no head: the output is its features, the mean of all tokens'"
                                                    : "no head: the output is its features, those of the first token");
    return s;
}
