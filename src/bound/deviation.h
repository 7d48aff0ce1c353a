/* How far an output is from exact softmax attention, proved for every query and without forming it:
 *     |softmax(scale q K^T) V - y|  <=  e_q
 * in O((nq + nk) M d), for any y whatever.  The keys are put into M clusters, any clusters: a better choice makes
 * a smaller bound and never a wrong one.  With y_q the clusters' own attention (docs/modules/clustered.md),
 *     e_q = B(q) + |y_q - y| + rounding,  and never more than the trivial |y| + max|v|
 * B bounds |Y_soft - y_q|.  docs/deviation.md has the formulas and proofs.  Deterministic, no assumption on
 * how y came about; of real arithmetic on the numbers as stored. */
#ifndef TAUT_BOUND_DEVIATION_H
#define TAUT_BOUND_DEVIATION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "bound/up.h"

/* Rows of floats (elem 4) or doubles (elem 8), `stride` elements apart. */
typedef struct {
    const void *data;
    size_t elem;
    int64_t stride;
} taut_table;

typedef enum {
    TAUT_DEVIATION_FAST,  /* B6 with norms from traces */
    TAUT_DEVIATION_NORMS, /* B6 with proved norms of C_j and Cov_j: O(dk (dk + dv)) a key more */
    TAUT_DEVIATION_AUDIT, /* and B5: O(M dk dv) a query more */
} taut_deviation_mode;

typedef struct {
    int64_t nq, nk, dk, dv, groups;
    double scale;
    taut_table q, k, v, y;
    const int32_t *cluster; /* nk entries in 0 .. groups-1; a negative one: the key is not there (padding) */
    taut_deviation_mode mode;
    bool first; /* compare with y_1, the first-order output, instead of y_q; needs audit */
} taut_deviation;

typedef struct {
    taut_up all;       /* of the Frobenius norm over all queries */
    taut_up attention; /* the part of B alone */
    taut_up distance;  /* |y_q - y| alone, as computed */
    taut_up hull;      /* the trivial bound: every output lies among the values */
} taut_deviation_sum;

/* e (nq entries, may be NULL) and b (nq, may be NULL: B alone).  Fails when memory is out, or where no proof can be trusted
 * (bound/arithmetic.h). */
taut_status up_deviation(const taut_deviation *, double *e, double *b, taut_deviation_sum *sum) TAUT_MUST_USE;
#endif
