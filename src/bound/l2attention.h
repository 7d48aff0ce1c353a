/* Attention over distances with tied weights (Kim et al.), from its weights to proved numbers. */
#ifndef TAUT_BOUND_L2ATTENTION_H
#define TAUT_BOUND_L2ATTENTION_H
#include <stdint.h>

#include "bound/ledger.h"

typedef struct {
    int64_t width, heads, dh, tokens;
    const double *wq, *wv; /* (heads*dh, width) */
    const double *wo;      /* (width, heads*dh) */
} taut_l2attention_weights;

/* Lipschitz constants in both norms, any input; growth times the longest token bounds the output's; round is a token's
 * rounding error in double when tokens are no longer than `size`. */
typedef struct {
    taut_up tokens, flat, growth, round;
} taut_l2attention_bound;

taut_l2attention_bound up_l2attention(const taut_l2attention_weights *, taut_up size, taut_ledger *);

taut_up up_lambert(double x); /* W0(x / e), W0(z) e^W0(z) = z, for x >= 0 */
#endif
