/* The softmax Jacobian M = diag(p) - p p^T of one row of probabilities: its largest eigenvalue s_1 from both sides, the
 * order-statistic bounds g_k >= s_k.  p >= 0; only its direction counts (p and 2 p are the same row), so that a sum of
 * 1 +- rounding does no harm.  A row with a single positive entry, or none, has M = 0.  The derivatives that a penalty
 * needs are in kernels/jasmin.h. */
#ifndef TAUT_BOUND_SOFTMAX_JACOBIAN_H
#define TAUT_BOUND_SOFTMAX_JACOBIAN_H
#include "bound/up.h"

typedef struct {
    taut_lo lo;
    taut_up up;
} taut_softmax_slope;

/* lo <= s_1 <= up, a few units in the last place apart; a negative, infinite or NaN entry: 0 and +inf. */
taut_softmax_slope softmax_slope(const double *p, int64_t n);

/* g_k = x_(k) (1 - x_(k) + x_(k+1)), x sorted downwards, x_(n+1) = 0, k from 1; rounded up.  s_k <= g_k, and g_1 <= 1/2. */
taut_up up_softmax_g(const double *p, int64_t n, int64_t k);
#endif
