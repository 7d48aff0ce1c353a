/* The largest of three neighbours, every other token (formulas: ref/halve.c).
 *
 * An example is one thread's.  Error: none, but u = 2^-24 relative in the transpose's sums of two. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

void CPU(halve)(taut_real *y_, taut_real *from_, const taut_real *x_, int64_t n, int64_t t, int64_t d)
{
    const int64_t half = (t + 1) / 2;
#pragma omp parallel for schedule(static) if (n * t * d > CPU_CHUNK)
    for (int64_t e = 0; e < n; e++)
        for (int64_t j = 0; j < half; j++) {
            float *y = (float *)y_ + (e * half + j) * d, *from = (float *)from_ + (e * half + j) * d;
            const int64_t first = j > 0 ? 2 * j - 1 : 0, last = cpu_min(2 * j + 1, t - 1);
            const float *x = (const float *)x_ + (e * t + first) * d;
            memcpy(y, x, (size_t)d * sizeof *y);
            for (int64_t c = 0; c < d; c++) from[c] = (float)first;
            for (int64_t i = first + 1; i <= last; i++) {
                x += d;
                for (int64_t c = 0; c < d; c++) { /* not <=: NaN is larger, and stays */
                    const bool more = !(x[c] <= y[c]) && y[c] == y[c];
                    y[c] = more ? x[c] : y[c];
                    from[c] = more ? (float)i : from[c];
                }
            }
        }
}

void CPU(halve_slope)(taut_real *y_, const taut_real *t_, const taut_real *from_, int64_t n, int64_t t, int64_t d,
                      bool back)
{
    const int64_t half = (t + 1) / 2;
#pragma omp parallel for schedule(static) if (n * t * d > CPU_CHUNK)
    for (int64_t e = 0; e < n; e++) {
        float *y = (float *)y_ + e * (back ? t : half) * d;
        const float *s = (const float *)t_ + e * (back ? half : t) * d, *from = (const float *)from_ + e * half * d;
        if (back) memset(y, 0, (size_t)(t * d) * sizeof *y);
        for (int64_t j = 0; j < half; j++)
            for (int64_t c = 0; c < d; c++) {
                const int64_t small = j * d + c, large = (int64_t)from[small] * d + c;
                if (back)
                    y[large] += s[small];
                else
                    y[small] = s[large];
            }
    }
}
