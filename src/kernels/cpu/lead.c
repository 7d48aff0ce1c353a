/* How far the right class leads each other one (formula: ref/lead.c), worked in double.
 *
 * Poison    where the difference or a is NaN, so is e.  A row is one thread's.
 * Error     one rounding: 2^-24 |e| + 2^-150. */
#include "kernels/cpu/cpu.h"

void CPU(lead)(taut_real *e_, const taut_real *x_, const taut_real *apart, const taut_index *target, int64_t rows,
               int64_t classes, double wanted, double least)
{
#pragma omp parallel for schedule(static) if (rows * classes > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        const int32_t t = ((const int32_t *)target)[r];
        const float *x = (const float *)x_ + r * classes, *a = (const float *)apart + t * classes;
        float *e = (float *)e_ + r * classes;
        for (int64_t c = 0; c < classes; c++) {
            const double ahead = (double)x[t] - (double)x[c], full = wanted * (double)a[c];
            const double share = full == 0 ? ahead - ahead + 1 : ahead / full;
            e[c] = (float)(share < least ? least : share > 1 ? 1 : share);
        }
    }
}
