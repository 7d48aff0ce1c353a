/* Numbers that only err upward: the checker runs with the processor rounding up (check.c sets it), so that +, *, / and
 * sqrt of numbers >= 0 give upper bounds in plain C, and -(b - a) a lower bound of a - b.  What loops over matrices do
 * is counted in roundings of at most u each, true in every rounding mode.  +inf is "no bound"; so is NaN, which only 0
 * times infinity makes: fmin leaves it aside, and no comparison lets it pass. */
#ifndef TAUT_CHECK_UP_H
#define TAUT_CHECK_UP_H
#include <math.h>
#ifdef __FAST_MATH__
#error "the checker counts roundings: no fast-math"
#endif
#if defined __GNUC__ && !defined __clang__ && !defined __ROUNDING_MATH__
#error "the checker changes the rounding mode: -frounding-math"
#endif

#define CK_U 0x1p-52 /* |fl(x) - x| <= CK_U |x| */

static inline double ck_below(double x) { return nextafter(x, -INFINITY); } /* under what x was rounded up from */
static inline double ck_over(double a, double b) { return b > 0 ? a / b : INFINITY; }
static inline double ck_hypot(double a, double b)
{
    const double m = fmax(a, b); /* whose square may be too large, where the root is not */
    return m > 1e150 && m < INFINITY ? m * sqrt(a / m * (a / m) + b / m * (b / m)) : sqrt(a * a + b * b);
}

/* Relative error of a term that went through at most k roundings, k u / (1 - k u), and its second-order company. */
static inline double ck_gamma(double k) { return 1.01 * (k * CK_U / ck_below(1 - k * CK_U)); }
#endif
