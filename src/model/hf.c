/* Opening a checkpoint: which scheme, which prefix, what becomes of every tensor.  Weights are asked for by the model
 * that config.json, a recipe or the shapes describe, so that a wrong description and a wrong tensor are the same one line. */
#include "model/hf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/hf_impl.h"

static bool there(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s", folder, name);
    return taut_file_exists(path);
}

/* A file of tensors that has no word of ours in it. */
static bool is_foreign(const char *path)
{
    taut_safetensors *st = NULL;
    if (taut_safetensors_open(&st, path)) return false;
    const bool foreign = !taut_safetensors_meta(st, "taut.version") && !taut_safetensors_meta(st, "taut.recipe");
    taut_safetensors_close(st);
    return foreign;
}

bool taut_hf_is(const char *path)
{
    static const char *const ends[] = { ".onnx", ".index.json", ".pt", ".pth", ".bin", ".ckpt", ".pkl" };
    char file[4096];
    struct stat info;
    const size_t len = strlen(path);
    if (stat(path, &info) != 0) return false;
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    if (S_ISDIR(info.st_mode))
        return there(path, "/config.json") || there(path, "/model.safetensors.index.json") ||
               there(path, "/pytorch_model.bin") || is_foreign(file);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (len > strlen(ends[i]) && strcmp(path + len - strlen(ends[i]), ends[i]) == 0) return true;
    return is_foreign(path);
}

void taut_hf_note(taut_hf *hf, const char *line)
{
    TAUT_CHECK(hf->note_count < 12, "hf: too many notes");
    hf->notes[hf->note_count++] = line;
}

void taut_hf_leave(taut_hf *hf, const taut_shard_tensor *t, const char *why)
{
    hf->why[t - taut_shards_at(hf->shards, 0)] = why;
}

/* config.json, where there is one; without a model_type it is not Hugging Face's. */
static taut_status read_config(taut_hf *hf)
{
    if (!taut_hf_json_there(hf, "config.json")) return TAUT_OK;
    const taut_status s = taut_hf_json(&hf->config, hf, "config.json");
    if (s || !taut_hf_has(hf, "model_type")) return s;
    hf->type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(hf->config, "model_type"));
    if (!hf->type) return taut_fail(TAUT_BAD_FILE, "%s/config.json: no model_type", hf->folder);
    char word[64];
    snprintf(word, sizeof word, "|%.60s|", hf->type);
    for (int i = 0; i < HF_SCHEMES; i++)
        if (taut_hf_schemes[i].types && strstr(taut_hf_schemes[i].types, word)) return TAUT_OK;
    return taut_fail(TAUT_BAD_FILE,
                     "%s/config.json: model_type %.40s is none that taut reads (gpt2, bert, roberta, vit, deit)",
                     hf->folder, hf->type);
}

/* The nodes of a graph that nobody runs, at least by their kinds. */
static taut_status check_nodes(const taut_hf *hf)
{
    const taut_onnx *onnx = taut_shards_onnx(hf->shards);
    const char *other = onnx ? taut_onnx_other_node(onnx, hf->scheme->nodes) : NULL;
    if (!other) return TAUT_OK;
    return taut_fail(TAUT_BAD_FILE, "%s: its graph has a node %.40s, which a %s model has not", hf->folder, other,
                     hf->type);
}

/* Who said what a key is, of those that no shape tells. */
enum { YOU, RECIPE, CONFIG, NOBODY, SAYERS };
static int sayer(const taut_hf *hf, const char *key)
{
    const size_t len = strlen(key);
    const bool heads = strcmp(key, "model.heads") == 0, file = hf->config && taut_hf_has(hf, "model_type");
    for (int i = 0; i < hf->ask->sets; i++)
        if (strncmp(hf->ask->set[i], key, len) == 0 && strchr(" =", hf->ask->set[i][len])) return YOU;
    return hf->ask->recipe ? RECIPE : file || heads ? CONFIG : NOBODY;
}

