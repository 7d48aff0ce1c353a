/* Opens whatever is called a model: a file, a run's folder, a foreign checkpoint, a built-in shape, a recipe. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/call.h"
#include "api/lookup.h"
#include "api/net.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "data/find.h"
#include "model/builtin.h"
#include "model/hf.h"

/* The characters of a text, in the order of their code points. */
static taut_status read_characters(taut_vocab **v, const char *path)
{
    char *text = NULL;
    size_t len = 0;
    taut_status s = taut_file_read(&text, &len, path);
    if (!s) s = taut_vocab_chars(v, text, len);
    free(text);
    return s;
}

/* A tokenizer as a model's file holds it: of a folder, the characters of a text, or plain bytes. */
static taut_status read_tokenizer(char **printed, int32_t *size, const char *folder)
{
    taut_vocab *v = NULL;
    struct stat st;
    const bool file = stat(folder, &st) == 0 && !S_ISDIR(st.st_mode);
    taut_status s = strcmp(folder, "bytes") == 0 ? taut_vocab_bytes(&v)
                    : file                       ? read_characters(&v, folder)
                                                 : taut_vocab_open(&v, folder);
    if (s)
        return taut_fail(s, "%s (--tokenizer DIR names a folder that has one, a text with its characters, or bytes)",
                         taut_last_error());
    *size = taut_vocab_size(v);
    *printed = taut_vocab_print(v);
    taut_vocab_free(v);
    return *printed ? TAUT_OK : taut_no_memory(folder);
}

static taut_status open_builtin(taut_net *net, const char *name, const taut_kernels *k, const taut_open_options *o)
{
    char *folder = NULL, *vocab = NULL;
    int32_t size;
    taut_status s = TAUT_OK;
    if (o->tokenizer)
        s = read_tokenizer(&vocab, &size, o->tokenizer);
    else if (taut_data_find(&folder, taut_builtin_tokenizer(name)) || read_tokenizer(&vocab, &size, folder))
        net->note = "its tokenizer is not among the data: text is read as bytes";
    if (!s) s = taut_builtin_create(&net->model, name, vocab ? vocab : "bytes", k, o->seed ? o->seed : 1);
    free(folder);
    free(vocab);
    return s;
}

static taut_hf_ask ask_of(const taut_open_options *o)
{
    return (taut_hf_ask){ o->recipe, o->prefix, o->map, o->set, o->maps, o->sets };
}

/* Has the caller said something that only a checkpoint of another program has use for? */
static bool says_foreign(const taut_open_options *o) { return o->recipe || o->prefix || o->maps || o->sets; }

static taut_status check_lists(const taut_open_options *o)
{
    bool whole = o->maps >= 0 && o->sets >= 0 && (o->map || !o->maps) && (o->set || !o->sets);
    for (int i = 0; whole && i < o->maps; i++) whole = o->map[i];
    for (int i = 0; whole && i < o->sets; i++) whole = o->set[i];
    return whole ? TAUT_OK : taut_fail(TAUT_BAD_CALL, "a list of maps or settings with NULL in it");
}

static taut_status open_checkpoint(taut_net *net, const char *folder, const taut_kernels *k, const taut_open_options *o)
{
    taut_hf *hf = NULL;
    char *vocab = NULL;
    int32_t size = 0;
    const taut_hf_ask ask = ask_of(o);
    taut_status s = taut_hf_open(&hf, folder, &ask);
    const bool text = !s && taut_hf_tokens(hf) > 0;
    if (text) s = read_tokenizer(&vocab, &size, o->tokenizer ? o->tokenizer : taut_hf_folder(hf));
    if (text && !s && size > taut_hf_tokens(hf))
        s = taut_fail(TAUT_BAD_DATA, "%s: a tokenizer of %d tokens for an embedding of %lld: not the checkpoint's own",
                      folder, (int)size, (long long)taut_hf_tokens(hf));
    if (!s) s = taut_hf_load(&net->model, hf, text ? vocab : "", o->ignore_unknown != 0, k);
    cJSON *report = s ? NULL : taut_hf_report(hf);
    if (report && text) cJSON_AddNumberToObject(report, "vocabulary", size);
    if (!s && !(net->report = report ? taut_json_text(report, false) : NULL)) s = taut_no_memory(folder);
    cJSON_Delete(report);
    free(vocab);
    taut_hf_close(hf);
    return s;
}

