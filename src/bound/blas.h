/* OpenBLAS as the bounds use it.
 *
 * What a proof here may assume of it: an inner product of length k, in dgemm, dsyrk or dgemv, is k
 * multiplications and additions in IEEE double, in any order, fused or not (no Strassen, no TF32); and
 * nothing at all of dpotrf, whose factor is tested afterwards.  Lanczos is only ever an estimate. */
#ifndef TAUT_BOUND_BLAS_H
#define TAUT_BOUND_BLAS_H
#include <cblas.h>
#include <limits.h>
#include <omp.h>

extern void dpotrf_(const char *uplo, const blasint *n, double *a, const blasint *lda, blasint *info);
extern void dsterf_(const blasint *n, double *d, double *e, blasint *info);

/* The kernels run OpenBLAS on one thread each; work above about a millisecond is worth all of them.
 * Returns the number to give back to blas_threads_restore. */
static inline int blas_threads_raise(double flops)
{
    const int before = openblas_get_num_threads(), most = omp_get_max_threads();
    if (flops > 2e7 && most > before && !omp_in_parallel()) openblas_set_num_threads(most);
    return before;
}
static inline void blas_threads_restore(int before)
{
    if (openblas_get_num_threads() != before) openblas_set_num_threads(before);
}
#endif
