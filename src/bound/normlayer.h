/* LayerNorm and RMSNorm:  y = diag(g) z + b,  z = C x / sqrt(|C x|^2 / d + eps),  C = I - 11^T/d for
 * LayerNorm (centre) and I for RMSNorm.  All constants are in one token's l2 norm; g NULL means ones,
 * b NULL zeros.  `norm` below is up_diag_centre_norm's answer, computed once and handed in. */
#ifndef TAUT_BOUND_NORMLAYER_H
#define TAUT_BOUND_NORMLAYER_H
#include <stdbool.h>
#include <stdint.h>

#include "bound/up.h"

taut_up up_diag_centre_norm(const double *g, int64_t d, bool centre); /* ||diag(g) C|| */

/* Lipschitz on all of R^d: norm / sqrt(eps); +inf when eps is 0. */
taut_up up_normlayer_global(taut_up norm, double eps);

/* Lipschitz on the ball |x' - x| <= r, where size is |C x| from below. */
taut_up up_normlayer_ball(taut_up norm, int64_t d, double eps, taut_lo size, taut_up r);

/* |y(x') - y(x)| <= this * |x' - x| for every |x' - x| <= r: one end stays at the centre x. */
taut_up up_normlayer_pointed(taut_up norm, int64_t d, double eps, taut_lo size, taut_up r);

/* |y| <= |b| + norm * min(sqrt d, X / sqrt(X^2 / d + eps)) for |x| <= X; X = +inf is fine. */
taut_up up_normlayer_radius(taut_up norm, const double *b, int64_t d, double eps, taut_up x);

taut_lo lo_centred_norm(const double *x, int64_t d, bool centre); /* |C x| from below */
#endif