/* What the model's own recipe says of its data, and its vocabulary, which must fit the embedding. */
static taut_status read_about(taut_net *net, const char *path)
{
    const taut_model *m = net->model;
    const bool text = m->embed.rows > 0;
    taut_status s = text ? taut_vocab_parse(&net->vocab, m->vocab) : TAUT_OK;
    if (s) return taut_fail(s, "%s: %s", path, taut_last_error());
    s = taut_config_parse(&net->cfg, m->recipe, path);
    if (s) return s;
    taut_data_spec_read(&net->data, net->cfg);
    s = taut_data_near(&net->source, net->data.source, path);
    if (s) return s;
    if (net->source) net->data.source = net->source;
    net->data.mask_rate = taut_config_real(net->cfg, "train.mask_rate", 0.15, 1e-6, 1);
    s = taut_config_problem(net->cfg);
    const bool asks = m->spec.arch == TAUT_ARCH_ENCODER && !m->spec.headless;
    const bool mask = text && asks && taut_vocab_mask(net->vocab) < 0,
               pad = text && m->spec.arch == TAUT_ARCH_CLASSIFIER && taut_vocab_pad(net->vocab) < 0;
    if (!s && text && m->embed.rows < taut_vocab_size(net->vocab) + mask + pad)
        s = taut_fail(TAUT_BAD_FILE, "%s: its embedding has %lld rows; a vocabulary of %d%s takes %d%s", path,
                      (long long)m->embed.rows, (int)taut_vocab_size(net->vocab),
                      mask  ? " tokens and the mask"
                      : pad ? " tokens and the padding"
                            : " tokens",
                      (int)taut_vocab_size(net->vocab) + mask + pad,
                      mask && net->report ? " (--set model.head=none makes features of it, which want no mask)" : "");
    return s;
}

static taut_status finish(taut_net **out, taut_net *net, taut_status s, const char *path)
{
    if (!s) s = net ? read_about(net, path) : taut_no_memory("a model");
    if (s) {
        taut_net_free(net);
        return s;
    }
    *out = net;
    return TAUT_OK;
}

/* The model of a recipe, its weights drawn as training would draw them. */
static taut_status create(taut_net *net, taut_config *cfg, const taut_kernels *k, uint64_t seed)
{
    taut_recipe r = { 0 };
    taut_source *source = NULL;
    taut_status s = taut_recipe_read(&r, cfg);
    char *printed = s ? NULL : taut_config_print(cfg), *vocab = NULL;
    if (!s && !printed) s = taut_no_memory("the recipe");
    if (!s) s = taut_recipe_source(&source, &r.data, &r.model, NULL);
    if (!s && !(vocab = source->vocab ? taut_vocab_print(source->vocab) : taut_strdup("")))
        s = taut_no_memory("the vocabulary");
    if (!s) s = taut_model_create(&net->model, &r.model, source->task.tokens, printed, vocab, k);
    if (!s) s = taut_model_bind(net->model, false);
    if (!s) s = taut_model_init(net->model, seed ? seed : r.train.seed);
    taut_source_free(source);
    free(printed);
    free(vocab);
    return s;
}

taut_status taut_net_create(taut_net **out, const char *recipe, const char *const *overrides, int count,
                            const taut_open_options *options)
{
    taut_open_options o;
    const taut_kernels *k;
    taut_config *cfg = NULL;
    NEED(out);
    *out = NULL;
    NEED(recipe);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = taut_kernels_open(&k, o.kernels ? o.kernels : "cpu");
    if (!s) s = taut_recipe_open(&cfg, recipe, overrides, count);
    taut_net *net = s ? NULL : taut_calloc(1, sizeof *net);
    if (!s) s = net ? create(net, cfg, k, o.seed) : taut_no_memory("a model");
    taut_config_free(cfg);
    return finish(out, net, s, recipe);
}

static taut_status open_model(taut_net **out, const char *model, const taut_kernels *k, const taut_open_options *o)
{
    taut_status s = TAUT_OK;
    taut_net *net = taut_calloc(1, sizeof *net);
    char *path = taut_model_path(model);
    if (!net || !path)
        s = taut_no_memory("a model");
    else if (taut_builtin_is(model) && !taut_file_exists(path))
        s = open_builtin(net, model, k, o);
    else if (says_foreign(o) || taut_hf_is(model))
        s = open_checkpoint(net, model, k, o);
    else if (strcmp(path, model) != 0 && !taut_file_exists(path))
        s = taut_fail(TAUT_BAD_FILE, "%s: neither model.safetensors nor config.json is there", model);
    else
        s = taut_model_open(&net->model, path, k, false);
    s = finish(out, net, s, path ? path : model);
    free(path);
    return s;
}

taut_status taut_net_open(taut_net **out, const char *model, const taut_open_options *options)
{
    taut_open_options o;
    const taut_kernels *k;
    NEED(out);
    *out = NULL;
    NEED(model);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = check_lists(&o);
    if (!s) s = taut_kernels_open(&k, o.kernels ? o.kernels : "cpu");
    return s ? s : open_model(out, model, k, &o);
}

taut_status taut_checkpoint_json(char **json, const char *checkpoint, const taut_open_options *options)
{
    taut_open_options o;
    NEED(json);
    *json = NULL;
    NEED(checkpoint);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = check_lists(&o);
    const taut_hf_ask ask = ask_of(&o);
    return taut_json_out(json, s ? NULL : taut_hf_explain(checkpoint, &ask), s);
}

taut_status taut_net_source(taut_source **out, const taut_net *net, const char *name)
{
    taut_data_spec d = net->data;
    if (name) d.source = name;
    return taut_recipe_source(out, &d, &net->model->spec, net->vocab);
}

void taut_net_free(taut_net *net)
{
    if (!net) return;
    taut_model_free(net->model);
    taut_vocab_free(net->vocab);
    taut_config_free(net->cfg);
    free(net->report);
    free(net->source);
    free(net);
}
