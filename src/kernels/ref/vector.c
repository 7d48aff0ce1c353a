/* y = a x + b y, where a = 0 means that x is not read and b = 0 that y is not; and the dot product
 * sum_i x_i y_i.  Aliasing: y may be x. */
#include "kernels/ref/ref.h"

void taut_ref_axpby(taut_real *y_, double a, const taut_real *x_, double b, int64_t len)
{
    double *y = (double *)y_;
    const double *x = (const double *)x_;
    for (int64_t i = 0; i < len; i++) y[i] = (a == 0 ? 0 : a * x[i]) + (b == 0 ? 0 : b * y[i]);
}

double taut_ref_dot(const taut_real *x_, const taut_real *y_, int64_t len)
{
    const double *x = (const double *)x_, *y = (const double *)y_;
    double sum = 0;
    for (int64_t i = 0; i < len; i++) sum += x[i] * y[i];
    return sum;
}
