/* How far the affine maps of an attention reach, for tokens of at most `size`: what bounds of several kinds begin with. */
#ifndef TAUT_MODULE_REACH_H
#define TAUT_MODULE_REACH_H
#include "bound/norm.h"
#include "bound/plash.h"
#include "bound/rounding.h"
#include "module/qkv.h"

/* W (d, d) and b, which may be NULL, as doubles. */
static inline taut_reach reach_of(const double *w, const double *b, int64_t d, taut_up size)
{
    const taut_up norm = up_norm(w, d, d), linear = up_mul(norm, size);
    const taut_up all = b ? up_add(linear, up_norm_frobenius(b, d)) : linear, round = up_round_linear(w, b, d, d, size);
    return (taut_reach){ norm, up_add(all, round), round };
}

static inline taut_reach qkv_reach(const taut_qkv *s, const taut_affine *a, taut_up size)
{
    return reach_of(taut_ref_values(&a->weight), s->bias ? taut_ref_values(&a->bias) : NULL, s->width, size);
}
#endif
