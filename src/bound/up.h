/* Numbers that only round up, and numbers that only round down.
 *
 * taut_up  promise: 0 <= the true number <= v; +inf means "cannot say", which is an answer.
 * taut_lo  promise: 0 <= v <= the true number.
 * Two types, so that dividing by an upper bound does not compile.  NaN becomes +inf (or 0 for lo). */
#ifndef TAUT_BOUND_UP_H
#define TAUT_BOUND_UP_H
#if defined __FAST_MATH__ || __FINITE_MATH_ONLY__
#error "taut certificates need IEEE arithmetic: no -Ofast, no -ffast-math"
#endif
#include <math.h>

typedef struct { double v; } taut_up;
typedef struct { double v; } taut_lo;

#define UP_NONE ((taut_up){ INFINITY })

static inline taut_up up_wrap(double r) { return (taut_up){ isnan(r) ? INFINITY : r }; }
static inline taut_up up_exact(double x) { return up_wrap(fabs(x)); }
static inline taut_up up_add(taut_up a, taut_up b) { return up_wrap(nextafter(a.v + b.v, INFINITY)); }
static inline taut_up up_mul(taut_up a, taut_up b) { return up_wrap(nextafter(a.v * b.v, INFINITY)); }
static inline taut_up up_div(taut_up a, taut_lo b) { return up_wrap(nextafter(a.v / b.v, INFINITY)); }
static inline taut_up up_sqrt(taut_up a) { return up_wrap(nextafter(sqrt(a.v), INFINITY)); }
static inline taut_up up_min(taut_up a, taut_up b) { return a.v <= b.v ? a : b; }
static inline taut_up up_max(taut_up a, taut_up b) { return a.v >= b.v ? a : b; }
static inline taut_up up_hypot(taut_up a, taut_up b) { return up_sqrt(up_add(up_mul(a, a), up_mul(b, b))); }

static inline taut_lo lo_wrap(double r) { return (taut_lo){ r > 0 ? r : 0 }; }
static inline taut_lo lo_exact(double x) { return lo_wrap(fabs(x)); }
static inline taut_lo lo_add(taut_lo a, taut_lo b) { return lo_wrap(nextafter(a.v + b.v, 0)); }
static inline taut_lo lo_mul(taut_lo a, taut_lo b) { return lo_wrap(nextafter(a.v * b.v, 0)); }
static inline taut_lo lo_sqrt(taut_lo a) { return lo_wrap(nextafter(sqrt(a.v), 0)); }
static inline taut_lo lo_div(taut_lo a, taut_up b) { return lo_wrap(nextafter(a.v / b.v, 0)); }
static inline taut_lo lo_sub(taut_lo a, taut_up b) { return lo_wrap(nextafter(a.v - b.v, -INFINITY)); }
#endif
