/* Rows scaled to the sphere, and the symmetric derivative (formulas: ref/unit.c).
 *
 * A row is read as floats and worked in double; a row is one thread's.
 * Poison    NaN in a row makes it NaN.  Aliasing: unit_rows: y may be x.
 * Error     2 u |y| for the rows, u = 2^-24; slope: 2 u |y| + (d + 8) 2^-50 factor |t| / max(|x|, floor). */
#include <math.h>

#include "kernels/cpu/cpu.h"

static double length(const float *x, int64_t d)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < d; c++) sum += (double)x[c] * (double)x[c];
    return sqrt(sum);
}

void CPU(unit_rows)(taut_real *y_, const taut_real *x_, int64_t rows, int64_t d, double floor, double factor)
{
#pragma omp parallel for schedule(static) if (rows * d > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        float *y = (float *)y_ + r * d;
        const float *x = (const float *)x_ + r * d;
        const double size = length(x, d), scale = factor / (size <= floor ? floor : size);
#pragma omp simd
        for (int64_t c = 0; c < d; c++) y[c] = (float)((double)x[c] * scale);
    }
}

void CPU(unit_rows_slope)(taut_real *y_, const taut_real *t_, const taut_real *x_, int64_t rows, int64_t d,
                          double floor, double factor)
{
#pragma omp parallel for schedule(static) if (rows * d > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        float *y = (float *)y_ + r * d;
        const float *x = (const float *)x_ + r * d, *t = (const float *)t_ + r * d;
        const double size = length(x, d), over = size <= floor ? 0 : 1 / size;
        const double scale = factor / (size <= floor ? floor : size);
        double along = 0;
#pragma omp simd reduction(+ : along)
        for (int64_t c = 0; c < d; c++) along += (double)x[c] * (double)t[c];
        along *= over;
#pragma omp simd
        for (int64_t c = 0; c < d; c++) y[c] = (float)(scale * ((double)t[c] - (double)x[c] * over * along));
    }
}
