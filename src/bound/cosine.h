/* Multi-head scaled cosine attention from its weights to proved numbers.
 *
 *     y_i = out * W_O concat_h(sum_j P^h_ij v^h_j) + b_O,   P^h = row softmax of tau n(q^h_i).n(k^h_j) + alibi
 *     q = W_Q x + b_Q,  k = W_K x + b_K,  v = W_V x + b_V or its n(v),   n(z) = z / sqrt(|z|^2 + eps)
 *
 * Masks and alibi as in bound/attention.h; q and k may be turned by any rotations of their positions.  Formulas
 * and proofs: cosine.c, docs/modules/cosattention.md. */
#ifndef TAUT_BOUND_COSINE_H
#define TAUT_BOUND_COSINE_H
#include "bound/attention.h"

typedef struct {
    int64_t width, heads, dh;
    const double *wq, *wk, *wv; /* (heads*dh, width) */
    const double *wo;           /* (width, heads*dh) */
    const double *bq, *bk, *bv; /* heads*dh, or NULL for 0 */
    const double *bo;           /* width, or NULL for 0 */
    double tau, eps, out;
    bool values, causal, alibi; /* values: these are normalised too */
    bool rope;                  /* adds rounding, nothing else */
    int64_t tokens, keys_min;   /* only `flat` depends on them */
} taut_cosine_weights;

/* On the region |x_j| <= x.  The ledger (or NULL) gets a node for every head and every choice of head weights. */
taut_attention_bound up_cosine(const taut_cosine_weights *, taut_up x, taut_ledger *);

/* What a pass in double adds to an output token (bound/rounding.h). */
taut_up up_cosine_round(const taut_cosine_weights *, taut_up x);
#endif
