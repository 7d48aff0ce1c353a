/* How far the attention in linear time (plash, clustered) of a model strays from softmax attention on the queries, keys and
 * values that a pass left in it, head by head: the truth, what is proved of it, and what the PLASH paper says. */
#ifndef TAUT_CERTIFY_STRAY_H
#define TAUT_CERTIFY_STRAY_H
#include "certify/plash.h"
#include "model/pass.h"

typedef struct {
    char path[96]; /* of the layer: "enc.rest.block.0.attn" */
    bool plash;    /* false: clustered */
    int64_t head, queries, keys, groups;
    double soft, truth;        /* |Y_soft|, |Y_soft - Y| over all queries, in long double */
    taut_up fast, audit, hull; /* ours in both modes; the trivial bound */
    int64_t beaten;            /* queries that stray further than one of ours allows: a contradiction */
    bool papers;               /* the paper's certificate exists: PLASH with a deterministic reference */
    taut_plash_paper paper;    /* eps_I + eps_det + eps_II */
} taut_stray;

/* Of the first example in the pass, whose tokens are all real.  eta as in certify/plash.h.  The caller frees *list;
 * *count = 0: no such layer. */
taut_status taut_strays_read(taut_stray **list, int *count, const taut_pass *, double eta) TAUT_MUST_USE;

/* Two examples as one: roots of sums of squares; either may fail. */
void taut_stray_join(taut_stray *all, const taut_stray *more);
#endif
