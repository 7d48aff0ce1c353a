/* Numbers as a proof states them: each 1e-9 above what was proved (up_state), so that k in a row are k times that. */
#ifndef TAUT_TESTS_STATED_H
#define TAUT_TESTS_STATED_H
#include <math.h>

#include "harness.h"

static inline double stated_at_most(double x, int k) { return x * pow(1 + 1e-9, k); }

/* v is x, behind at most k stated numbers. */
#define CHECK_STATED(v, x, k, tol, what)                  \
    do {                                                  \
        const double v_ = (v), x_ = (x), tol_ = (tol);    \
        CHECK_LE(x_ - tol_, v_, what);                    \
        CHECK_LE(v_, stated_at_most(x_, k) + tol_, what); \
    } while (0)
#endif
