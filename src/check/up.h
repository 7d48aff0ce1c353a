/* Numbers that only err upward.  Every operation is done in round-to-nearest double and then moved up by nextafter,
 * unless its exact rounding error (two-sum, fma) shows that the result is not below the true one: 0, 1 and other exact
 * results stay exact.  NaN becomes +inf, "no bound".  A lower bound of a - b is -(an upper bound of b - a). */
#ifndef TAUT_CHECK_UP_H
#define TAUT_CHECK_UP_H
#include <math.h>
#ifdef __FAST_MATH__
#error "the checker counts roundings: no fast-math"
#endif

#define CK_U 0x1p-53 /* |fl(x) - x| <= CK_U |x| */

static inline double ck_next(double x) { return isnan(x) ? INFINITY : nextafter(x, INFINITY); }
static inline double ck_below(double x) { return -ck_next(-x); }
static inline double ck_add(double a, double b)
{
    const double s = a + b, t = s - a, low = (a - (s - t)) + (b - t); /* a + b = s + low exactly */
    return isnan(s) ? INFINITY : isinf(s) || low <= 0 ? s : ck_next(s);
}
static inline double ck_mul(double a, double b)
{
    const double p = a * b;
    if (isnan(p)) return INFINITY; /* 0 times infinity says nothing */
    if (a == 0 || b == 0 || isinf(p)) return p;
    return fabs(p) > 0x1p-900 && fma(a, b, -p) <= 0 ? p : ck_next(p); /* tiny: the error itself could underflow */
}
static inline double ck_div(double a, double b) { return a == 0 && b > 0 ? 0 : ck_next(a / b); } /* a, b >= 0 */
static inline double ck_sqrt(double a) { return a == 0 ? 0 : ck_next(sqrt(a)); }
static inline double ck_hypot(double a, double b) { return ck_sqrt(ck_add(ck_mul(a, a), ck_mul(b, b))); }
static inline double ck_sub_down(double a, double b) { return -ck_add(b, -a); } /* at most a - b */

/* Relative error of a term that went through at most k roundings, k u / (1 - k u), and its second-order company. */
static inline double ck_gamma(double k) { return 1.01 * ck_div(k * CK_U, 1 - k * CK_U); }
#endif
