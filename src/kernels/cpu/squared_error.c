/* The squared error of a forecast, and its gradient (formulas: ref/squared_error.c), worked in double, in one thread: a
 * batch of forecasts is small.
 * NaN propagates.  Aliasing: g may be x.
 * Error     sums: (len + 2) 2^-53 of themselves; g: 2 * 2^-24 |g|. */
#include <math.h>

#include "kernels/cpu/cpu.h"

void CPU(squared_error)(taut_real *g, taut_sum *sums, const taut_real *x_, const taut_real *y_, int64_t len,
                        double weight)
{
    const float *x = (const float *)x_, *y = (const float *)y_;
    double square = 0, size = 0;
    for (int64_t i = 0; i < len; i++) {
        const double e = (double)x[i] - (double)y[i];
        square += e * e;
        size += fabs(e);
        if (g) ((float *)g)[i] = (float)(2 * weight * e);
    }
    ((double *)sums)[0] += square;
    ((double *)sums)[1] += size;
}
