/* C (m,n) = alpha op(A) op(B) + beta C, row-major; op(A) is (m,k), op(B) is (k,n).
 *
 * alpha = 0 means that A and B are not read, beta = 0 that C is not, so NaN in them does not survive.
 * A row of C is one thread's work; of C = A B and A B^T, which forward passes are made of, a few columns are (tile.h). */
#include "kernels/ref/ref.h"
#include "kernels/tile.h"

/* With B as it is, the sum over l runs outside, so that B is read along its rows. */
static void row_times_b(double *c, const double *a, int64_t a_step, const double *b, int64_t n, int64_t k, double alpha)
{
    for (int64_t l = 0; l < k; l++) {
        const double f = alpha * a[l * a_step];
        for (int64_t j = 0; j < n; j++) c[j] += f * b[l * n + j];
    }
}

enum { AT_ONCE = 8 }; /* sums under way: each waits for itself alone, and is added up in the order of l */

static void row_times_bt(double *c, const double *a, int64_t a_step, const double *b, int64_t n, int64_t k,
                         double alpha)
{
    for (int64_t j = 0; j < n; j += AT_ONCE) {
        const int64_t some = n - j < AT_ONCE ? n - j : AT_ONCE;
        double sum[AT_ONCE] = { 0 };
        if (some == AT_ONCE)
            for (int64_t l = 0; l < k; l++)
                for (int u = 0; u < AT_ONCE; u++) sum[u] += a[l * a_step] * b[(j + u) * k + l];
        else
            for (int64_t u = 0; u < some; u++)
                for (int64_t l = 0; l < k; l++) sum[u] += a[l * a_step] * b[(j + u) * k + l];
        for (int64_t u = 0; u < some; u++) c[j + u] += alpha * sum[u];
    }
}

static void row_of(double *c, const double *a, int64_t a_step, const double *b, bool tb, int64_t n, int64_t k,
                   double alpha, double beta)
{
    for (int64_t j = 0; j < n; j++) c[j] = beta == 0 ? 0 : beta * c[j];
    if (alpha != 0) (tb ? row_times_bt : row_times_b)(c, a, a_step, b, n, k, alpha);
}

void taut_ref_gemm(taut_real *c_, const taut_real *a_, const taut_real *b_, int64_t m, int64_t n, int64_t k, bool ta,
                   bool tb, double alpha, double beta)
{
    if (!ta && alpha == 1 && beta == 0) {
        taut_tiles((double *)c_, (const double *)a_, (const double *)b_,
                   (taut_steps){ m, n, k, n, k, tb ? 1 : n, tb ? k : 1 });
        return;
    }
    double *c = (double *)c_;
    const double *a = (const double *)a_, *b = (const double *)b_;
    if (m * n * k <= 100000) { /* a parallel region costs a call of the system even if its `if` says no */
        for (int64_t i = 0; i < m; i++) row_of(c + i * n, a + (ta ? i : i * k), ta ? m : 1, b, tb, n, k, alpha, beta);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < m; i++) row_of(c + i * n, a + (ta ? i : i * k), ta ? m : 1, b, tb, n, k, alpha, beta);
}

void taut_ref_gemm_by(taut_real *c, const taut_real *a, const taut_real *b, int64_t m, int64_t n, int64_t k, bool ta,
                      bool tb, taut_factor alpha, double beta)
{
    taut_ref_gemm(c, a, b, m, n, k, ta, tb, ref_factor(alpha, 0), beta);
}

void taut_ref_gemm_each(taut_real *c, const taut_real *p, const taut_real *a, const taut_real *b, int64_t count,
                        int64_t m, int64_t n, int64_t k, bool ta, bool tb, double alpha, double beta)
{
    if (p != c && beta != 0) taut_ref_axpby(c, 1, p, 0, count * m * n);
    for (int64_t i = 0; i < count; i++)
        taut_ref_gemm((taut_real *)((double *)c + i * m * n), (const taut_real *)((const double *)a + i * m * k),
                      (const taut_real *)((const double *)b + i * k * n), m, n, k, ta, tb, alpha, beta);
}

void taut_ref_affine(taut_real *y, const taut_real *x, const taut_real *w, const taut_real *b, int64_t rows,
                     int64_t out, int64_t in, double alpha)
{
    taut_ref_gemm(y, x, w, rows, out, in, false, true, alpha, 0);
    if (b) taut_ref_add_rows(y, y, b, rows, out, 1);
}

taut_status taut_ref_products(taut_products how)
{
    if (how == TAUT_PRODUCTS_FP32) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG, "kernels ref make products in full precision only, not in tf32 or bf16");
}
