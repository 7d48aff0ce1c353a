/* Products in pieces against plain loops, within the error that blas.h allows, with sizes on both sides of every cut; the same
 * bits with 1, 2 and 3 threads; what is below a diagonal stays as it was. */
#include "bound/blas.h"

#include "harness.h"
#include "taut.h"

static double *matrix(int64_t len)
{
    double *w = malloc((size_t)(len + 1) * sizeof *w);
    if (!w) exit(1);
    fill(w, len);
    return w;
}

/* Of op(A) op(B), entry (i, j), and sum |a| |b|. */
static double entry(const double *a, bool ta, const double *b, bool tb, int64_t m, int64_t n, int64_t k, int64_t i,
                    int64_t j, double *size)
{
    double sum = 0;
    *size = 0;
    for (int64_t l = 0; l < k; l++) {
        const double x = a[ta ? l * m + i : i * k + l] * b[tb ? j * k + l : l * n + j];
        sum += x, *size += fabs(x);
    }
    return sum;
}

static void check_gemm(int64_t m, int64_t n, int64_t k, bool ta, bool tb, bool square)
{
    double *a = matrix(m * k), *b = matrix(k * n), *c = matrix(m * n), *first = matrix(m * n);
    for (int threads = 1; threads <= 3; threads++) {
        taut_threads_set(threads);
        for (int64_t i = 0; i < m * n; i++) c[i] = square && i / n > i % n ? 7 : NAN;
        if (square)
            blas_syrk(c, a, ta, n, k, 1, 0);
        else
            blas_gemm(c, a, ta, b, tb, m, n, k);
        if (threads == 1) memcpy(first, c, (size_t)(m * n) * sizeof *c);
        CHECK(memcmp(first, c, (size_t)(m * n) * sizeof *c) == 0, "the same bits");
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double size;
            const double sum = entry(a, ta, square ? a : b, square ? !ta : tb, m, n, k, i, j, &size);
            if (square && j < i)
                CHECK(c[i * n + j] == 7, "below the diagonal");
            else
                CHECK_LE(fabs(c[i * n + j] - sum), 4 * (double)(k + 2) * 0x1p-53 * size, "an entry");
        }
    free(a), free(b), free(c), free(first);
}

/* S = X^T X + I: positive, and R^T R is S within n^2 units. */
static void check_cholesky(int64_t n)
{
    double *x = matrix(n * n), *s = matrix(n * n), *r = matrix(n * n), *first = matrix(n * n), *y = matrix(n),
           *z = matrix(n);
    double *work = matrix(blas_symv_work(n));
    for (int64_t i = 0; i < n * n; i++) s[i] = i % (n + 1) == 0;
    blas_syrk(s, x, true, n, n, 1, 1);
    for (int64_t i = 0; i < n * n; i++) s[i] = i / n > i % n ? 0 : s[i];
    for (int threads = 1; threads <= 3; threads++) {
        taut_threads_set(threads);
        memcpy(r, s, (size_t)(n * n) * sizeof *r);
        CHECK(blas_cholesky(r, n), "a positive matrix");
        blas_symv(z, s, x, n, work);
        if (threads == 1) memcpy(first, r, (size_t)(n * n) * sizeof *r), memcpy(y, z, (size_t)n * sizeof *y);
        CHECK(memcmp(first, r, (size_t)(n * n) * sizeof *r) == 0 && memcmp(y, z, (size_t)n * sizeof *y) == 0,
              "the same bits");
    }
    for (int64_t i = 0; i < n; i++) {
        double sum = 0, size = 0, unused;
        for (int64_t j = 0; j < n; j++) {
            const double at = s[i < j ? i * n + j : j * n + i] * x[j];
            sum += at, size += fabs(at);
            if (j >= i)
                CHECK_NEAR(entry(r, true, r, false, n, n, n, i, j, &unused), s[i * n + j], (double)(n * n) * 0x1p-52,
                           "R^T R");
        }
        CHECK_LE(fabs(y[i] - sum), 4 * (double)(n + 2) * 0x1p-53 * size, "G x");
    }
    s[(n - 1) * n + n - 1] = -1;
    CHECK(!blas_cholesky(s, n), "not positive");
    s[0] = NAN;
    CHECK(!blas_cholesky(s, n), "NaN");
    free(x), free(s), free(r), free(first), free(y), free(z), free(work);
}

static void check_gemv(int64_t rows, int64_t cols, bool trans)
{
    const int64_t len = trans ? cols : rows, k = trans ? rows : cols;
    double *w = matrix(rows * cols), *x = matrix(k), *y = matrix(len), *first = matrix(len), size;
    for (int threads = 1; threads <= 3; threads++) {
        taut_threads_set(threads);
        for (int64_t i = 0; i < len; i++) y[i] = NAN;
        blas_gemv(y, w, trans, x, rows, cols);
        if (threads == 1) memcpy(first, y, (size_t)len * sizeof *y);
        CHECK(memcmp(first, y, (size_t)len * sizeof *y) == 0, "the same bits");
    }
    for (int64_t i = 0; i < len; i++) {
        const double sum = entry(w, trans, x, false, len, 1, k, i, 0, &size);
        CHECK_LE(fabs(y[i] - sum), 4 * (double)(k + 2) * 0x1p-53 * size, "an entry of W x");
    }
    free(w), free(x), free(y), free(first);
}

int main(void)
{
    static const int64_t sizes[][3] = { { 1, 1, 1 },      { 3, 5, 7 },      { 33, 17, 65 },  { 130, 129, 131 },
                                        { 257, 40, 500 }, { 60, 61, 1500 }, { 200, 210, 90 } };
    static const int64_t squares[][2] = { { 1, 1 }, { 7, 3 }, { 128, 129 }, { 140, 150 }, { 260, 70 }, { 60, 2000 } };
    static const int64_t orders[] = { 1, 2, 50, 128, 256, 257, 300, 385, 400 };
    test_begin();
    for (case_no = 0; case_no < 28; case_no++) {
        const int64_t *s = sizes[case_no / 4];
        check_gemm(s[0], s[1], s[2], case_no & 1, case_no & 2, false);
    }
    for (case_no = 0; case_no < 12; case_no++)
        check_gemm(squares[case_no / 2][0], squares[case_no / 2][0], squares[case_no / 2][1], case_no & 1, false, true);
    for (case_no = 0; case_no < 9; case_no++) check_cholesky(orders[case_no]);
    for (case_no = 0; case_no < 14; case_no++)
        check_gemv(sizes[case_no / 2][0] * 7, sizes[case_no / 2][2], case_no & 1);
    return test_end("blas", "products, roots and vectors in pieces; 1, 2 and 3 threads");
}
