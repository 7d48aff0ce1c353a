/* Opening a checkpoint: which family, which prefix, what becomes of every tensor.  Weights are asked for by the model
 * that config.json describes, so that a wrong config and a wrong tensor are the same one line. */
#include "model/hf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/hf_impl.h"

static const taut_hf_family_rules *const families[] = { &taut_hf_gpt2, &taut_hf_bert, &taut_hf_roberta, &taut_hf_vit,
                                                        &taut_hf_deit };
enum { FAMILIES = sizeof families / sizeof *families };

bool taut_hf_is(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", folder);
    return taut_file_exists(path);
}

void taut_hf_note(taut_hf *hf, const char *line)
{
    TAUT_CHECK(hf->note_count < 8, "hf: too many notes");
    hf->notes[hf->note_count++] = line;
}

void taut_hf_leave(taut_hf *hf, const taut_shard_tensor *t, const char *why)
{
    hf->why[t - taut_shards_at(hf->shards, 0)] = why;
}

/* ~ is the prefix, # the number. */
static void spell(char dst[256], const taut_hf *hf, const char *from, int number)
{
    size_t used = 0;
    for (; *from && used < 200; from++) {
        if (*from == '~')
            used += (size_t)snprintf(dst + used, 256 - used, "%s", hf->prefix);
        else if (*from == '#')
            used += (size_t)snprintf(dst + used, 256 - used, "%d", number);
        else
            dst[used++] = *from;
    }
    dst[used] = 0;
}

const taut_shard_tensor *taut_hf_find(const taut_hf *hf, const char *from, int number)
{
    static const char *const older[][2] = { { "LayerNorm.weight", "LayerNorm.gamma" },
                                            { "LayerNorm.bias", "LayerNorm.beta" } };
    char name[256];
    spell(name, hf, from, number);
    const taut_shard_tensor *t = taut_shards_find(hf->shards, name);
    for (int i = 0; !t && i < 2; i++) {
        char *end = strstr(name, older[i][0]);
        if (!end) continue;
        strcpy(end, older[i][1]);
        t = taut_shards_find(hf->shards, name);
    }
    return t;
}

/* Is `path` the rule's name?  Then *number is its block. */
static bool matches(const char *to, const char *path, int *number)
{
    for (*number = 0; *to && *path; to++) {
        if (*to == '#') {
            char *end;
            *number = (int)strtol(path, &end, 10);
            if (end == path) return false;
            path = end;
        } else if (*to != *path++) {
            return false;
        }
    }
    return *to == *path;
}

taut_status taut_hf_source(const taut_hf_rule **rule, const taut_shard_tensor **tensor, int *number, const taut_hf *hf,
                           const taut_weight *w)
{
    char name[256];
    for (int list = 0; list < 2; list++)
        for (const taut_hf_rule *r = hf->family->rules[list]; r && r->to; r++) {
            if (!matches(r->to, w->path, number)) continue;
            *rule = r;
            *tensor = taut_hf_find(hf, r->from, *number);
            spell(name, hf, r->from, *number);
            if (*tensor) return TAUT_OK;
            return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is missing, which config.json asks for", hf->folder, name);
        }
    return taut_fail(TAUT_BAD_CONFIG, "%s: a %s model has no %s, which the recipe asks for", hf->folder, hf->type,
                     w->path);
}

static taut_status read_config(taut_hf *hf)
{
    const taut_status s = taut_hf_json(&hf->config, hf, "config.json");
    if (s) return s;
    hf->type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(hf->config, "model_type"));
    if (!hf->type) return taut_fail(TAUT_BAD_FILE, "%s/config.json: no model_type", hf->folder);
    char word[64];
    snprintf(word, sizeof word, "|%s|", hf->type);
    for (int i = 0; i < FAMILIES; i++)
        if (strstr(families[i]->types, word)) hf->family = families[i];
    if (hf->family) return TAUT_OK;
    return taut_fail(TAUT_BAD_FILE,
                     "%s/config.json: model_type %.40s is none that taut reads (gpt2, bert, roberta, vit, deit)",
                     hf->folder, hf->type);
}

/* The nodes of a graph that nobody runs, at least by their kinds. */
static taut_status check_nodes(const taut_hf *hf)
{
    const taut_onnx *onnx = taut_shards_onnx(hf->shards);
    const char *other = onnx ? taut_onnx_other_node(onnx, hf->family->nodes) : NULL;
    if (!other) return TAUT_OK;
    return taut_fail(TAUT_BAD_FILE, "%s: its graph has a node %.40s, which a %s model has not", hf->folder, other,
                     hf->type);
}

static taut_status find_prefix(taut_hf *hf)
{
    for (int i = 0; i < 3 && hf->family->prefixes[i]; i++) {
        hf->prefix = hf->family->prefixes[i];
        const taut_shard_tensor *t = taut_hf_find(hf, hf->family->key, 0);
        if (t) return TAUT_OK;
    }
    return taut_fail(TAUT_BAD_FILE, "%s: no %s in its tensors: not a %s checkpoint", hf->folder, hf->family->key + 1,
                     hf->type);
}

