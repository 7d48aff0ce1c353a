/* Products in pieces.  A tile of C is one call of dgemm (on the diagonal of a symmetric C, dsyrk); inner products are never cut.
 *
 * Cholesky is by blocks of BLOCK rows: with S = [A B; . D] and A = U^T U by dpotrf, the rows beside it are U^-T B, in strips,
 * and D goes on as D - (U^-T B)^T (U^-T B), in tiles. */
#include "bound/blas.h"

#include "base/blas.h"
#include "bound/far.h"

extern void dpotrf_(const char *uplo, const blasint *n, double *a, const blasint *lda, blasint *info);

enum { BLOCK = 128, STRIP = 256, WORTH = 1 << 21 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
/* Are so many multiplications worth cutting?  In double, since sizes may be anything. */
static bool worth(int64_t m, int64_t n, int64_t k) { return (double)m * (double)n * (double)k > WORTH; }
static int64_t pieces(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/* The side of a tile: about a quarter, but a multiple of what inner kernels like, and not too small or large for them. */
static int64_t side(int64_t whole)
{
    const int64_t quarter = (whole / 4 + 15) / 16 * 16;
    return quarter < 32 ? 32 : least(quarter, 192);
}

typedef struct {
    double *c;
    const double *a, *b;
    bool ta, tb;
    int64_t m, n, k, ldc, lda, ldb;
    double alpha, beta;
} product;

/* Rows from i, columns from j. */
static void tile(const product *p, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    cblas_dgemm(CblasRowMajor, p->ta ? CblasTrans : CblasNoTrans, p->tb ? CblasTrans : CblasNoTrans, (blasint)rows,
                (blasint)cols, (blasint)p->k, p->alpha, p->a + (p->ta ? i : i * p->lda), (blasint)p->lda,
                p->b + (p->tb ? j * p->ldb : j), (blasint)p->ldb, p->beta, p->c + i * p->ldc + j, (blasint)p->ldc);
}

void blas_gemm(double *c, const double *a, bool ta, const double *b, bool tb, int64_t m, int64_t n, int64_t k)
{
    if (taut_far_gemm(c, a, ta, b, tb, m, n, k)) return;
    const product p = { c, a, b, ta, tb, m, n, k, n, ta ? m : k, tb ? k : n, 1, 0 };
    const bool cut = worth(m, n, k);
    const int64_t rows = side(m), cols = side(n), across = pieces(n, cols);
    taut_blas_single();
    if (!cut) { /* a parallel region costs a call of the system even if its `if` says no */
        if (m > 0 && n > 0) tile(&p, 0, m, 0, n);
        return;
    }
#pragma omp parallel for schedule(dynamic)
    for (int64_t t = 0; t < pieces(m, rows) * across; t++) {
        const int64_t i = t / across * rows, j = t % across * cols;
        tile(&p, i, least(rows, m - i), j, least(cols, n - j));
    }
}

/* The tile on or above the diagonal whose number is t, counted row by row. */
static void upper_tile(const product *p, int64_t size, int64_t t)
{
    int64_t i = 0, left = pieces(p->n, size);
    for (; t >= left; i++) t -= left--;
    const int64_t at = i * size, j = at + t * size, rows = least(size, p->n - at);
    if (t > 0)
        tile(p, at, rows, j, least(size, p->n - j));
    else
        cblas_dsyrk(CblasRowMajor, CblasUpper, p->ta ? CblasTrans : CblasNoTrans, (blasint)rows, (blasint)p->k,
                    p->alpha, p->a + (p->ta ? at : at * p->lda), (blasint)p->lda, p->beta, p->c + at * p->ldc + at,
                    (blasint)p->ldc);
}

/* p with b = a and m = n. */
static void symmetric(const product *p)
{
    const int64_t size = side(p->n), down = pieces(p->n, size);
    if (!worth(p->n, p->n, p->k)) {
        if (p->n > 0) upper_tile(p, p->n, 0);
        return;
    }
#pragma omp parallel for schedule(dynamic)
    for (int64_t t = 0; t < down * (down + 1) / 2; t++) upper_tile(p, size, t);
}

void blas_syrk(double *c, const double *a, bool ta, int64_t n, int64_t k, double alpha, double beta)
{
    const int64_t lda = ta ? n : k;
    taut_blas_single();
    symmetric(&(product){ c, a, a, ta, !ta, n, n, k, n, lda, lda, alpha, beta });
}

/* Row-major upper is dpotrf's column-major lower.  A NaN pivot can come back as success. */
static bool cholesky_block(double *s, int64_t rows, int64_t n)
{
    const blasint size = (blasint)rows, ld = (blasint)n;
    blasint info = 0;
    dpotrf_("L", &size, s, &ld, &info);
    for (int64_t i = 0; info == 0 && i < rows; i++)
        if (!(s[i * n + i] > 0)) info = 1;
    return info == 0;
}

bool blas_cholesky(double *s, int64_t n)
{
    taut_blas_single();
    if (n <= 2 * BLOCK) return n <= 0 || cholesky_block(s, n, n);
    for (int64_t j = 0; j < n; j += BLOCK) {
        const int64_t rows = least(BLOCK, n - j), next = j + rows, rest = n - next;
        double *corner = s + j * n + j, *beside = corner + rows;
        if (!cholesky_block(corner, rows, n)) return false;
#pragma omp parallel for schedule(dynamic)
        for (int64_t at = 0; at < rest; at += STRIP)
            cblas_dtrsm(CblasRowMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit, (blasint)rows,
                        (blasint)least(STRIP, rest - at), 1, corner, (blasint)n, beside + at, (blasint)n);
        symmetric(&(product){ s + next * n + next, beside, beside, true, false, rest, rest, rows, n, n, n, -1, 1 });
    }
    return true;
}

/* y[at ..] of blas_gemv, `count` of them. */
static void strip_of_gemv(double *y, const double *w, bool trans, const double *x, int64_t rows, int64_t cols,
                          int64_t at, int64_t count)
{
    const blasint here = (blasint)count;
    cblas_dgemv(CblasRowMajor, trans ? CblasTrans : CblasNoTrans, trans ? (blasint)rows : here,
                trans ? here : (blasint)cols, 1, w + (trans ? at : at * cols), (blasint)cols, x, 1, 0, y + at, 1);
}

void blas_gemv(double *y, const double *w, bool trans, const double *x, int64_t rows, int64_t cols)
{
    const int64_t len = trans ? cols : rows;
    taut_blas_single();
    if (!worth(rows, cols, 16)) {
        if (len > 0) strip_of_gemv(y, w, trans, x, rows, cols, 0, len);
        return;
    }
#pragma omp parallel for schedule(dynamic)
    for (int64_t at = 0; at < len; at += STRIP) strip_of_gemv(y, w, trans, x, rows, cols, at, least(STRIP, len - at));
}

int64_t blas_symv_work(int64_t n) { return n > STRIP ? pieces(n, BLOCK) * n : 1; }

/* Block b's rows: y_b = G_bb x_b + G_b. x., and G_b.^T x_b into the block's own row of work, added in order afterwards. */
void blas_symv(double *y, const double *g, const double *x, int64_t n, double *work)
{
    const int64_t count = n > STRIP ? pieces(n, BLOCK) : 1;
    const blasint ld = (blasint)n;
    taut_blas_single();
    if (count == 1) {
        cblas_dsymv(CblasRowMajor, CblasUpper, ld, 1, g, ld, x, 1, 0, y, 1);
        return;
    }
#pragma omp parallel
    {
#pragma omp for schedule(dynamic)
        for (int64_t b = 0; b < count; b++) {
            const int64_t at = b * BLOCK, rows = least(BLOCK, n - at), next = at + rows;
            const blasint here = (blasint)rows, rest = (blasint)(n - next);
            cblas_dsymv(CblasRowMajor, CblasUpper, here, 1, g + at * n + at, ld, x + at, 1, 0, y + at, 1);
            if (rest == 0) continue;
            cblas_dgemv(CblasRowMajor, CblasNoTrans, here, rest, 1, g + at * n + next, ld, x + next, 1, 1, y + at, 1);
            cblas_dgemv(CblasRowMajor, CblasTrans, here, rest, 1, g + at * n + next, ld, x + at, 1, 0,
                        work + b * n + next, 1);
        }
#pragma omp for schedule(static)
        for (int64_t b = 1; b < count; b++)
            for (int64_t before = 0; before < b; before++)
                for (int64_t i = b * BLOCK; i < least(n, (b + 1) * BLOCK); i++) y[i] += work[before * n + i];
    }
}
