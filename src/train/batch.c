#include "train/batch.h"

#include <stdlib.h>

#include "base/alloc.h"

taut_status taut_batch_create(taut_batch *b, const taut_source *source, uint64_t seed, int64_t largest)
{
    const taut_task *k = &source->task;
    *b = (taut_batch){ .source = source, .seed = seed, .first = -1 };
    if (k->tokens)
        b->x = taut_malloc((size_t)(largest * k->t) * sizeof *b->x);
    else
        b->reals = taut_malloc((size_t)(largest * k->t * k->d) * sizeof *b->reals);
    if (k->reals)
        b->wanted = taut_malloc((size_t)(largest * k->asked * k->reals) * sizeof *b->wanted);
    else
        b->y = taut_malloc((size_t)(largest * k->asked) * sizeof *b->y);
    if (k->shared) b->share = taut_malloc((size_t)(largest * k->asked * k->answers) * sizeof *b->share);
    if ((b->x || b->reals) && (b->y || b->wanted) && (b->share || !k->shared)) return TAUT_OK;
    taut_batch_free(b);
    return taut_no_memory("a batch");
}

void taut_batch_free(taut_batch *b)
{
    free(b->x);
    free(b->reals);
    free(b->y);
    free(b->share);
    free(b->wanted);
    *b = (taut_batch){ 0 };
}

static taut_slot slot_of(const taut_batch *b, int64_t i)
{
    const taut_task *k = &b->source->task;
    return (taut_slot){ b->x ? b->x + i * k->t : NULL, b->reals ? b->reals + i * k->t * k->d : NULL,
                        b->y ? b->y + i * k->asked : NULL, b->share ? b->share + i * k->asked * k->answers : NULL,
                        b->wanted ? b->wanted + i * k->asked * k->reals : NULL };
}

static int64_t count_targets(const taut_batch *b)
{
    int64_t targets = 0;
    if (b->wanted) return b->count * b->source->task.asked * b->source->task.reals;
    for (int64_t i = 0; i < b->count * b->source->task.asked; i++) targets += b->y[i] >= 0;
    return targets;
}

int64_t taut_batch_train(taut_batch *b, int64_t first, int64_t count)
{
    if (b->first == first && b->count == count) return count_targets(b);
    b->count = count;
    b->first = first;
    b->mixed = b->share != NULL;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) b->source->ops->draw(b->source, slot_of(b, i), b->seed, first + i);
    return count_targets(b);
}

int64_t taut_batch_windows(taut_batch *b, taut_split split, const int64_t *index, int64_t count)
{
    b->count = count;
    b->first = -1;
    b->mixed = false;
    for (int64_t i = 0; i < count; i++) b->source->ops->get(b->source, slot_of(b, i), split, index[i]);
    return count_targets(b);
}

void taut_batch_forward(const taut_batch *b, taut_pass *p)
{
    taut_pass_read(p, (taut_input){ b->x, b->reals }, b->count);
}

void taut_batch_loss(const taut_batch *b, taut_pass *p, double weight, bool backward)
{
    if (b->mixed && backward)
        taut_pass_loss_shared(p, b->share, weight);
    else if (b->wanted)
        taut_pass_error(p, b->wanted, weight, backward);
    else
        taut_pass_loss(p, b->y, weight, backward);
}
