/* Rows of a (rows, cols) matrix against one row that repeats, and means over tokens.
 *
 *   add_rows       y[r][c]  = x[r][c] + p[r % period][c]
 *   sum_rows       its adjoint, adding into p
 *   mul_rows       y[r][c]  = x[r][c] g[c]
 *   dot_rows       g[c]    += sum_r x[r][c] y[r][c],  s[c] += sum_r x[r][c]
 *   copy_rows      y[r*y_stride + c] = x[r*x_stride + c]
 *   mean_tokens    y[e][c]  = 1/t sum_i x[e][i][c]
 *   spread_tokens  its adjoint, overwriting
 * Aliasing: y may be x in add_rows and mul_rows. */
#include "kernels/ref/ref.h"

void taut_ref_add_rows(taut_real *y_, const taut_real *x_, const taut_real *p_, int64_t rows, int64_t cols,
                       int64_t period)
{
    double *y = (double *)y_;
    const double *x = (const double *)x_, *p = (const double *)p_;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) y[r * cols + c] = x[r * cols + c] + p[r % period * cols + c];
}

void taut_ref_sum_rows(taut_real *p_, const taut_real *y_, int64_t rows, int64_t cols, int64_t period)
{
    double *p = (double *)p_;
    const double *y = (const double *)y_;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) p[r % period * cols + c] += y[r * cols + c];
}

void taut_ref_mul_rows(taut_real *y_, const taut_real *x_, const taut_real *g_, int64_t rows, int64_t cols)
{
    double *y = (double *)y_;
    const double *x = (const double *)x_, *g = (const double *)g_;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) y[r * cols + c] = x[r * cols + c] * g[c];
}

void taut_ref_dot_rows(taut_real *g_, taut_real *s, const taut_real *x_, const taut_real *y_, int64_t rows,
                       int64_t cols)
{
    double *g = (double *)g_;
    const double *x = (const double *)x_, *y = (const double *)y_;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) g[c] += x[r * cols + c] * y[r * cols + c];
    if (s) taut_ref_sum_rows(s, x_, rows, cols, 1);
}

void taut_ref_copy_rows(taut_real *y_, int64_t y_stride, const taut_real *x_, int64_t x_stride, int64_t rows,
                        int64_t cols)
{
    double *y = (double *)y_;
    const double *x = (const double *)x_;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) y[r * y_stride + c] = x[r * x_stride + c];
}

void taut_ref_mean_tokens(taut_real *y_, const taut_real *x_, int64_t n, int64_t t, int64_t d)
{
    double *y = (double *)y_;
    const double *x = (const double *)x_;
    for (int64_t e = 0; e < n; e++)
        for (int64_t c = 0; c < d; c++) {
            double sum = 0;
            for (int64_t i = 0; i < t; i++) sum += x[(e * t + i) * d + c];
            y[e * d + c] = sum / (double)t;
        }
}

void taut_ref_spread_tokens(taut_real *x_, const taut_real *y_, int64_t n, int64_t t, int64_t d)
{
    double *x = (double *)x_;
    const double *y = (const double *)y_;
    for (int64_t e = 0; e < n; e++)
        for (int64_t i = 0; i < t; i++)
            for (int64_t c = 0; c < d; c++) x[(e * t + i) * d + c] = y[e * d + c] / (double)t;
}
