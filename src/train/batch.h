/* Examples for a model's objective: next token for a GPT, masked tokens for an encoder. */
#ifndef TAUT_TRAIN_BATCH_H
#define TAUT_TRAIN_BATCH_H
#include "train/recipe.h"

typedef struct {
    const taut_text *text;
    const taut_model_spec *model;
    double mask_rate;
    uint64_t seed;
    int32_t *x, *y; /* (batch, context); y is -1 where nothing is asked */
} taut_batch;

/* Tokens the embedding needs: the vocabulary, and one more for an encoder's mask. */
int64_t taut_batch_tokens(const taut_model_spec *, const taut_vocab *);

taut_status taut_batch_create(taut_batch *, const taut_text *, const taut_model_spec *, double mask_rate, uint64_t seed,
                              int64_t largest) TAUT_MUST_USE;
void taut_batch_free(taut_batch *);

/* Both fill x and y and return how many targets there are.
 * train: random windows number first .. first+count-1 of the training split's endless stream.
 * windows: the validation windows index[0..count), masked the same way every time. */
int64_t taut_batch_train(taut_batch *, int64_t first, int64_t count);
int64_t taut_batch_windows(taut_batch *, taut_split, const int64_t *index, int64_t count);
#endif
