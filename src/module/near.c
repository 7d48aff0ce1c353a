/* Slopes of an activation on an interval.
 *
 * ReLU and |x| are straight on either side of 0.  The others are smooth: by the mean value theorem every secant of the
 * interval is within r sup|f''| of f'(z), and within the slopes of the whole line.  sup|f''|:
 *     GELU   phi(x) (2 - x^2): 2 phi(0) = sqrt(2/pi) = 0.79788...        tanh  2 t (1 - t^2): 4 / sqrt(27) = 0.76980...
 *     ELU    e^x left of 0, and f' is 1 from there on: 1
 *     SiLU   s (1 - s) (2 + x (1 - 2 s)): at 0, 1/2                      tanh form of GELU  0.79788... at 0
 * rounded up; tests/module/t_near.c samples them.  f'(z) in double is within 2^-40 of the real one. */
#include <math.h>

#include "module/curves.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double slope_at(taut_curve f, double x)
{
    const double root = 0.79788456080286535588, cubic = 0.044715;
    const double u = 2 * root * (x + cubic * x * x * x);
    if (f == TAUT_GELU) return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) * 0.5 * root;
    if (f == TAUT_GELU_TANH) return sigmoid(u) + x * sigmoid(u) * sigmoid(-u) * 2 * root * (1 + 3 * cubic * x * x);
    if (f == TAUT_ELU) return x > 0 ? 1 : exp(x);
    if (f == TAUT_SILU) return sigmoid(x) * (1 + x * sigmoid(-x));
    return 1 / (cosh(x) * cosh(x));
}

taut_slopes taut_curve_near(taut_curve f, double z, double r)
{
    const taut_slopes all = taut_curve_slopes(f);
    const double bend = f == TAUT_SILU ? 0.5001 : f == TAUT_TANH ? 0.7699 : f == TAUT_ELU ? 1 : 0.7979;
    const double up = z > 0 && z > r ? 1 : 0, down = z < 0 && -z > r ? 1 : 0;
    if (f == TAUT_RELU || f == TAUT_ABS) {
        if (up > 0) return (taut_slopes){ 1, 1 };
        if (down > 0) return f == TAUT_RELU ? (taut_slopes){ 0, 0 } : (taut_slopes){ -1, -1 };
        return all;
    }
    const double s = slope_at(f, z), half = bend * r + 0x1p-40;
    if (!(half < 4) || !isfinite(s)) return all; /* also NaN, and huge z where the formulas overflow */
    return (taut_slopes){ fmax(all.lo, s - half), fmin(all.hi, s + half) };
}
