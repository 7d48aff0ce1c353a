/* Multi-head softmax attention from its weights to proved numbers.
 *
 *     y_i = out * W_O concat_h(sum_j P^h_ij v^h_j) + b_O,   P^h = row softmax of scale * q^h_i . k^h_j + alibi
 *     q = W_Q x + b_Q (queries),  k = W_K x + b_K,  v = W_V x + b_V (keys),  heads of width dh side by side.
 *
 * Query i sees every key j, and with `causal` those with j <= i + tk - tq.  A query that sees
 * no key answers b_O.  With `rope`, q and k are turned by any rotations of their positions; with `alibi`,
 * 2^(-8(h+1)/heads) |i + tk - tq - j| is subtracted from head h's logits.  Formulas and proofs: attention.c. */
#ifndef TAUT_BOUND_ATTENTION_H
#define TAUT_BOUND_ATTENTION_H
#include <stdbool.h>
#include <stdint.h>

#include "bound/ledger.h"

typedef struct {
    int64_t width, heads, dh;
    const double *wq, *wk, *wv;      /* (heads*dh, width), row-major: y = W x */
    const double *wo;                /* (width, heads*dh) */
    const double *bq, *bk, *bv;      /* heads*dh, or NULL for 0 */
    const double *bo;                /* width, or NULL for 0 */
    double scale, out, rope_base;    /* the base only where the point counts, in local.h */
    bool rope, causal, alibi, cross; /* cross: queries and keys are different tokens */
    int64_t tq, tk;                  /* how many queries and keys; only `flat` depends on them */
    int64_t keys_min; /* a row sees no fewer keys than this, or all of which `causal` lets it: tk, but in windows */
} taut_attention_weights;

/* On the region |x_j| <= X:  tokens is a Lipschitz constant in the max-token norm, flat in the l2 norm
 * over everything, growth bounds the l2 norm of every output token.  Cross-attention: constants for
 * queries and keys moving together, as one input. */
typedef struct {
    taut_up tokens, flat, growth;
} taut_attention_bound;

/* The ledger (or NULL) gets a node for every head that counts and for every choice of head weights. */
taut_attention_bound up_attention(const taut_attention_weights *w, taut_up x_q, taut_up x_k, taut_ledger *);
#endif
