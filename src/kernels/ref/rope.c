/* Rotary positions: in every head, turn the pair (x_i, x_{i+dh/2}) by the angle
 *     sign * (row % t) * base^(-2i/dh),     i < dh/2.
 * An odd dh leaves its last feature alone.  Rotations are orthogonal: sign -1 is inverse and adjoint of
 * sign +1.  Aliasing: y may be x. */
#include <math.h>

#include "kernels/ref/ref.h"

void taut_ref_rope(taut_real *y_, const taut_real *x_, int64_t rows, int64_t t, int64_t heads, int64_t dh, double base,
                   double sign)
{
    const int64_t half = dh / 2;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < heads; h++) {
            double *y = (double *)y_ + (r * heads + h) * dh;
            const double *x = (const double *)x_ + (r * heads + h) * dh;
            for (int64_t i = 0; i < half; i++) {
                const double angle = sign * (double)(r % t) * pow(base, -2.0 * (double)i / (double)dh);
                const double a = x[i], b = x[i + half];
                y[i] = cos(angle) * a - sin(angle) * b;
                y[i + half] = sin(angle) * a + cos(angle) * b;
            }
            if (dh % 2) y[dh - 1] = x[dh - 1];
        }
}
