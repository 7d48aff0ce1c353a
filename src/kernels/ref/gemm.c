/* C (m,n) = alpha op(A) op(B) + beta C, row-major; op(A) is (m,k), op(B) is (k,n).
 *
 * alpha = 0 means that A and B are not read, beta = 0 that C is not, so NaN in them does not survive.
 * A row of C is one thread's work; of C = A B^T, which forward passes are made of, a few columns are. */
#include <string.h>

#include "kernels/ref/ref.h"

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

/* C = A B^T with ROWS x COLS results in registers, SLICE of k at a time; each is still its sum over l in order, to the bit. */
enum { ROWS = 4, COLS = 8, SLICE = 512 };
typedef double lane __attribute__((vector_size(16)));
enum { LANES = COLS / 2 };

static void tile(double *c, int64_t n, const double *a, int64_t k, const double *panel, int64_t depth)
{
    lane sum[ROWS][LANES], y[LANES];
    for (int i = 0; i < ROWS; i++) memcpy(sum[i], c + i * n, sizeof sum[i]);
    for (int64_t l = 0; l < depth; l++) {
        memcpy(y, panel + l * COLS, sizeof y);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < LANES; j++) sum[i][j] += a[i * k + l] * y[j];
    }
    for (int i = 0; i < ROWS; i++) memcpy(c + i * n, sum[i], sizeof sum[i]);
}

/* What is left over at the lower and right edges. */
static void edge(double *c, int64_t n, const double *a, int64_t k, const double *panel, int64_t depth, int64_t rows,
                 int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            // cppcheck-suppress uninitvar ; as many entries are filled as are read
            for (int64_t l = 0; l < depth; l++) c[i * n + j] += a[i * k + l] * panel[l * COLS + j];
}

static void times_transposed(double *c, const double *a, const double *b, int64_t m, int64_t n, int64_t k)
{
    if (m <= 0 || n <= 0) return;
    memset(c, 0, (size_t)(m * n) * sizeof *c);
#pragma omp parallel for schedule(static) if (m * n * k > 100000)
    for (int64_t j = 0; j < n; j += COLS)
        for (int64_t from = 0; from < k; from += SLICE) {
            double panel[SLICE * COLS];
            const int64_t depth = k - from < SLICE ? k - from : SLICE, cols = n - j < COLS ? n - j : COLS;
            for (int64_t x = 0; x < cols; x++)
                for (int64_t l = 0; l < depth; l++) panel[l * COLS + x] = b[(j + x) * k + from + l];
            for (int64_t i = 0; i < m; i += ROWS) {
                const int64_t rows = m - i < ROWS ? m - i : ROWS;
                if (rows == ROWS && cols == COLS)
                    tile(c + i * n + j, n, a + i * k + from, k, panel, depth);
                else
                    edge(c + i * n + j, n, a + i * k + from, k, panel, depth, rows, cols);
            }
        }
}

void taut_ref_gemm(taut_real *c_, const taut_real *a_, const taut_real *b_, int64_t m, int64_t n, int64_t k, bool ta,
                   bool tb, double alpha, double beta)
{
    if (!ta && tb && alpha == 1 && beta == 0) {
        times_transposed((double *)c_, (const double *)a_, (const double *)b_, m, n, k);
        return;
    }
#pragma omp parallel for schedule(static) if (m * n * k > 100000)
    for (int64_t i = 0; i < m; i++) {
        double *c = (double *)c_ + i * n;
        const double *a = (const double *)a_ + (ta ? i : i * k), *b = (const double *)b_;
        for (int64_t j = 0; j < n; j++) c[j] = beta == 0 ? 0 : beta * c[j];
        if (alpha != 0) (tb ? row_times_bt : row_times_b)(c, a, ta ? m : 1, b, n, k, alpha);
    }
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

taut_status taut_ref_products(taut_products how)
{
    if (how == TAUT_PRODUCTS_FP32) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG, "kernels ref make products in full precision only, not in tf32 or bf16");
}
