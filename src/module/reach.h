/* How far the affine maps of an attention reach, for tokens of at most `size`: what bounds of several kinds begin with. */
#ifndef TAUT_MODULE_REACH_H
#define TAUT_MODULE_REACH_H
#include "bound/norm.h"
#include "bound/plash.h"
#include "bound/rounding.h"
#include "module/qkv.h"

/* W (d, d), whose norm the ledger calls `key`. */
static inline taut_reach reach_of(taut_ledger *l, const char *key, const taut_param *w, int64_t d, taut_up size)
{
    const double *v = taut_ref_values(w);
    const taut_up norm = up_state(l, key, up_norm(v, d, d)), round = up_round_linear(v, NULL, d, d, size);
    return (taut_reach){ norm, up_add(up_mul(norm, size), round), round };
}

/* The same of W x + b. */
static inline taut_reach qkv_reach(const taut_qkv *s, const taut_affine *a, taut_ledger *l, taut_up size)
{
    static const char *const key[][2] = {
        { "query", "query_bias" }, { "key", "key_bias" }, { "value", "value_bias" }, { "out_norm", "bias" }
    };
    const int at = a == &s->q ? 0 : a == &s->k ? 1 : a == &s->v ? 2 : 3;
    taut_reach r = reach_of(l, key[at][0], &a->weight, s->width, size);
    if (!s->bias) return r;
    const double *w = taut_ref_values(&a->weight), *b = taut_ref_values(&a->bias);
    r.round = up_round_linear(w, b, s->width, s->width, size);
    r.size = up_add(up_mul(r.norm, size), up_add(up_state(l, key[at][1], up_norm_frobenius(b, s->width)), r.round));
    return r;
}
#endif
