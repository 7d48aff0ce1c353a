/* cholesky_inverse (ref/cholesky.c), by LAPACK and in double: what is lost is the rounding of the result.
 *
 * Error  |r - exact| <= (u + n^2 2^-50 K) |r| as matrices in the Frobenius norm, u = 2^-24, K the condition number of
 * a + shift I. */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/cpu/cpu.h"

extern void dpotrf_(const char *uplo, const blasint *n, double *a, const blasint *lda, blasint *info);
extern void dtrtri_(const char *uplo, const char *diag, const blasint *n, double *a, const blasint *lda, blasint *info);

void CPU(cholesky_inverse)(taut_real *r_, const taut_real *a_, double shift, int64_t n)
{
    float *r = (float *)r_;
    const float *a = (const float *)a_;
    if (n == 0) return;
    double *l = taut_malloc((size_t)(n * n) * sizeof *l);
    TAUT_CHECK(l, "cholesky: no memory for the factor");
    for (int64_t i = 0; i < n * n; i++) l[i] = (double)a[i] + (i / n == i % n ? shift : 0);
    const blasint size = (blasint)n; /* LAPACK counts by columns: our lower half is its upper one */
    blasint info = 0;
    bool finite = true;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) finite = finite && isfinite(l[i * n + j]);
    if (finite) dpotrf_("U", &size, l, &size, &info);
    if (finite && info == 0) dtrtri_("U", "N", &size, l, &size, &info);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) r[i * n + j] = !finite || info ? NAN : j <= i ? (float)l[i * n + j] : 0;
    free(l);
}
