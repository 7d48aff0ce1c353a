/* What is this model, or this library?  Answers without a handle. */
#include <math.h>
#include <stdlib.h>

#include "api/call.h"
#include "api/net.h"
#include "base/file.h"
#include "base/ranks.h"
#include "bound/ledger.h"
#include "kernels/kernels.h"
#include "model/builtin.h"
#include "model/hf.h"

taut_status taut_build_json(char **json, const char *kernels)
{
    NEED(json);
    *json = NULL;
    const taut_kernels *k;
    int ranks;
    const taut_status s = taut_kernels_open(&k, kernels ? kernels : "cpu");
    if (s) return s;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "version", TAUT_VERSION);
    cJSON_AddStringToObject(o, "kernels", k->name);
    cJSON_AddNumberToObject(o, "threads", taut_threads());
    cJSON_AddNumberToObject(o, "rank", taut_ranks_here(&ranks));
    cJSON_AddNumberToObject(o, "ranks", ranks);
    cJSON_AddBoolToObject(o, "agreed", taut_ranks_agreed());
    cJSON_AddStringToObject(o, "blas", taut_blas_version());
    cJSON_AddStringToObject(o, "compiler", taut_compiler_version());
    return taut_json_out(json, o, TAUT_OK);
}

/* Both constants, and the inputs that they hold for: as they are. */
static taut_status add_bounds(cJSON *o, const taut_model *m)
{
    taut_answer tokens, flat;
    taut_status s = taut_model_bound(&tokens, m, TAUT_NORM_TOKENS);
    if (!s) s = taut_model_bound(&flat, m, TAUT_NORM_FLAT);
    if (s) return s;
    const taut_up reach = taut_model_region(m, TAUT_NORM_TOKENS, UP_ZERO).size,
                  defect = isfinite(up_min(tokens.lip, flat.lip).v) ? up_max(tokens.defect, flat.defect) : UP_ZERO;
    const taut_about about = taut_model_about(m, UP_ZERO, reach, UP_NONE, defect);
    char text[TAUT_ABOUT_ROOM];
    if (about.reads == TAUT_ABOUT_TOKENS) cJSON_AddItemToObject(o, "reach", up_json(reach));
    cJSON_AddNumberToObject(o, "room", 0);
    cJSON_AddItemToObject(o, "bound_tokens", up_json(tokens.lip));
    cJSON_AddItemToObject(o, "bound_flat", up_json(flat.lip));
    if (defect.v > 0) cJSON_AddItemToObject(o, "defect", up_json(defect));
    cJSON_AddStringToObject(o, "about", taut_about_text(text, &about));
    return TAUT_OK;
}

/* How a text becomes ids: "bytes", "bpe", ...; nothing where no text is read or the vocabulary cannot be understood. */
static void add_tokenizer(cJSON *o, const taut_model *m)
{
    taut_vocab *v = NULL;
    if (m->embed.rows == 0 || taut_vocab_parse(&v, m->vocab)) return;
    cJSON_AddStringToObject(o, "tokenizer", taut_vocab_kind(v));
    taut_vocab_free(v);
}

static cJSON *describe(const taut_model *m, bool builtin)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "arch", taut_arch_name(m->spec.arch));
    cJSON_AddNumberToObject(o, "width", (double)m->spec.width);
    cJSON_AddNumberToObject(o, "depth", (double)m->spec.depth);
    cJSON_AddNumberToObject(o, "heads", (double)m->spec.heads);
    cJSON_AddNumberToObject(o, "context", (double)m->spec.context);
    cJSON_AddNumberToObject(o, "tokens", (double)m->embed.rows);
    if (taut_model_sees(m)) {
        const int sides[] = { (int)m->spec.image.height, (int)m->spec.image.width, (int)m->spec.image.channels };
        cJSON_AddItemToObject(o, "image", cJSON_CreateIntArray(sides, 3));
        cJSON_AddNumberToObject(o, "classes", (double)m->classes);
    }
    if (!builtin) add_tokenizer(o, m); /* a shape comes without one */
    cJSON_AddNumberToObject(o, "weights", (double)taut_model_size(m));
    cJSON_AddItemToObject(o, "tensors", taut_tensors_json(m));
    return o;
}

static taut_status about_checkpoint(char **json, const char *model, const taut_describe_options *o)
{
    taut_hf *hf = NULL;
    if (o->bound) return taut_fail(TAUT_BAD_CALL, "bounds are about stored models: first taut convert %s", model);
    const taut_status s = taut_hf_open(&hf, model, &(taut_hf_ask){ .recipe = o->recipe });
    cJSON *report = s ? NULL : taut_hf_report(hf);
    taut_hf_close(hf);
    return taut_json_out(json, report, s);
}

taut_status taut_describe_file(char **json, const char *model, const taut_describe_options *options)
{
    taut_describe_options o;
    NEED(json);
    *json = NULL;
    NEED(model);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (s) return s;
    if (o.recipe || taut_hf_is(model)) return about_checkpoint(json, model, &o);
    taut_model *m = NULL;
    char *path = taut_model_path(model);
    const taut_kernels *k = taut_kernels_find("ref"); /* bounds are about the stored bytes, read as doubles */
    const bool builtin = path && taut_builtin_is(model) && !taut_file_exists(path);
    if (!path)
        s = taut_no_memory("a path");
    else if (builtin)
        s = taut_builtin_create(&m, model, "bytes", k, o.seed ? o.seed : 1);
    else
        s = taut_model_open(&m, path, k, false);
    cJSON *found = s ? NULL : describe(m, builtin);
    if (!s && o.bound) s = add_bounds(found, m);
    taut_model_free(m);
    free(path);
    return taut_json_out(json, found, s);
}
