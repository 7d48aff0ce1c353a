/* Residual layers that are gradients of a potential, alone or inside a mix:
 *     keep x + mix (x - 2 V^T R f(V x + b)),   R a positive diagonal matrix, V (hidden, width).
 * Convex potential: R = I / s.  SLL: R = T^-1 with T_i = eps + sum_j |V V^T|_ij q_j / q_i,  q = exp(l). */
#ifndef TAUT_BOUND_POTENTIAL_H
#define TAUT_BOUND_POTENTIAL_H
#include <stdint.h>

#include "bound/curve.h"

/* Of the mix, when ||V^T R V|| <= ratio.  R negative: hand the slopes -hi and -lo in. */
taut_up up_potential_lip(taut_slopes, taut_up ratio, double keep, double mix);

/* What a pass in double adds: frobenius of R^1/2 V, bias |R^1/2 b|, R known to a relative error of delta; no entry of R^-1/2
 * below root, and plain = |V|_F, for what underflows. */
taut_up up_potential_round(int64_t width, int64_t hidden, taut_slopes, taut_up frobenius, taut_up bias, taut_up delta,
                           taut_up size, taut_lo root, taut_up plain);

/* SLL from its weights; b may be NULL.  ratio is 1 for all finite weights, +inf otherwise. */
typedef struct {
    taut_up ratio;
    taut_up bias;  /* |T^-1/2 b| */
    taut_up delta; /* how wrong 1/T is when computed in double, relatively */
} taut_sll_numbers;
taut_sll_numbers up_sll(const double *v, const double *b, const double *l, int64_t hidden, int64_t width, double eps);

/* delta where another arithmetic computes T: products of rows are off by product |v_i||v_j| + least, and what is made of
 * them by `after` of itself.  +inf where that is no small error, or numbers leave the range of floats. */
typedef struct {
    taut_up product, least, after;
} taut_sll_off;
taut_up up_sll_delta(const double *v, const double *l, int64_t hidden, int64_t width, double eps, taut_sll_off);
#endif
