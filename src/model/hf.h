/* A checkpoint of somebody else's program (safetensors, perhaps with a config.json) as a taut model.
 *
 *     taut_hf_open(&hf, "gpt2/", NULL);             config.json and every tensor's name, type and shape are checked
 *     taut_hf_report(hf);                           what became of every tensor
 *     taut_hf_load(&model, hf, vocab, false, k);    the model, an ordinary one
 *
 * How programs name their tensors is a table (hf_names.c).  What the model is: config.json of Hugging Face's gpt2, bert,
 * roberta, xlm-roberta, camembert, vit and deit; or a recipe; or the shapes of the tensors (hf_sizes.c), which leave the
 * number of heads open.  Weights may be F32, F16, BF16 (exact) or F64 (rounded to float when a model is stored).  What the
 * function does not need (poolers, masks, position numbers) is left out and listed.  A tensor that nobody can place is
 * refused, since the function might be another one, unless `lenient`. */
#ifndef TAUT_MODEL_HF_H
#define TAUT_MODEL_HF_H
#include <cjson/cJSON.h>

#include "model/model.h"

typedef struct taut_hf taut_hf;

/* What the caller knows better than the files; NULL and 0: nothing. */
typedef struct {
    const char *recipe; /* an .ini file with the [model] that the tensors are of */
    const char *prefix; /* of the tensors' names, as in "module.student."; all others are left out */
    const char *const
        *map; /* `maps` times "mine=theirs": where a weight of ours is, "block.#.mlp.in.weight=ffn.#.w1" */
    const char *const *set; /* `sets` times "model.key=value", over what config.json, recipe or shapes say */
    int maps, sets;
} taut_hf_ask;

/* Is it a checkpoint of another program: a folder with config.json or an index of shards, a file that taut did not write? */
bool taut_hf_is(const char *path);
/* path: a folder, an index of shards, or one file of tensors. */
taut_status taut_hf_open(taut_hf **out, const char *path, const taut_hf_ask *) TAUT_MUST_USE;
void taut_hf_close(taut_hf *);

const char *taut_hf_folder(const taut_hf *); /* that its files lie in */
int64_t taut_hf_tokens(const taut_hf *);     /* rows of the embedding; 0: it reads images */
/* folder, family, prefix, files, tensors, used, tied, unused: [{name, dtype, shape, why}], unknown: [{...}], notes: [...];
 * NULL: out of memory. */
cJSON *taut_hf_report(const taut_hf *);
/* Why a checkpoint cannot be opened, as far as one sees: error, family, prefix, wanted: [{name, from, shape, found}] of all
 * weights that are not there as they should be (found: null or a shape), unknown: [{name, dtype, shape}].  NULL: out of
 * memory. */
cJSON *taut_hf_explain(const char *path, const taut_hf_ask *);
taut_status taut_hf_load(taut_model **out, const taut_hf *, const char *vocab, bool lenient,
                         const taut_kernels *) TAUT_MUST_USE;
#endif
