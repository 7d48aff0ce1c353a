/* The length of every feature over the tokens: x is (n, t, d), y (n, d).
 *
 *   lengths      y[e][c] = sqrt(sum_i x[e][i][c]^2)
 *   lengths_jvp  ty[e][c] = sum_i x[e][i][c] tx[e][i][c] / y[e][c], 0 where y is 0
 *   lengths_vjp  gx[e][i][c] = x[e][i][c] gy[e][c] / y[e][c], 0 where y is 0 */
#include <math.h>

#include "kernels/ref/ref.h"

void taut_ref_lengths(taut_real *y_, const taut_real *x_, int64_t n, int64_t t, int64_t d)
{
    double *y = (double *)y_;
    const double *x = (const double *)x_;
    for (int64_t e = 0; e < n; e++)
        for (int64_t c = 0; c < d; c++) {
            double sum = 0;
            for (int64_t i = 0; i < t; i++) sum += x[(e * t + i) * d + c] * x[(e * t + i) * d + c];
            y[e * d + c] = sqrt(sum);
        }
}

void taut_ref_lengths_jvp(taut_real *ty_, const taut_real *tx_, const taut_real *x_, const taut_real *y_, int64_t n,
                          int64_t t, int64_t d)
{
    double *ty = (double *)ty_;
    const double *tx = (const double *)tx_, *x = (const double *)x_, *y = (const double *)y_;
    for (int64_t e = 0; e < n; e++)
        for (int64_t c = 0; c < d; c++) {
            double sum = 0;
            for (int64_t i = 0; i < t; i++) sum += x[(e * t + i) * d + c] * tx[(e * t + i) * d + c];
            ty[e * d + c] = y[e * d + c] == 0 ? 0 : sum / y[e * d + c];
        }
}

void taut_ref_lengths_vjp(taut_real *gx_, const taut_real *gy_, const taut_real *x_, const taut_real *y_, int64_t n,
                          int64_t t, int64_t d)
{
    double *gx = (double *)gx_;
    const double *gy = (const double *)gy_, *x = (const double *)x_, *y = (const double *)y_;
    for (int64_t e = 0; e < n; e++)
        for (int64_t i = 0; i < t; i++)
            for (int64_t c = 0; c < d; c++) {
                const int64_t at = (e * t + i) * d + c, of = e * d + c;
                gx[at] = y[of] == 0 ? 0 : x[at] * gy[of] / y[of];
            }
}
