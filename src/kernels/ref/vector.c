/* y = a x + b y, where a = 0 means that x is not read and b = 0 that y is not; the same of n vectors with
 * factors of their own; sums of several vectors; and n dot products sum_i x_i y_i.  Aliasing: y may be an x. */
#include "kernels/ref/ref.h"

void taut_ref_axpby(taut_real *y_, double a, const taut_real *x_, double b, int64_t len)
{
    double *y = (double *)y_;
    const double *x = (const double *)x_;
    for (int64_t i = 0; i < len; i++) y[i] = (a == 0 ? 0 : a * x[i]) + (b == 0 ? 0 : b * y[i]);
}

void taut_ref_axpby_by(taut_real *y, int64_t y_stride, taut_factor a, const taut_real *x, int64_t x_stride,
                       taut_factor b, int64_t n, int64_t len)
{
    for (int64_t e = 0; e < n; e++)
        taut_ref_axpby((taut_real *)((double *)y + e * y_stride), ref_factor(a, e),
                       (const taut_real *)((const double *)x + e * x_stride), ref_factor(b, e), len);
}

void taut_ref_axpby_all(taut_real *const *y, double a, taut_real *const *x, double b, int n, int64_t len)
{
    for (int e = 0; e < n; e++) taut_ref_axpby(y[e], a, x[e], b, len);
}

void taut_ref_blend(taut_real *y, int64_t y_stride, const taut_term *terms, int count, int64_t n, int64_t len)
{
    for (int64_t e = 0; e < n; e++)
        for (int64_t i = 0; i < len; i++) {
            double sum = 0;
            for (int j = 0; j < count; j++) {
                const double by = ref_factor(terms[j].by, e);
                if (by != 0) sum += by * ((const double *)terms[j].x)[e * terms[j].stride + i];
            }
            ((double *)y)[e * y_stride + i] = sum;
        }
}

void taut_ref_dot(taut_sum *s, const taut_real *x_, int64_t x_stride, const taut_real *y_, int64_t y_stride, int64_t n,
                  int64_t len)
{
    for (int64_t e = 0; e < n; e++) {
        const double *x = (const double *)x_ + e * x_stride, *y = (const double *)y_ + e * y_stride;
        double sum = 0;
        for (int64_t i = 0; i < len; i++) sum += x[i] * y[i];
        ((double *)s)[e] = sum;
    }
}
