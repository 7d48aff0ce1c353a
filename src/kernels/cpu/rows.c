/* Rows of a (rows, cols) matrix against one row that repeats, and means over tokens (formulas: ref/rows.c).
 *
 * Sums run in double.  Of one row that all rows meet: over BLOCK rows at a time, which are the parallel work, and the blocks are
 * added in order; a page of memory is then read once, from one end to the other.  Of others: down a block of columns.
 * Aliasing  y may be x in add_rows and mul_rows.  Poison: NaN and infinity propagate.
 * Error     add_rows, mul_rows, spread_tokens: one or two roundings, 2^-23 |y|; copy_rows: none.
 *           sum_rows, dot_rows, mean_tokens: the double sum rounds once to float and is added once:
 *           2^-23 |result| + (rows+4) 2^-53 sum |terms|. */
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/cpu/cpu.h"

enum { BLOCK = 128, COLS = 32 }; /* two cache lines a row: wide enough to stream, narrow enough for many threads */

void CPU(add_rows)(taut_real *y_, const taut_real *x_, const taut_real *p_, int64_t rows, int64_t cols, int64_t period)
{
#pragma omp parallel for schedule(static) if (rows * cols > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        float *y = (float *)y_ + r * cols;
        const float *x = (const float *)x_ + r * cols, *p = (const float *)p_ + r % period * cols;
#pragma omp simd
        for (int64_t c = 0; c < cols; c++) y[c] = x[c] + p[c];
    }
}

void CPU(mul_rows)(taut_real *y_, const taut_real *x_, const taut_real *g_, int64_t rows, int64_t cols)
{
#pragma omp parallel for schedule(static) if (rows * cols > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        float *y = (float *)y_ + r * cols;
        const float *x = (const float *)x_ + r * cols, *g = (const float *)g_;
#pragma omp simd
        for (int64_t c = 0; c < cols; c++) y[c] = x[c] * g[c];
    }
}

/* The sum of a block of columns, over the rows from, from + step, ... below rows. */
static void column_sums(double *sum, const float *y, int64_t rows, int64_t cols, int64_t from, int64_t step,
                        int64_t width)
{
    for (int64_t c = 0; c < COLS; c++) sum[c] = 0;
    for (int64_t r = from; r < rows; r += step) {
        const float *row = y + r * cols;
        for (int64_t c = 0; c < width; c++) sum[c] += row[c];
    }
}

static void add_row(double *sum, const float *x, int64_t cols)
{
#pragma omp simd
    for (int64_t c = 0; c < cols; c++) sum[c] += (double)x[c];
}

static void add_products(double *sum, const float *x, const float *y, int64_t cols)
{
#pragma omp simd
    for (int64_t c = 0; c < cols; c++) sum[c] += (double)x[c] * (double)y[c];
}

/* g[c] += sum over r of x[r][c], or of x[r][c] y[r][c] where there is a y. */
static void add_up(float *g, const float *x, const float *y, int64_t rows, int64_t cols)
{
    const int64_t blocks = (rows + BLOCK - 1) / BLOCK;
    double *sum = taut_calloc((size_t)(blocks * cols), sizeof *sum);
    TAUT_CHECK(sum || blocks * cols == 0, "rows: no memory for their sums");
#pragma omp parallel if (rows * cols > CPU_CHUNK)
    {
#pragma omp for schedule(static)
        for (int64_t b = 0; b < blocks; b++)
            for (int64_t r = b * BLOCK; r < cpu_min(rows, (b + 1) * BLOCK); r++)
                if (y)
                    add_products(sum + b * cols, x + r * cols, y + r * cols, cols);
                else
                    add_row(sum + b * cols, x + r * cols, cols);
#pragma omp for schedule(static)
        for (int64_t c = 0; c < cols; c++) {
            double all = 0;
            for (int64_t b = 0; b < blocks; b++) all += sum[b * cols + c];
            g[c] = (float)(g[c] + all);
        }
    }
    free(sum);
}

void CPU(sum_rows)(taut_real *p_, const taut_real *y, int64_t rows, int64_t cols, int64_t period)
{
    const int64_t blocks = (cols + COLS - 1) / COLS;
    if (period == 1) {
        add_up((float *)p_, (const float *)y, NULL, rows, cols);
        return;
    }
#pragma omp parallel for collapse(2) schedule(static) if (rows * cols > CPU_CHUNK)
    for (int64_t r = 0; r < period; r++)
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t width = cpu_min(COLS, cols - b * COLS);
            float *p = (float *)p_ + r * cols + b * COLS;
            double sum[COLS];
            column_sums(sum, (const float *)y + b * COLS, rows, cols, r, period, width);
            for (int64_t c = 0; c < width; c++) p[c] = (float)(p[c] + sum[c]);
        }
}

void CPU(dot_rows)(taut_real *g_, taut_real *s, const taut_real *x_, const taut_real *y_, int64_t rows, int64_t cols)
{
    add_up((float *)g_, (const float *)x_, (const float *)y_, rows, cols);
    if (s) add_up((float *)s, (const float *)x_, NULL, rows, cols);
}

void CPU(copy_rows)(taut_real *y_, int64_t y_stride, const taut_real *x_, int64_t x_stride, int64_t rows, int64_t cols)
{
#pragma omp parallel for schedule(static) if (rows * cols > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        float *y = (float *)y_ + r * y_stride;
        const float *x = (const float *)x_ + r * x_stride;
#pragma omp simd
        for (int64_t c = 0; c < cols; c++) y[c] = x[c];
    }
}

void CPU(mean_tokens)(taut_real *y_, const taut_real *x, int64_t n, int64_t t, int64_t d)
{
    const int64_t blocks = (d + COLS - 1) / COLS;
#pragma omp parallel for collapse(2) schedule(static) if (n * t * d > CPU_CHUNK)
    for (int64_t e = 0; e < n; e++)
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t width = cpu_min(COLS, d - b * COLS);
            float *y = (float *)y_ + e * d + b * COLS;
            double sum[COLS];
            column_sums(sum, (const float *)x + e * t * d + b * COLS, t, d, 0, 1, width);
            for (int64_t c = 0; c < width; c++) y[c] = (float)(sum[c] / (double)t);
        }
}

void CPU(spread_tokens)(taut_real *x_, const taut_real *y_, int64_t n, int64_t t, int64_t d)
{
    const float share = (float)(1.0 / (double)t);
#pragma omp parallel for schedule(static) if (n * t * d > CPU_CHUNK)
    for (int64_t row = 0; row < n * t; row++) {
        float *x = (float *)x_ + row * d;
        const float *y = (const float *)y_ + row / t * d;
#pragma omp simd
        for (int64_t c = 0; c < d; c++) x[c] = y[c] * share;
    }
}
