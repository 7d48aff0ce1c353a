/* The length of every feature over the tokens (formulas: ref/lengths.c).  Sums run in double, in blocks of columns.
 *
 * Poison: NaN and infinity propagate.
 * Error   with y given: lengths 2^-23 y + (t+4) 2^-53 y; lengths_jvp 2^-23 |ty| + (t+4) 2^-53 sum |x tx| / y;
 *         lengths_vjp 2^-23 |gx|. */
#include <math.h>

#include "kernels/cpu/cpu.h"

enum { COLS = 32 };

/* sum_i x[i][c] z[i][c] over the t rows of one example, for `width` columns */
static void products(double *sum, const float *x, const float *z, int64_t t, int64_t d, int64_t width)
{
    for (int64_t c = 0; c < COLS; c++) sum[c] = 0;
    for (int64_t i = 0; i < t; i++)
        for (int64_t c = 0; c < width; c++) sum[c] += (double)x[i * d + c] * (double)z[i * d + c];
}

void CPU(lengths)(taut_real *y_, const taut_real *x_, int64_t n, int64_t t, int64_t d)
{
    const int64_t blocks = (d + COLS - 1) / COLS;
#pragma omp parallel for collapse(2) schedule(static) if (n * t * d > CPU_CHUNK)
    for (int64_t e = 0; e < n; e++)
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t width = cpu_min(COLS, d - b * COLS);
            const float *x = (const float *)x_ + e * t * d + b * COLS;
            float *y = (float *)y_ + e * d + b * COLS;
            double sum[COLS];
            products(sum, x, x, t, d, width);
            for (int64_t c = 0; c < width; c++) y[c] = (float)sqrt(sum[c]);
        }
}

void CPU(lengths_jvp)(taut_real *ty_, const taut_real *tx, const taut_real *x, const taut_real *y_, int64_t n,
                      int64_t t, int64_t d)
{
    const int64_t blocks = (d + COLS - 1) / COLS;
#pragma omp parallel for collapse(2) schedule(static) if (n * t * d > CPU_CHUNK)
    for (int64_t e = 0; e < n; e++)
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t width = cpu_min(COLS, d - b * COLS), at = e * t * d + b * COLS;
            const float *y = (const float *)y_ + e * d + b * COLS;
            float *ty = (float *)ty_ + e * d + b * COLS;
            double sum[COLS];
            products(sum, (const float *)x + at, (const float *)tx + at, t, d, width);
            for (int64_t c = 0; c < width; c++) ty[c] = y[c] == 0 ? 0 : (float)(sum[c] / (double)y[c]);
        }
}

void CPU(lengths_vjp)(taut_real *gx_, const taut_real *gy_, const taut_real *x_, const taut_real *y_, int64_t n,
                      int64_t t, int64_t d)
{
#pragma omp parallel for schedule(static) if (n * t * d > CPU_CHUNK)
    for (int64_t row = 0; row < n * t; row++) {
        float *gx = (float *)gx_ + row * d;
        const float *x = (const float *)x_ + row * d;
        const float *gy = (const float *)gy_ + row / t * d, *y = (const float *)y_ + row / t * d;
        for (int64_t c = 0; c < d; c++) gx[c] = y[c] == 0 ? 0 : (float)((double)x[c] * (double)gy[c] / (double)y[c]);
    }
}
