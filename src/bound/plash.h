/* What PLASH's two ends do to a bound; the middle is a module of its own.  docs/modules/plash.md. */
#ifndef TAUT_BOUND_PLASH_H
#define TAUT_BOUND_PLASH_H
#include "bound/up.h"

/* Norms of the affine maps and how long their results are, for tokens in the region. */
typedef struct {
    taut_up norm, size, round; /* ||W||, |W x + b|, rounding of a token */
} taut_reach;

typedef struct {
    taut_reach q, k, v, kg, vg; /* kg, vg: of a representative */
    taut_up prototype;          /* the longest one of a head */
    double route, scale;        /* factors of the two softmaxes' logits */
    int64_t heads, groups, tq, tk, dh;
} taut_plash_reach;

typedef struct {
    taut_up size, tokens, flat, round; /* of a representative: its length, Lip of all in the two norms, rounding */
} taut_plash_route;
taut_plash_route up_plash_route(const taut_plash_reach *);

typedef struct {
    taut_up size, query, group_tokens, group_flat, round; /* Lip in the queries and in the representatives */
} taut_plash_readout;
taut_plash_readout up_plash_readout(const taut_plash_reach *, taut_up group_round);
#endif
