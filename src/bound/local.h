/* Softmax attention at an input, and on a ball around it: proved bounds of the Jacobian's norm there, from the
 * activations and the weights.  attention.h is about all inputs of a size; this is about one, and is far smaller.
 *
 * Every x' with |x'_t - x_t| <= d_t for all tokens is covered (a flat ball of radius r: d = r).  A region like this is
 * convex, so the answers are Lipschitz constants on it.  Rounding is part of it: the bounds speak of the real function at
 * the doubles that are given.  NaN or infinite tokens, or no memory: +inf.  Formulas and proofs: local.c, local_row.c. */
#ifndef TAUT_BOUND_LOCAL_H
#define TAUT_BOUND_LOCAL_H
#include "bound/attention.h"

typedef struct {
    const double *xq, *xk;            /* tokens (tq, width) and (tk, width); self-attention reads xk only */
    const double *dq, *dk;            /* how far each may move, or NULL: not at all; self-attention reads dk only */
    const taut_up *slope_q, *slope_k; /* Lipschitz constant of what makes each token (a norm layer), or NULL: 1 */
    int64_t keys;                     /* how many of tk are real; the others are padding */
} taut_local_at;

/* Constants in the l2 norm over everything, each a bound by itself; flat is the smallest.  pair is of single small heads at an
 * input, else +inf.  tokens: in the max-token norm. */
typedef struct {
    taut_up triangle, concave, split, block, pair, flat, tokens;
} taut_local_bound;

/* The whole layer, W_O and `out` included (wo NULL: the heads' outputs side by side, out not used); and in heads[h],
 * where heads is not NULL, each head by itself without W_O. */
taut_local_bound up_attention_local(const taut_attention_weights *, const taut_local_at *, taut_local_bound *heads);

/* One head by itself, at the input and no further, as exactly as a certificate can be: the Jacobian is written out, its
 * distance to the real one bounded, and its norm proved by a Cholesky factor.  Self-attention without RoPE, radii 0,
 * and at most 2^24 entries; else +inf.  About 1e-9 above the truth. */
taut_up up_attention_exact(const taut_attention_weights *, const taut_local_at *, int64_t head);
#endif
