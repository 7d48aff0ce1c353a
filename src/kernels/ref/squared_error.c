/* The squared error of a forecast, and its gradient:  sum (x_i - y_i)^2,  sum |x_i - y_i|,  g = 2 weight (x - y).
 * NaN propagates.  Aliasing: g may be x. */
#include <math.h>

#include "kernels/ref/ref.h"

void taut_ref_squared_error(taut_real *g, taut_sum *sums, const taut_real *x_, const taut_real *y_, int64_t len,
                            double weight)
{
    const double *x = (const double *)x_, *y = (const double *)y_;
    double square = 0, size = 0;
    for (int64_t i = 0; i < len; i++) {
        const double e = x[i] - y[i];
        square += e * e;
        size += fabs(e);
        if (g) ((double *)g)[i] = 2 * weight * e;
    }
    ((double *)sums)[0] += square;
    ((double *)sums)[1] += size;
}
