/* Well-known shapes with random weights, as the originals started: GPT-2 (the small one) and BERT base. */
#ifndef TAUT_MODEL_BUILTIN_H
#define TAUT_MODEL_BUILTIN_H
#include "model/model.h"

bool taut_builtin_is(const char *name);               /* "gpt2", "bert-base" */
const char *taut_builtin_tokenizer(const char *name); /* where its tokenizer is kept among the data */
taut_status taut_builtin_create(taut_model **out, const char *name, const char *vocab, const taut_kernels *,
                                uint64_t seed) TAUT_MUST_USE;
#endif
