/* The three certificates of PLASH's deviation from softmax attention, side by side, for one head on queries, keys and
 * values as they are: ours (bound/deviation.h), the paper's mended, and the paper's as printed. */
#ifndef TAUT_CERTIFY_PLASH_H
#define TAUT_CERTIFY_PLASH_H
#include "base/status.h"
#include "module/module.h"

typedef struct {
    int64_t nq, nk, width, groups, hidden, mixer_heads; /* one head of `width` */
    int mixers, degrees;
    int degree[TAUT_SKETCH_DEGREES]; /* K, and D_k of each, at least 2 width */
    int64_t size[TAUT_SKETCH_DEGREES];
    double tau, tau_g, floor, norm_eps, eta; /* eta: what the sketch's lengths may be off by */
    bool xavier;                             /* how weights are drawn: uniform with sqrt(6/(a+b)), else 1/sqrt(a) */
    uint64_t seed;
} taut_plash_case;

typedef struct taut_plash_head taut_plash_head;
taut_status taut_plash_head_new(taut_plash_head **, const taut_plash_case *) TAUT_MUST_USE;
void taut_plash_head_free(taut_plash_head *);

typedef struct {
    double soft, plash, truth; /* |Y_soft|, |Y_PLASH|, |Y_soft - Y_PLASH|, Frobenius, computed */
    double hull;               /* the trivial bound */
    double ours, attention;    /* ours, and the part of it that is about attention to the clusters */
    double stage1, reference;  /* the paper's eps_I, and eps_det = |Y_q - Y_det| */
    double mended, delta;      /* eps_II with every constant right, and the probability it fails with */
    double printed;            /* eps_II as printed */
    double exact2;             /* |Y_PLASH - Y_det|, what the two stand for */
} taut_plash_verdict;

/* q (nq, width), k and v (nk, width). */
taut_status taut_plash_judge(taut_plash_verdict *, const taut_plash_head *, const double *q, const double *k,
                             const double *v) TAUT_MUST_USE;
#endif
