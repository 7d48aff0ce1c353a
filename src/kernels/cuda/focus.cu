/* A loss that turns from examples that are right by far, by its gradient (formula: ref/focus.c), worked in double.
 *
 * Poison    where g or a number of its row of x is NaN, or l not finite, y is NaN.  A row is one thread's.
 * Aliasing  y may be g or x.
 * Error     one rounding, and what l is off by: u |y| + the smallest number + 2^-48 (1 + power) (1 + ln classes + M) |g|,
 *           u = 2^-24 (cuda64: 2^-53), M the largest |x[r]|. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/lowered.h"

static __global__ void focus_rows(real *y, const real *g, const real *x, const int32_t *target, int64_t rows,
                                  int64_t classes, double power)
{
    const int64_t r = (int64_t)blockIdx.x * THREADS + threadIdx.x, first = r * classes;
    if (r >= rows) return;
    double max = (double)x[first];
    for (int64_t c = 1; c < classes; c++) max = x[first + c] > max ? (double)x[first + c] : max;
    double sum = exp((double)x[first] - max);
    for (int64_t c = 1; c < classes; c++) sum += exp((double)x[first + c] - max);
    const double l = log(sum) - ((double)x[first + target[r]] - max), q = -expm1(-l);
    const double factor = pow(q, power - 1) * (q + power * l * exp(-l));
    for (int64_t c = 0; c < classes; c++) y[first + c] = (real)(factor * (double)g[first + c]);
}

void CUDA(focus)(taut_real *y, const taut_real *g, const taut_real *x, const taut_index *target, int64_t rows,
                 int64_t classes, double power)
{
    const cuda_says says;
    says.writes(at(y), rows * classes);
    if (rows <= 0) return;
    CUDA_LAUNCH(focus_rows, blocks_for(rows, THREADS), THREADS, 0, at(y), at(g), at(x), at(target), rows, classes,
                power);
}
