#include "train/evaluate.h"

#include <math.h>

taut_status taut_evaluate(taut_evaluation *out, taut_pass *p, taut_batch *b, taut_split split, int64_t windows,
                          int64_t rows)
{
    const int64_t all = taut_source_count(b->source, split);
    const int64_t some = windows > 0 && windows < all ? windows : all;
    taut_evaluation e = { .windows = some };
    double sums[TAUT_PASS_SUMS];
    int64_t index[64];
    if (rows > 64) rows = 64;
    p->run.phase = (taut_phase){ 0 };
    taut_pass_clear(p);
    for (int64_t first = 0; first < some; first += rows) {
        const int64_t count = some - first < rows ? some - first : rows;
        for (int64_t i = 0; i < count; i++) index[i] = (first + i) * all / some;
        e.targets += taut_batch_windows(b, split, index, count);
        taut_batch_forward(b, p);
        taut_batch_loss(b, p, 1, false);
    }
    const taut_status s = taut_pass_sums(p, sums);
    e.loss = sums[TAUT_PASS_LOSS] / (double)e.targets;
    e.accuracy = b->wanted ? NAN : sums[TAUT_PASS_RIGHT] / (double)e.targets;
    e.mae = b->wanted ? sums[TAUT_PASS_RIGHT] / (double)e.targets : NAN;
    *out = e;
    return s;
}
