/* cholesky_inverse (ref/cholesky.c), by LAPACK and in double: what is lost is the rounding of the result.  The factor is one
 * thread's; blocks of columns of its inverse are systems of their own, which threads share (dtrtri would be one thread's).
 *
 * Error  |r - exact| <= (u + n^2 2^-50 K) |r| as matrices in the Frobenius norm, u = 2^-24, K the condition number of
 * a + shift I. */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/cpu/cpu.h"

extern void dpotrf_(const char *uplo, const blasint *n, double *a, const blasint *lda, blasint *info);

/* Columns j .. j+cols-1 of L^-1, which are 0 above row j. */
static void columns(float *r, double *x, const double *l, int64_t j, int64_t cols, int64_t n)
{
    for (int64_t i = j; i < n; i++)
        for (int64_t c = 0; c < cols; c++) x[i * n + j + c] = i == j + c;
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)(n - j), (int)cols, 1,
                l + j * n + j, (int)n, x + j * n + j, (int)n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = j; c < j + cols; c++) r[i * n + c] = c <= i ? (float)x[i * n + c] : 0;
}

void CPU(cholesky_inverse)(taut_real *r_, const taut_real *a_, double shift, int64_t n)
{
    enum { BLOCK = 64 };
    float *r = (float *)r_;
    const float *a = (const float *)a_;
    if (n == 0) return;
    double *l = taut_malloc((size_t)(2 * n * n) * sizeof *l);
    TAUT_CHECK(l, "cholesky: no memory for the factor and its inverse");
    const blasint size = (blasint)n; /* LAPACK counts by columns: our lower half is its upper one */
    blasint info = 0;
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) l[i * n + j] = a[i * n + j];
        l[i * n + i] += shift;
        for (int64_t j = 0; j <= i; j++) finite &= isfinite(l[i * n + j]) != 0;
    }
    if (finite) dpotrf_("U", &size, l, &size, &info);
    const bool good = finite && info == 0;
#pragma omp parallel for schedule(dynamic) if (n > BLOCK)
    for (int64_t j = 0; j < (good ? n : 0); j += BLOCK) columns(r, l + n * n, l, j, cpu_min(BLOCK, n - j), n);
    for (int64_t i = 0; !good && i < n * n; i++) r[i] = NAN;
    free(l);
}