/* A wrong one of these fits every tensor and makes another function: so they are said. */
static void note_told(taut_hf *hf, const taut_config *cfg)
{
    static const char *const keys[] = { "model.heads", "model.norm_place", "model.activation", "model.norm_eps" },
                             *const says[] = { "as you said", "as the recipe says", "as config.json says",
                                               "assumed (--set KEY=VALUE says otherwise)" };
    const char *key, *value;
    size_t used = (size_t)snprintf(hf->told, sizeof hf->told, "no tensor tells");
    for (int who = 0, any = 0; who < SAYERS; who++, any = 0) {
        for (int i = 0; i < 4; i++)
            for (int k = 0; (key = taut_config_answer(cfg, k, &value)); k++)
                if (value && strcmp(key, keys[i]) == 0 && sayer(hf, key) == who && used < sizeof hf->told)
                    used += (size_t)snprintf(hf->told + used, sizeof hf->told - used, "%s %s = %.16s",
                                             any++       ? ","
                                             : used > 16 ? ";"
                                                         : "",
                                             key, value);
        if (any && used < sizeof hf->told)
            used += (size_t)snprintf(hf->told + used, sizeof hf->told - used, ": %s", says[who]);
    }
    taut_hf_note(hf, hf->told);
}

/* A recipe through its own reader, so that every key is resolved and checked. */
static taut_status read_spec(taut_hf *hf, taut_config *cfg, const char *name)
{
    for (int i = 0; i < hf->ask->sets; i++) {
        const taut_status s = taut_config_set(cfg, hf->ask->set[i]);
        if (s) return s;
    }
    if (!taut_config_has(cfg, "model.heads"))
        return taut_fail(TAUT_BAD_CONFIG, "%s: no shape tells how many heads a block has: --set model.heads=N says it",
                         hf->folder);
    (void)taut_config_text(cfg, "data.source", "none"); /* whoever has data for it names them */
    (void)taut_config_real(cfg, "data.val_fraction", 1, 0, 1);
    const taut_status relation = taut_model_spec_read(&hf->spec, cfg);
    if (relation) return taut_fail(relation, "%s: %s", name, taut_last_error());
    taut_status s = taut_config_finish(cfg);
    if (!s && !(hf->recipe = taut_config_print(cfg))) s = taut_no_memory(name);
    if (!s) note_told(hf, cfg);
    return s;
}

/* The [model] section: as it is given, from config.json, or from the shapes of the tensors. */
static taut_status read_recipe(taut_hf *hf)
{
    char text[2048], name[4096];
    const char *given = hf->ask->recipe;
    const bool said = hf->config && taut_hf_has(hf, "model_type");
    taut_config *cfg = NULL;
    snprintf(name, sizeof name, "%s", given ? given : said ? "config.json" : hf->folder);
    taut_status s = given  ? taut_config_open(&cfg, given)
                    : said ? hf->scheme->recipe(hf, text, sizeof text)
                           : taut_hf_sizes(hf, text, sizeof text);
    if (!s && !given) s = taut_config_parse(&cfg, text, name);
    if (!s) s = read_spec(hf, cfg, name);
    taut_config_free(cfg);
    return s;
}

