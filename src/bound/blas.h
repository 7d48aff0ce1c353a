/* OpenBLAS as the bounds use it: on one thread (base/blas.h), a piece of the work per call.
 *
 * The pieces are cut at borders that depend on sizes alone and run in OpenMP's threads, so the bits are the same for any number
 * of threads, and callers in different threads do not meet.  Matrices are row-major, without gaps.
 *
 * What a proof here may assume: an inner product of length k, in dgemm, dsyrk or dgemv, is k multiplications and additions in
 * IEEE double, in any order, fused or not (no Strassen, no TF32); and nothing at all of blas_cholesky, whose factor is tested
 * afterwards.  Lanczos is only ever an estimate. */
#ifndef TAUT_BOUND_BLAS_H
#define TAUT_BOUND_BLAS_H
#include <cblas.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

extern void dsterf_(const blasint *n, double *d, double *e, blasint *info);

/* C (m, n) = op(A) op(B), inner products of length k. */
void blas_gemm(double *c, const double *a, bool ta, const double *b, bool tb, int64_t m, int64_t n, int64_t k);

/* The upper triangle of C (n, n) = alpha A A^T + beta C, or with ta alpha A^T A + beta C; what is below stays. */
void blas_syrk(double *c, const double *a, bool ta, int64_t n, int64_t k, double alpha, double beta);

/* R^T R = S in the upper triangle of s (n, n); what is below stays.  False: a pivot is not positive, s is spoilt. */
bool blas_cholesky(double *s, int64_t n);

/* y = W x, or with trans W^T x; W (rows, cols). */
void blas_gemv(double *y, const double *w, bool trans, const double *x, int64_t rows, int64_t cols);

/* y = G x, of whose symmetric G (n, n) the upper triangle is read; work: blas_symv_work(n) numbers. */
void blas_symv(double *y, const double *g, const double *x, int64_t n, double *work);
int64_t blas_symv_work(int64_t n);
#endif
