/* A loss that turns from examples that are right by far, by its gradient (formula: ref/focus.c), worked in double.
 *
 * Poison    where g or a number of its row of x is NaN, or l not finite, y is NaN.  A row is one thread's.
 * Aliasing  y may be g or x.
 * Error     one rounding, and what l is off by: 2^-24 |y| + 2^-150 + 2^-48 (1 + power) (1 + ln classes + M) |g|, M the
 *           largest |x[r]|. */
#include <math.h>

#include "kernels/cpu/cpu.h"

void CPU(focus)(taut_real *y_, const taut_real *g_, const taut_real *x_, const taut_index *target, int64_t rows,
                int64_t classes, double power)
{
#pragma omp parallel for schedule(static) if (rows * classes > CPU_CHUNK / 4)
    for (int64_t r = 0; r < rows; r++) {
        const float *x = (const float *)x_ + r * classes, *g = (const float *)g_ + r * classes;
        float *y = (float *)y_ + r * classes, max = x[0];
        for (int64_t c = 1; c < classes; c++) max = x[c] > max ? x[c] : max;
        double sum = exp((double)x[0] - (double)max);
        for (int64_t c = 1; c < classes; c++) sum += exp((double)x[c] - (double)max);
        const double l = log(sum) - ((double)x[((const int32_t *)target)[r]] - (double)max), q = -expm1(-l);
        const double factor = pow(q, power - 1) * (q + power * l * exp(-l));
        for (int64_t c = 0; c < classes; c++) y[c] = (float)(factor * (double)g[c]);
    }
}
