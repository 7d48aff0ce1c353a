/* Row normalisation:  z = (x - mean) rstd,  rstd = 1/sqrt(var + eps),  var = mean (x - mean)^2;
 * without `centre`, mean is taken as 0, so var is the mean square.  Where it is asked for, y = gain z + bias beside it.
 *
 * Derivative at z:  y = rstd (u - mean(u) - z mean(z u)), u = gain t, the mean(u) only with `centre`.  The matrix
 * (Cen - z z^T/d) rstd is symmetric, so this is jvp and vjp at once.
 * centre_rows:  y = x - mean.
 * Poison: one NaN makes its whole row NaN.  Aliasing: z may be x; y may be t; centre_rows: y may be x. */
#include <math.h>

#include "kernels/ref/ref.h"

static double or_one(const taut_real *gain, int64_t c) { return gain ? ((const double *)gain)[c] : 1; }

static double mean(const double *x, int64_t d)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++) sum += x[c];
    return sum / (double)d;
}

void taut_ref_normalise(taut_real *z_, taut_real *rstd, const taut_scaled *also, const taut_real *x_, int64_t rows,
                        int64_t d, bool centre, double eps)
{
    for (int64_t r = 0; r < rows; r++) {
        double *z = (double *)z_ + r * d;
        const double *x = (const double *)x_ + r * d, *bias = also ? (const double *)also->bias : NULL;
        const double mu = centre ? mean(x, d) : 0;
        double var = 0;
        for (int64_t c = 0; c < d; c++) var += (x[c] - mu) * (x[c] - mu) / (double)d;
        const double scale = 1 / sqrt(var + eps);
        for (int64_t c = 0; c < d; c++) z[c] = (x[c] - mu) * scale;
        for (int64_t c = 0; also && c < d; c++)
            ((double *)also->y)[r * d + c] = ((const double *)also->gain)[c] * z[c] + (bias ? bias[c] : 0);
        ((double *)rstd)[r] = scale;
    }
}

void taut_ref_normalise_slope(taut_real *y_, const taut_real *t_, const taut_real *gain, const taut_real *z_,
                              const taut_real *rstd, int64_t rows, int64_t d, bool centre)
{
    for (int64_t r = 0; r < rows; r++) {
        double *y = (double *)y_ + r * d;
        const double *t = (const double *)t_ + r * d, *z = (const double *)z_ + r * d;
        const double scale = ((const double *)rstd)[r];
        double mu = 0, zt = 0;
        for (int64_t c = 0; c < d; c++) {
            const double u = or_one(gain, c) * t[c];
            if (centre) mu += u / (double)d;
            zt += z[c] * u / (double)d;
        }
        for (int64_t c = 0; c < d; c++) y[c] = scale * (or_one(gain, c) * t[c] - mu - z[c] * zt);
    }
}

void taut_ref_centre_rows(taut_real *y_, const taut_real *x_, int64_t rows, int64_t d)
{
    for (int64_t r = 0; r < rows; r++) {
        double *y = (double *)y_ + r * d;
        const double *x = (const double *)x_ + r * d;
        const double mu = mean(x, d);
        for (int64_t c = 0; c < d; c++) y[c] = x[c] - mu;
    }
}
