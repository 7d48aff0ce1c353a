/* cholesky_inverse: r (n, n) = L^-1, lower triangular, where L L^T = a + shift I; of a only the lower half is read.
 * Not positive definite, or NaN in the lower half: all of r is NaN. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/ref/ref.h"

/* L in place of the lower half; false where a pivot is not positive. */
static bool factor(double *l, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = l[i * n + j];
            for (int64_t k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
            if (i == j && !(sum > 0 && sum < INFINITY)) return false;
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
        }
    return true;
}

void taut_ref_cholesky_inverse(taut_real *r_, const taut_real *a, double shift, int64_t n)
{
    double *r = (double *)r_, *l = taut_malloc((size_t)(n > 0 ? n * n : 1) * sizeof *l);
    TAUT_CHECK(l, "cholesky: no memory for the factor");
    for (int64_t i = 0; i < n * n; i++) l[i] = ((const double *)a)[i] + (i / n == i % n ? shift : 0);
    const bool good = factor(l, n);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            double sum = i == j;
            for (int64_t k = j; k < i; k++) sum -= l[i * n + k] * r[k * n + j];
            r[i * n + j] = !good ? NAN : i < j ? 0 : sum / l[i * n + i];
        }
    free(l);
}
