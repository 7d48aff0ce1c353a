#include "train/batch.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/mask.h"

int64_t taut_batch_tokens(const taut_model_spec *m, const taut_vocab *v)
{
    return taut_vocab_size(v) + (m->arch == TAUT_ARCH_ENCODER);
}

taut_status taut_batch_create(taut_batch *b, const taut_text *text, const taut_model_spec *model, double mask_rate,
                              uint64_t seed, int64_t largest)
{
    const size_t size = (size_t)(largest * model->context) * sizeof(int32_t);
    *b = (taut_batch){ text, model, mask_rate, seed, taut_malloc(size), taut_malloc(size) };
    if (b->x && b->y) return TAUT_OK;
    taut_batch_free(b);
    return taut_no_memory("a batch");
}

void taut_batch_free(taut_batch *b)
{
    free(b->x);
    free(b->y);
    b->x = b->y = NULL;
}

/* Hides tokens of example number `id` (an encoder's objective) where it has real tokens. */
static void hide(taut_batch *b, int64_t row, uint64_t key, int64_t id)
{
    const int64_t t = b->model->context;
    const int32_t vocab = taut_vocab_size(b->text->vocab);
    int32_t *x = b->x + row * t, *y = b->y + row * t;
    int64_t real = 0;
    while (real < t && y[real] >= 0) real++; /* a partial window is padded at its end */
    taut_mask_tokens(x, y, real, key, id * t, b->mask_rate, vocab, vocab);
}

static int64_t count_targets(const taut_batch *b, int64_t rows)
{
    int64_t targets = 0;
    for (int64_t i = 0; i < rows * b->model->context; i++) targets += b->y[i] >= 0;
    return targets;
}

int64_t taut_batch_train(taut_batch *b, int64_t first, int64_t count)
{
    const uint64_t key = taut_rng_key(b->seed, TAUT_RNG_BATCH, 0), mask = taut_rng_key(b->seed, TAUT_RNG_MASK, 0);
    taut_text_sample(b->text, TAUT_TRAIN, b->model->context, key, first, count, b->x, b->y);
    if (b->model->arch == TAUT_ARCH_ENCODER)
        for (int64_t i = 0; i < count; i++) hide(b, i, mask, first + i);
    return count_targets(b, count);
}

int64_t taut_batch_windows(taut_batch *b, taut_split split, const int64_t *index, int64_t count)
{
    const int64_t t = b->model->context;
    const uint64_t mask = taut_rng_key(0, TAUT_RNG_MASK, 1); /* free of the seed: every model gets the same questions */
    for (int64_t i = 0; i < count; i++) {
        taut_text_window(b->text, split, t, index[i], b->x + i * t, b->y + i * t);
        if (b->model->arch == TAUT_ARCH_ENCODER) hide(b, i, mask, index[i]);
    }
    return count_targets(b, count);
}
