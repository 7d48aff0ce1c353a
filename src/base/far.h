/* WHAT A DEVICE DOES FOR PROOFS (bound/far.h asks for it).  All pointers are the host's.  A function that answers false has
 * failed, and nothing that it wrote may be used.  Whoever calls sees to it that calls come one at a time.
 *
 * What a proof assumes of it is what it assumes of a BLAS (bound/blas.h): an inner product of length k is k multiplications and
 * additions in IEEE double, in any order, fused or not; so is a sum of squares.  Of the factor R nothing is assumed. */
#ifndef TAUT_BASE_FAR_H
#define TAUT_BASE_FAR_H
#include <stdbool.h>
#include <stdint.h>

/* Of S = fl(mu I - G), a factor R of it, and T = fl(S - R R^T), all n x n. */
typedef struct {
    double diagonal; /* max |S_ii| */
    double s, r, t;  /* the sums of their squares */
} taut_far_proof;

typedef struct {
    /* C (m, n) = alpha op(A) op(B) + beta C, row-major, inner products of length k. */
    bool (*gemm)(double *c, const double *a, bool ta, const double *b, bool tb, int64_t m, int64_t n, int64_t k,
                 double alpha, double beta);
    /* From here on G is fl(W^T W) or fl(W W^T), of the smaller side n of W (rows, cols), made symmetric from one half of it.
     * *diagonal becomes the largest number on its diagonal. */
    bool (*hold)(double *diagonal, const double *w, int64_t rows, int64_t cols);
    /* Steps from .. to - 1 of Lanczos on G, at most 128 in all: fills alpha[i] and beta[i] for them.  from 0 begins with `start`
     * (n), which is not read later.  A beta of 0 ends it: what comes behind is 0. */
    bool (*lanczos)(double *alpha, double *beta, const double *start, int from, int to);
    /* False also where mu I - G has no factor: mu is too small. */
    bool (*prove)(taut_far_proof *, double mu);
} taut_far;
#endif
