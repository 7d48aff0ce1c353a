/* Numbers that only round up, and numbers that only round down.
 *
 * taut_up  promise: 0 <= the true number <= v.  v = +inf says nothing, and is an answer: no bound is known.
 * taut_lo  promise: 0 <= v <= the true number.  v = 0 says nothing.
 * They are two types: an upper bound divided by an upper bound does not compile.  NaN becomes +inf (taut_lo: 0).
 *
 * The result of one IEEE operation lies less than one step between doubles away from the true one, in every rounding
 * mode and also where it underflows, so one nextafter repairs it.  up_add, up_mul, up_div and up_sqrt of an exact 0 are
 * exact and are not repaired: a zero weight keeps the bound 0, instead of the smallest double.  0 * inf is +inf. */
#ifndef TAUT_BOUND_UP_H
#define TAUT_BOUND_UP_H
#if defined __FAST_MATH__ || __FINITE_MATH_ONLY__
#error "taut certificates need IEEE arithmetic: no -Ofast, no -ffast-math"
#endif
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double v;
} taut_up;
typedef struct {
    double v;
} taut_lo;

#define UP_NONE ((taut_up){ INFINITY })
#define UP_ZERO ((taut_up){ 0 })

static inline taut_up up_wrap(double r) { return (taut_up){ isnan(r) ? INFINITY : r }; }
static inline taut_up up_exact(double x) { return up_wrap(fabs(x)); }
static inline taut_up up_above(double r, bool exact) { return up_wrap(exact ? r : nextafter(r, INFINITY)); }
static inline taut_up up_add(taut_up a, taut_up b) { return up_above(a.v + b.v, a.v == 0 || b.v == 0); }
static inline taut_up up_mul(taut_up a, taut_up b) { return up_above(a.v * b.v, a.v == 0 || b.v == 0); }
static inline taut_up up_div(taut_up a, taut_lo b) { return up_above(a.v / b.v, a.v == 0); }
static inline taut_up up_sqrt(taut_up a) { return up_above(sqrt(a.v), a.v == 0); }
static inline taut_up up_min(taut_up a, taut_up b) { return up_wrap(a.v <= b.v ? a.v : b.v); }
static inline taut_up up_max(taut_up a, taut_up b) { return up_wrap(a.v >= b.v ? a.v : b.v); }
static inline taut_up up_hypot(taut_up a, taut_up b)
{
    if (a.v == 0 || b.v == 0) return up_max(a, b);
    return up_sqrt(up_add(up_mul(a, a), up_mul(b, b)));
}
/* a * 2^e: exact but for underflow. */
static inline taut_up up_ldexp(taut_up a, int e)
{
    const double r = ldexp(a.v, e);
    return up_above(r, a.v == 0 || r >= 0x1p-1022);
}
static inline taut_up up_int(int64_t n) { return up_above((double)n, n <= ((int64_t)1 << 53)); }

static inline taut_lo lo_wrap(double r) { return (taut_lo){ r > 0 ? r : 0 }; }
static inline taut_lo lo_exact(double x) { return lo_wrap(fabs(x)); }
static inline taut_lo lo_add(taut_lo a, taut_lo b) { return lo_wrap(nextafter(a.v + b.v, 0)); }
static inline taut_lo lo_mul(taut_lo a, taut_lo b) { return lo_wrap(nextafter(a.v * b.v, 0)); }
static inline taut_lo lo_sqrt(taut_lo a) { return lo_wrap(nextafter(sqrt(a.v), 0)); }
static inline taut_lo lo_div(taut_lo a, taut_up b) { return lo_wrap(nextafter(a.v / b.v, 0)); }
static inline taut_lo lo_sub(taut_lo a, taut_up b) { return lo_wrap(nextafter(a.v - b.v, -INFINITY)); }

/* x - y for true numbers x <= a and y >= b, where it is known that x - y >= 0. */
static inline taut_up up_sub(taut_up a, taut_lo b)
{
    const double r = nextafter(a.v - b.v, INFINITY);
    return up_wrap(r < 0 ? 0 : r);
}

/* What a certificate states for a proved number: a billionth more (less), so that a checker that computes it another
 * way can afford its own roundings.  Every bound that a certificate states went through one of these (up_state leaves 0
 * and 1 as they are). */
static inline taut_up up_raise(taut_up a) { return up_mul(a, (taut_up){ 1 + 1e-9 }); }
static inline taut_lo lo_lower(taut_lo a) { return lo_mul(a, (taut_lo){ 1 - 1e-9 }); }

/* g_k = k u / (1 - k u), u = 2^-53: the relative error of k roundings to nearest.  An inner product of length k has
 *     |computed - exact| <= g_k sum_i |a_i b_i|
 * in any order of summation, with or without fma, if nothing underflows (up_rounded; range.h scales matrices for that). */
static inline taut_up up_gamma(int64_t k)
{
    const taut_up ku = up_mul(up_int(k), (taut_up){ 0x1p-53 });
    return ku.v < 1 ? up_div(ku, lo_sub((taut_lo){ 1 }, ku)) : UP_NONE;
}

/* More than products that underflow can lose, at most 2^-1075 each, in a vector made of up to 2^50 of them (l2), also where a
 * factor of a recipe stands behind them (at most 2^20).  However small that is, the layers behind may make it large again. */
#define UP_LOST ((taut_up){ 0x1p-1000 })
/* n roundings in a row of a vector of such sums, whose terms' sizes add up to `size`. */
static inline taut_up up_rounded(int64_t n, taut_up size) { return up_add(up_mul(up_gamma(n), size), UP_LOST); }
/* A size at which even relative errors, counted by 2^-53 or more, are above UP_LOST. */
static inline taut_up up_felt(taut_up size) { return up_add(size, (taut_up){ 0x1p-900 }); }
#endif
