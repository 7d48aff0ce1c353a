/* How far a forward pass in double (the ref kernels, plain sums in any order) can be from real arithmetic:
 * the l2 norm of one token's error, when the token that goes in is exact and no longer than `size`. libm's
 * erf, exp, tanh, cos, sin and pow are taken to be within 4 units in the last place, erfc within 8. */
#ifndef TAUT_BOUND_ROUNDING_H
#define TAUT_BOUND_ROUNDING_H
#include "bound/attention.h"
#include "bound/mlp.h"

taut_up up_round_sum(taut_up a, taut_up b); /* of a few scalings and one addition: 2^-50 (a + b) */
taut_up up_round_linear(const double *w, const double *b, int64_t rows, int64_t cols, taut_up size); /* b may be NULL */
taut_up up_round_curve(taut_up size); /* f(x) for |x| <= size, |f(x)| <= |x| */
taut_up up_round_normlayer(const double *g, const double *b, int64_t d, double eps, taut_up size);
taut_up up_round_size(const double *g, const double *b, int64_t d); /* |g z + b|, |z| <= sqrt(d) (1 + 2^-20) */
taut_up up_round_centre(const double *g, int64_t d, taut_up size);
taut_up up_round_mlp(const taut_mlp_weights *, taut_up size);
taut_up up_round_attention(const taut_attention_weights *, taut_up size);
#endif
