/* y = f(x), and y = f'(x) t, which is jvp and vjp at once because the Jacobian is diagonal.
 *
 *   GELU       x Phi(x),  Phi(x) = erfc(-x/sqrt 2)/2           f' = Phi(x) + x phi(x)
 *   GELU_TANH  x s(2u),   u = sqrt(2/pi) (x + 0.044715 x^3)    f' = s + x s (1-s) 2u'
 *   RELU       max(x, 0)                                       f' = [x > 0]
 *   SILU       x s(x),    s(x) = 1/(1 + e^-x)                  f' = s (1 + x (1-s))
 *   TANH       tanh x                                          f' = 1 - tanh^2 x
 *   ABS        |x|                                             f' = sign x, 0 at 0
 *   ELU        x, and e^x - 1 where x <= 0                     f' = 1, and e^x where x <= 0
 * erfc keeps the left tail of Phi to full relative precision, where 1 + erf would round to 0.
 * 1-s is taken as s(-x) and 1 - tanh^2 as 1/cosh^2 for the same reason.
 * Poison: NaN gives NaN.  Slopes are defined for finite x only.  Aliasing: y may be x, and y may be t. */
#include <math.h>

#include "kernels/ref/ref.h"

static const double ROOT_2_PI = 0.79788456080286535588, CUBIC = 0.044715;

static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

static double value(double x, taut_curve f)
{
    switch (f) {
    case TAUT_GELU:
        return 0.5 * x * erfc(-x * M_SQRT1_2);
    case TAUT_GELU_TANH:
        return x * sigmoid(2 * ROOT_2_PI * (x + CUBIC * x * x * x));
    case TAUT_RELU:
        return isnan(x) || x > 0 ? x : 0;
    case TAUT_SILU:
        return x * sigmoid(x);
    case TAUT_TANH:
        return tanh(x);
    case TAUT_ABS:
        return fabs(x);
    case TAUT_ELU:
        return x > 0 ? x : expm1(x);
    }
    return NAN;
}

static double slope(double x, taut_curve f)
{
    switch (f) {
    case TAUT_GELU:
        return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) * 0.5 * ROOT_2_PI;
    case TAUT_GELU_TANH: {
        const double u2 = 2 * ROOT_2_PI * (x + CUBIC * x * x * x);
        return sigmoid(u2) + x * sigmoid(u2) * sigmoid(-u2) * 2 * ROOT_2_PI * (1 + 3 * CUBIC * x * x);
    }
    case TAUT_RELU:
        return isnan(x) ? x : x > 0;
    case TAUT_SILU:
        return sigmoid(x) * (1 + x * sigmoid(-x));
    case TAUT_TANH:
        return 1 / (cosh(x) * cosh(x));
    case TAUT_ABS:
        return isnan(x) ? x : (x > 0) - (x < 0);
    case TAUT_ELU:
        return x > 0 ? 1 : exp(x);
    }
    return NAN;
}

void taut_ref_pointwise(taut_real *y_, const taut_real *x_, taut_curve f, int64_t len)
{
    double *y = (double *)y_;
    const double *x = (const double *)x_;
#pragma omp parallel for schedule(static) if (len > 4096)
    for (int64_t i = 0; i < len; i++) y[i] = value(x[i], f);
}

void taut_ref_pointwise_slope(taut_real *y_, const taut_real *t_, const taut_real *x_, taut_curve f, int64_t len)
{
    double *y = (double *)y_;
    const double *t = (const double *)t_, *x = (const double *)x_;
#pragma omp parallel for schedule(static) if (len > 4096)
    for (int64_t i = 0; i < len; i++) y[i] = slope(x[i], f) * t[i];
}
