#include "train/evaluate.h"

#include <math.h>

taut_evaluation taut_evaluate(taut_pass *p, taut_batch *b, taut_split split, int64_t windows, int64_t rows)
{
    const int64_t all = taut_source_count(b->source, split);
    const int64_t some = windows > 0 && windows < all ? windows : all;
    taut_evaluation e = { .windows = some };
    int64_t correct = 0;
    double sum = 0, absolute = 0;
    int64_t index[64];
    if (rows > 64) rows = 64;
    p->run.dropout_key = 0;
    p->run.prox_steps = 0;
    for (int64_t first = 0; first < some; first += rows) {
        const int64_t count = some - first < rows ? some - first : rows;
        for (int64_t i = 0; i < count; i++) index[i] = (first + i) * all / some;
        e.targets += taut_batch_windows(b, split, index, count);
        taut_batch_forward(b, p);
        sum += taut_batch_loss(b, p, &correct, 1, false);
        absolute += b->absolute;
    }
    e.loss = sum / (double)e.targets;
    e.accuracy = b->wanted ? NAN : (double)correct / (double)e.targets;
    e.mae = b->wanted ? absolute / (double)e.targets : NAN;
    return e;
}
