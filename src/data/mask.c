/* Three draws for each token, from counters of its own, so that a batch can be cut anywhere. */
#include "data/mask.h"

#include <stdbool.h>

#include "base/rng.h"

void taut_mask_tokens(int32_t *x, int32_t *y, int64_t count, uint64_t key, int64_t first, double rate, int32_t mask_id,
                      int32_t vocab)
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t counter = 3 * (uint64_t)(first + i);
        const bool chosen = taut_rng_unit(key, counter) < rate;
        y[i] = chosen ? x[i] : -1;
        if (!chosen) continue;
        const double fate = taut_rng_unit(key, counter + 1);
        if (fate < 0.8)
            x[i] = mask_id;
        else if (fate < 0.9)
            x[i] = (int32_t)taut_rng_below(key, counter + 2, (uint64_t)vocab);
    }
}