/* A recipe through its own reader, so that every key is resolved and checked. */
static taut_status read_spec(taut_hf *hf, taut_config *cfg, const char *name)
{
    (void)taut_config_text(cfg, "data.source", "none"); /* whoever has data for it names them */
    (void)taut_config_real(cfg, "data.val_fraction", 1, 0, 1);
    const taut_status relation = taut_model_spec_read(&hf->spec, cfg);
    if (relation) return taut_fail(relation, "%s: %s", name, taut_last_error());
    taut_status s = taut_config_finish(cfg);
    if (!s && !(hf->recipe = taut_config_print(cfg))) s = taut_no_memory(name);
    return s;
}

/* The [model] section: from config.json, or as it is given. */
static taut_status read_recipe(taut_hf *hf, const char *given)
{
    char text[2048], name[4096];
    taut_config *cfg = NULL;
    snprintf(name, sizeof name, "%s", given ? given : "config.json");
    taut_status s = given ? taut_config_open(&cfg, given) : hf->family->recipe(hf, text, sizeof text);
    if (!s && !given) s = taut_config_parse(&cfg, text, name);
    if (!s) s = read_spec(hf, cfg, name);
    taut_config_free(cfg);
    return s;
}

/* Rows of the embedding; 0 for a model that reads images. */
static taut_status count_tokens(taut_hf *hf)
{
    if (!taut_arch_reads_tokens(hf->spec.arch)) return TAUT_OK;
    const taut_shard_tensor *t = taut_hf_find(hf, hf->family->key, 0);
    if (t->tensor->rank != 2) return taut_fail(TAUT_BAD_FILE, "%s: %s is no table", hf->folder, t->tensor->name);
    hf->tokens = t->tensor->shape[0];
    return TAUT_OK;
}

/* vocab_size is not needed, but where it is there it belongs to these tensors. */
static taut_status check_tokens(const taut_hf *hf)
{
    int64_t size;
    if (hf->tokens == 0 || !taut_hf_has(hf, "vocab_size")) return TAUT_OK;
    const taut_status s = taut_hf_int(hf, &size, "vocab_size", 1, INT32_MAX);
    if (s || size == hf->tokens) return s;
    return taut_fail(TAUT_BAD_FILE, "%s/config.json: vocab_size is %lld, the embedding has %lld rows", hf->folder,
                     (long long)size, (long long)hf->tokens);
}

/* What no weight asked for: left out for a reason, or unknown. */
static void judge_the_rest(taut_hf *hf)
{
    for (int i = 0; i < taut_shards_count(hf->shards); i++) {
        if (!hf->why[i] || *hf->why[i]) continue;
        const char *name = taut_shards_at(hf->shards, i)->tensor->name;
        for (const taut_hf_idle *d = hf->family->idle; d->part; d++)
            if (strstr(name, d->part)) hf->why[i] = d->why;
    }
}

static taut_status place_tensors(taut_hf *hf, const char *recipe)
{
    taut_model *m = NULL;
    const int count = taut_shards_count(hf->shards);
    hf->why = taut_calloc((size_t)count, sizeof *hf->why);
    if (!hf->why) return taut_no_memory(hf->folder);
    for (int i = 0; i < count; i++) hf->why[i] = "";
    taut_status s = read_recipe(hf, recipe);
    if (!s) s = count_tokens(hf);
    if (!s) s = taut_model_create(&m, &hf->spec, hf->tokens, hf->recipe, "", taut_kernels_find("cpu"));
    if (!s) s = taut_hf_check_shapes(hf, m);
    if (!s) s = check_tokens(hf);
    if (!s) judge_the_rest(hf);
    taut_model_free(m);
    return s;
}

taut_status taut_hf_open(taut_hf **out, const char *folder, const char *recipe)
{
    *out = NULL;
    taut_hf *hf = taut_calloc(1, sizeof *hf);
    if (!hf || !(hf->folder = taut_strdup(folder))) {
        taut_hf_close(hf);
        return taut_no_memory(folder);
    }
    taut_status s = recipe ? TAUT_OK : read_config(hf);
    if (!s) s = taut_shards_open(&hf->shards, folder);
    if (!s && recipe) {
        hf->family = taut_shards_onnx(hf->shards) ? &taut_hf_vnncomp : &taut_hf_torch;
        hf->type = taut_shards_onnx(hf->shards) ? "vnncomp" : "torch";
    }
    if (!s) s = check_nodes(hf);
    if (!s) s = find_prefix(hf);
    if (!s) s = place_tensors(hf, recipe);
    if (s)
        taut_hf_close(hf);
    else
        *out = hf;
    return s;
}

void taut_hf_close(taut_hf *hf)
{
    if (!hf) return;
    free(hf->folder);
    cJSON_Delete(hf->config);
    taut_shards_close(hf->shards);
    free(hf->why);
    free(hf->recipe);
    free(hf);
}

int64_t taut_hf_tokens(const taut_hf *hf) { return hf->tokens; }
