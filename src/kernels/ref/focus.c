/* A loss that turns from examples that are right by far, (1 - p)^power (-ln p), by its gradient: with t the target of row r,
 * l = -ln softmax(x[r])[t], p = e^-l, q = 1 - p,
 *     y[r][c] = g[r][c] ( q^power + power l p q^(power - 1) ),      g the gradient of l, power at least 1
 * Poison: where g or a number of its row of x is NaN, or l not finite, y is NaN.
 * Aliasing: y may be g or x. */
#include <math.h>

#include "kernels/ref/ref.h"

void taut_ref_focus(taut_real *y_, const taut_real *g_, const taut_real *x_, const taut_index *target, int64_t rows,
                    int64_t classes, double power)
{
    for (int64_t r = 0; r < rows; r++) {
        const double *x = (const double *)x_ + r * classes, *g = (const double *)g_ + r * classes;
        double *y = (double *)y_ + r * classes, max = x[0];
        for (int64_t c = 1; c < classes; c++) max = x[c] > max ? x[c] : max;
        double sum = exp(x[0] - max);
        for (int64_t c = 1; c < classes; c++) sum += exp(x[c] - max);
        const double l = log(sum) - (x[((const int32_t *)target)[r]] - max), q = -expm1(-l);
        const double factor = pow(q, power - 1) * (q + power * l * exp(-l));
        for (int64_t c = 0; c < classes; c++) y[c] = factor * g[c];
    }
}
