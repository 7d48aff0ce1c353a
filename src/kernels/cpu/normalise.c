/* Row normalisation, its symmetric derivative, and centring (formulas: ref/normalise.c).
 *
 * A row is read as floats and worked in double, so a large mean costs nothing; a row is one thread's work.
 * Poison    one NaN or infinity makes its whole row NaN.
 * Aliasing  normalise: z may be x; normalise_slope: y may be t; centre_rows: y may be x.
 * Error     z, rstd: 2 u |value|, u = 2^-24, plus (d+4) 2^-52 max|x| rstd from the double sums;
 *           what is asked for besides: 2 u (|gain z| + |bias|) for the z beside it;
 *           slope: 2 u |y| + (d+4) 2^-52 rstd (|u| + mean|u| + |z| mean|z u|), u = gain t;
 *           centre: 2 u |y| + (d+4) 2^-52 max|x|. */
#include <math.h>

#include "kernels/cpu/cpu.h"

static double mean(const float *x, int64_t d)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < d; c++) sum += (double)x[c];
    return sum / (double)d;
}

/* y = gain z + bias */
static void scaled_row(const taut_scaled *also, const float *z, int64_t r, int64_t d)
{
    float *y = (float *)also->y + r * d;
    const float *gain = (const float *)also->gain, *bias = (const float *)also->bias;
    if (bias) {
#pragma omp simd
        for (int64_t c = 0; c < d; c++) y[c] = gain[c] * z[c] + bias[c];
    } else {
#pragma omp simd
        for (int64_t c = 0; c < d; c++) y[c] = gain[c] * z[c];
    }
}

void CPU(normalise)(taut_real *z_, taut_real *rstd, const taut_scaled *also, const taut_real *x_, int64_t rows,
                    int64_t d, bool centre, double eps)
{
#pragma omp parallel for schedule(static) if (rows * d > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        float *z = (float *)z_ + r * d;
        const float *x = (const float *)x_ + r * d;
        const double mu = centre ? mean(x, d) : 0;
        double var = 0;
#pragma omp simd reduction(+ : var)
        for (int64_t c = 0; c < d; c++) var += ((double)x[c] - mu) * ((double)x[c] - mu);
        const double scale = 1 / sqrt(var / (double)d + eps);
#pragma omp simd
        for (int64_t c = 0; c < d; c++) z[c] = (float)(((double)x[c] - mu) * scale);
        if (also) scaled_row(also, z, r, d);
        ((float *)rstd)[r] = (float)scale;
    }
}

/* y = rstd (u - mean(u) - z mean(z u)), u = gain t; gain: NULL for 1, a constant where this is called. */
static inline void slope_row(float *y, const float *t, const float *gain, const float *z, double rstd, int64_t d,
                             bool centre)
{
    double mu = 0, zt = 0;
#pragma omp simd reduction(+ : mu, zt)
    for (int64_t c = 0; c < d; c++) {
        const double u = (gain ? (double)gain[c] : 1) * (double)t[c];
        mu += u, zt += (double)z[c] * u;
    }
    mu = centre ? mu / (double)d : 0, zt /= (double)d;
#pragma omp simd
    for (int64_t c = 0; c < d; c++)
        y[c] = (float)(rstd * ((gain ? (double)gain[c] : 1) * (double)t[c] - mu - (double)z[c] * zt));
}

void CPU(normalise_slope)(taut_real *y_, const taut_real *t_, const taut_real *gain, const taut_real *z_,
                          const taut_real *rstd, int64_t rows, int64_t d, bool centre)
{
#pragma omp parallel for schedule(static) if (rows * d > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        float *y = (float *)y_ + r * d;
        const float *t = (const float *)t_ + r * d, *z = (const float *)z_ + r * d;
        const double scale = ((const float *)rstd)[r];
        if (gain)
            slope_row(y, t, (const float *)gain, z, scale, d, centre);
        else
            slope_row(y, t, NULL, z, scale, d, centre);
    }
}

void CPU(centre_rows)(taut_real *y_, const taut_real *x_, int64_t rows, int64_t d)
{
#pragma omp parallel for schedule(static) if (rows * d > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        float *y = (float *)y_ + r * d;
        const float *x = (const float *)x_ + r * d;
        const double mu = mean(x, d);
#pragma omp simd
        for (int64_t c = 0; c < d; c++) y[c] = (float)((double)x[c] - mu);
    }
}
