/* Rows scaled to the sphere, with a floor under the length so that short rows stay short:
 *     y = (factor / max(|x|, floor)) x: where factor = floor, rows that are shorter keep their bits
 *     slope  y = factor (t - u (u.t)) / |x|,  u = x / |x|,  where |x| > floor;  factor t / floor elsewhere
 * Poison: NaN in a row makes the row NaN (a NaN length is above every floor).  Aliasing: unit_rows: y may be x. */
#include <math.h>

#include "kernels/ref/ref.h"

static double length(const double *x, int64_t d)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++) sum += x[c] * x[c];
    return sqrt(sum);
}

void taut_ref_unit_rows(taut_real *y_, const taut_real *x_, int64_t rows, int64_t d, double floor, double factor)
{
    for (int64_t r = 0; r < rows; r++) {
        double *y = (double *)y_ + r * d;
        const double *x = (const double *)x_ + r * d, size = length(x, d), by = factor / (size <= floor ? floor : size);
        for (int64_t c = 0; c < d; c++) y[c] = by * x[c];
    }
}

void taut_ref_unit_rows_slope(taut_real *y_, const taut_real *t_, const taut_real *x_, int64_t rows, int64_t d,
                              double floor, double factor)
{
    for (int64_t r = 0; r < rows; r++) {
        double *y = (double *)y_ + r * d;
        const double *x = (const double *)x_ + r * d, *t = (const double *)t_ + r * d, size = length(x, d);
        const bool low = size <= floor;
        double along = 0;
        for (int64_t c = 0; c < d && !low; c++) along += x[c] / size * t[c];
        for (int64_t c = 0; c < d; c++)
            y[c] = low ? factor * t[c] / floor : factor * (t[c] - x[c] / size * along) / size;
    }
}
