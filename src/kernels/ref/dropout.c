/* y_i = x_i keep_i / (1-p), keep_i = [unit(key, i) >= p]: a coin that depends on nothing but (key, i), so
 * forward, jvp and vjp drop the same elements, and so do all backends.  p = 1 drops everything.
 * Poison: a dropped NaN or infinity is NaN, not 0.  Aliasing: y may be x. */
#include "base/rng.h"
#include "kernels/ref/ref.h"

void taut_ref_dropout(taut_real *y_, const taut_real *x_, uint64_t key, double p, int64_t len)
{
    double *y = (double *)y_;
    const double *x = (const double *)x_;
    for (int64_t i = 0; i < len; i++) y[i] = x[i] * (taut_rng_unit(key, (uint64_t)i) >= p ? 1 / (1 - p) : 0);
}
