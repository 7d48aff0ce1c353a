/* A Hugging Face checkpoint (config.json and safetensors) as a taut model.
 *
 *     taut_hf_open(&hf, "gpt2/", NULL);             config.json and every tensor's name, type and shape are checked
 *     taut_hf_report(hf);                           what became of every tensor
 *     taut_hf_load(&model, hf, vocab, false, k);    the model, an ordinary one
 *
 * Families: gpt2; bert; roberta, xlm-roberta, camembert; vit; deit.  Weights may be F32, F16, BF16 (exact) or F64 (rounded
 * to float when a model is stored).  What the function does not need (poolers, masks, position numbers) is left out and listed.
 * A tensor that nobody can place is refused, since the function might be another one, unless `lenient`. */
#ifndef TAUT_MODEL_HF_H
#define TAUT_MODEL_HF_H
#include <cjson/cJSON.h>

#include "model/model.h"

typedef struct taut_hf taut_hf;

bool taut_hf_is(const char *folder); /* has it a config.json? */
/* folder: config.json and tensors.  With a recipe (an .ini file): a folder of tensors or one file of them, named as PyTorch's
 * own transformer layers name them (hf_torch.c), which [model] describes. */
taut_status taut_hf_open(taut_hf **out, const char *folder, const char *recipe) TAUT_MUST_USE;
void taut_hf_close(taut_hf *);

int64_t taut_hf_tokens(const taut_hf *); /* rows of the embedding; 0: it reads images */
/* folder, family, files, tensors, used, tied, unused: [{name, dtype, shape, why}], unknown: [{...}], notes: [...];
 * NULL: out of memory. */
cJSON *taut_hf_report(const taut_hf *);
taut_status taut_hf_load(taut_model **out, const taut_hf *, const char *vocab, bool lenient,
                         const taut_kernels *) TAUT_MUST_USE;
#endif
