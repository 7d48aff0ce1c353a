/* Every success is valid, so the smallest counts.  While the proof does not go through, mu - theta grows eightfold; after a
 * success the gap to the last failure is halved until it is 1e-8 of mu. */
#include "bound/top.h"

taut_up up_top_search(double theta, int64_t n, up_try_fn *try, const void *self)
{
    double fail, mu = INFINITY, gap = 16 * (double)n * 0x1p-53 * theta;
    taut_up best = UP_NONE;
    for (fail = theta; gap <= 64 * (double)n * theta; gap *= 8) {
        mu = theta + gap;
        best = try(self, mu);
        if (best.v < INFINITY) break;
        fail = mu;
    }
    if (!(best.v < INFINITY)) return UP_NONE;
    while (mu - fail > 1e-8 * mu) {
        const double middle = fail + (mu - fail) / 2;
        const taut_up again = try(self, middle);
        if (again.v < INFINITY)
            mu = middle;
        else
            fail = middle;
        best = up_min(best, again);
    }
    return best;
}
