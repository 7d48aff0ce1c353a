/* Attention by position alone:  y_i = W_O [g_h sum_j q^h_ij W_V^h x_j]_h + b_O, the rows of q^h probabilities that a
 * table of logits by distance decides and the input does not. */
#ifndef TAUT_BOUND_POSATTENTION_H
#define TAUT_BOUND_POSATTENTION_H
#include <stdint.h>

#include "bound/ledger.h"

typedef struct {
    int64_t width, heads, tokens;
    const double *wv, *wo, *bo; /* (width, width) both, the rows of head h together in wv; width, or NULL */
    const double *table, *gain; /* (heads, span) logits; one number a head */
    int64_t span;               /* query i and key j meet in column i - j, or i - j + span/2 where not causal */
    bool causal;
    bool torus; /* tokens on a torus: span of them, always */
} taut_posattention_weights;

typedef struct {
    taut_up lip, growth; /* |y_i - y_i'| <= lip |x - x'|, |y_i| <= growth for tokens no longer than size */
} taut_posattention_bound;

taut_posattention_bound up_posattention(const taut_posattention_weights *, bool flat, taut_up size, taut_ledger *);

/* How far the ref kernels may be from real arithmetic, one token's l2 norm (bound/rounding.h). */
taut_up up_round_posattention(const taut_posattention_weights *, taut_up size);

/* The largest sum of a column of q^h, for sequences of w->tokens: ||q^h||_2^2 is at most that. */
taut_up up_posattention_column(const taut_posattention_weights *, int64_t head);
#endif