/* Rows of the embedding; 0 for a model that reads images. */
static taut_status count_tokens(taut_hf *hf)
{
    char name[HF_NAME];
    if (!taut_arch_reads_tokens(hf->spec.arch)) return TAUT_OK;
    const taut_shard_tensor *t = taut_hf_at(hf, HF_EMBED, false, 0);
    if (!t)
        return taut_fail(TAUT_BAD_FILE, "%s: no embedding: neither %s nor what else such a program calls it",
                         hf->folder, taut_hf_name(name, hf, HF_EMBED, false, 0));
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
void taut_hf_judge(taut_hf *hf)
{
    static const taut_hf_role heads[] = { HF_TRANSFORM, HF_TRANSFORM_NORM, HF_HEAD };
    for (int i = 0; hf->spec.headless && i < 6; i++) {
        const taut_shard_tensor *t = taut_hf_at(hf, heads[i / 2], i % 2, 0);
        if (t) taut_hf_leave(hf, t, "the head, which model.head = none leaves out");
    }
    for (int i = 0; i < taut_shards_count(hf->shards); i++) {
        if (!hf->why[i] || *hf->why[i]) continue;
        const char *name = taut_shards_at(hf->shards, i)->tensor->name, *only = hf->ask->prefix;
        if (only && strncmp(name, only, strlen(only)) != 0) hf->why[i] = "outside of --prefix";
        for (const taut_hf_idle *d = hf->scheme->idle; d && d->part; d++)
            if (strstr(name, d->part)) hf->why[i] = d->why;
    }
}

static taut_status place_tensors(taut_hf *hf)
{
    taut_status s = read_recipe(hf);
    if (!s) s = count_tokens(hf);
    if (!s) s = taut_model_create(&hf->model, &hf->spec, hf->tokens, hf->recipe, "", taut_kernels_find("cpu"));
    if (!s) s = taut_hf_check_maps(hf);
    if (!s) s = taut_hf_check_shapes(hf);
    if (!s) s = check_tokens(hf);
    if (!s) taut_hf_judge(hf);
    return s;
}

/* The caller's maps, which are asked for as long as weights are loaded. */
static taut_status copy_maps(taut_hf *hf)
{
    hf->map = taut_calloc((size_t)hf->ask->maps + 1, sizeof *hf->map);
    if (!hf->map) return taut_no_memory(hf->folder);
    for (int i = 0; i < hf->ask->maps; i++) {
        const char *equal = strchr(hf->ask->map[i], '=');
        if (!equal || equal == hf->ask->map[i] || !equal[1] || strlen(hf->ask->map[i]) >= HF_NAME / 2)
            return taut_fail(TAUT_BAD_CONFIG, "--map %.80s: it is MINE=THEIRS, two names of weights", hf->ask->map[i]);
        if (!(hf->map[i] = taut_strdup(hf->ask->map[i]))) return taut_no_memory(hf->folder);
        hf->maps++;
    }
    return TAUT_OK;
}

taut_status taut_hf_begin(taut_hf *hf, const char *path)
{
    struct stat info;
    const char *slash = strrchr(path, '/');
    const bool file = stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
    hf->folder = taut_strdup(path);
    hf->beside = taut_strdup(file && !slash ? "." : path);
    if (!hf->folder || !hf->beside) return taut_no_memory(path);
    if (file && slash) hf->beside[slash - path] = 0;
    taut_status s = copy_maps(hf);
    if (!s && !hf->ask->recipe) s = read_config(hf);
    if (!s) s = taut_shards_open(&hf->shards, path);
    const int count = s ? 0 : taut_shards_count(hf->shards);
    if (!s && !(hf->why = taut_calloc((size_t)count + 1, sizeof *hf->why))) s = taut_no_memory(path);
    for (int i = 0; !s && i < count; i++) hf->why[i] = "";
    if (!s) s = taut_hf_find_scheme(hf);
    if (!s) s = check_nodes(hf);
    if (!s) s = place_tensors(hf);
    return s;
}

taut_status taut_hf_open(taut_hf **out, const char *path, const taut_hf_ask *ask)
{
    static const taut_hf_ask nothing = { 0 };
    *out = NULL;
    taut_hf *hf = taut_calloc(1, sizeof *hf);
    if (!hf) return taut_no_memory(path);
    hf->ask = ask ? ask : &nothing;
    const taut_status s = taut_hf_begin(hf, path);
    hf->ask = NULL;
    if (s)
        taut_hf_close(hf);
    else
        *out = hf;
    return s;
}

void taut_hf_close(taut_hf *hf)
{
    if (!hf) return;
    for (int i = 0; i < hf->maps; i++) free(hf->map[i]);
    free(hf->map);
    free(hf->folder);
    free(hf->beside);
    cJSON_Delete(hf->config);
    taut_shards_close(hf->shards);
    taut_model_free(hf->model);
    free(hf->why);
    free(hf->recipe);
    free(hf);
}

int64_t taut_hf_tokens(const taut_hf *hf) { return hf->tokens; }

const char *taut_hf_folder(const taut_hf *hf) { return hf->beside; }
