/* The certificates of PLASH's deviation from softmax attention, side by side, on queries, keys and values as they are: ours
 * (bound/deviation.h), the paper's mended, and the paper's as printed.  plash_head.c makes what is judged, of weights that it
 * draws or of a trained module's; plash.c judges. */
#ifndef TAUT_CERTIFY_PLASH_H
#define TAUT_CERTIFY_PLASH_H
#include "base/status.h"
#include "module/modules.h"

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
/* All heads of a module that is bound on k, for nq queries and nk keys.  Refused: one without a deterministic reference, or
 * with a larger mixer than certify/mixer.h takes. */
taut_status taut_plash_head_of(taut_plash_head **, const taut_module *, const taut_plash_spec *, const taut_kernels *k,
                               int64_t nq, int64_t nk, double eta) TAUT_MUST_USE;
bool taut_plash_comparable(const taut_plash_spec *); /* false: that would refuse it */
void taut_plash_head_free(taut_plash_head *);

/* The paper's: eps_I, eps_det = |Y_q - Y_det|, and eps_II with every constant right, with the probability it fails with, and
 * as printed. */
typedef struct {
    double stage1, reference, mended, delta, printed;
} taut_plash_paper;

/* q (nq, width), k and v (nk, width); one answer for each head. */
taut_status taut_plash_papers(taut_plash_paper *, const taut_plash_head *, const double *q, const double *k,
                              const double *v) TAUT_MUST_USE;

typedef struct {
    double soft, plash, truth; /* |Y_soft|, |Y_PLASH|, |Y_soft - Y_PLASH|, Frobenius, computed */
    double hull;               /* the trivial bound */
    double ours, attention;    /* ours, and the part of it that is about attention to the clusters */
    double exact2;             /* |Y_PLASH - Y_det|, what eps_II stands for */
    taut_plash_paper paper;
} taut_plash_verdict;

/* Of a module with one head. */
taut_status taut_plash_judge(taut_plash_verdict *, const taut_plash_head *, const double *q, const double *k,
                             const double *v) TAUT_MUST_USE;
#endif
