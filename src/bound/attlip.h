/* What is proved of AttLip: how far a computed residual is from the real one, and the layer's constant. */
#ifndef TAUT_BOUND_ATTLIP_H
#define TAUT_BOUND_ATTLIP_H
#include "bound/up.h"

/* One head's numbers where the residual was evaluated, as computed. */
typedef struct {
    double longest; /* max |v_i| */
    double columns; /* |1 + col|, l2 */
    double g;       /* |G| */
    double weight;  /* |W_h|, Frobenius */
} taut_attlip_head;

/* One example's. */
typedef struct {
    int64_t tokens, width, heads, dh;
    double scale, eta;
    double near; /* what a step of distance takes from a logit, at most */
    bool rope;
    double longest, y, x, residual; /* max |y_i|; |y|, |x|; |g| as computed */
} taut_attlip_point;

/* An upper bound of the real |g|, g = grad f(y) + (y - x)/eta, from what the ref kernels computed: |g| with the rounding
 * of its sum, plus the rounding of every entry.  Not finite: +inf. */
taut_up up_attlip_residual(const taut_attlip_point *, const taut_attlip_head *);
#endif
