/* Every other token: the largest of itself and its two neighbours, feature by feature (a max-pooling of 3 by 2, padded by 1).
 *     y_j = max of x_{2j-1}, x_{2j}, x_{2j+1},  j = 0 .. (t+1)/2 - 1; tokens before the first and after the last do not count
 * NaN counts as largest and of equals the first is taken, so forward, jvp and vjp agree on ties.  Nothing is rounded but the
 * sums of the transpose, of at most two terms.  Aliasing: none. */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

void taut_ref_halve(taut_real *y_, taut_real *from_, const taut_real *x_, int64_t n, int64_t t, int64_t d)
{
    const int64_t half = (t + 1) / 2;
    for (int64_t e = 0; e < n; e++)
        for (int64_t j = 0; j < half; j++)
            for (int64_t c = 0; c < d; c++) {
                const double *x = (const double *)x_ + e * t * d + c;
                int64_t best = j > 0 ? 2 * j - 1 : 0;
                for (int64_t i = best + 1; i <= 2 * j + 1 && i < t; i++)
                    if (x[i * d] > x[best * d] || (isnan(x[i * d]) && !isnan(x[best * d]))) best = i;
                ((double *)y_)[(e * half + j) * d + c] = x[best * d];
                ((double *)from_)[(e * half + j) * d + c] = (double)best;
            }
}

void taut_ref_halve_slope(taut_real *y_, const taut_real *t_, const taut_real *from_, int64_t n, int64_t t, int64_t d,
                          bool back)
{
    const int64_t half = (t + 1) / 2;
    double *y = (double *)y_;
    const double *s = (const double *)t_, *from = (const double *)from_;
    if (back) memset(y, 0, (size_t)(n * t * d) * sizeof *y);
    for (int64_t e = 0; e < n; e++)
        for (int64_t i = 0; i < half * d; i++) {
            const int64_t small = e * half * d + i, large = (e * t + (int64_t)from[small]) * d + i % d;
            if (back)
                y[large] += s[small];
            else
                y[small] = s[large];
        }
}
