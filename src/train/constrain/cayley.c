/* Cayley's retraction: a step away from orthogonal matrices becomes a rotation along them.
 *
 * Tall W = before, move D = X - W, P = I - W W^T/2:  A = P D W^T - W D^T P is skew, so the Cayley transform
 * (I - A/2)^-1 (I + A/2) is a rotation, and it moves W by D to first order, but for the symmetric part of W^T D.  A wide
 * matrix is transposed.  In double, through LAPACK. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "train/constrain/orthogonal.h"

extern void dgesv_(const blasint *n, const blasint *nrhs, double *a, const blasint *lda, blasint *ipiv, double *b,
                   const blasint *ldb, blasint *info);

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a < b ? b : a; }

int64_t taut_cayley_work(int64_t rows, int64_t cols)
{
    const int64_t n = larger(rows, cols), m = smaller(rows, cols);
    return n * n + 4 * n * m + m * m + n; /* the system, four matrices, W^T D, pivots */
}

/* y (cols, rows) = x^T */
static void transpose(double *y, const double *x, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) y[c * rows + r] = x[r * cols + c];
}

/* C (m,n) = alpha A B + beta C; ta, tb: transposed */
static void multiply(double *c, const double *a, bool ta, const double *b, bool tb, int64_t m, int64_t n, int64_t k,
                     double alpha, double beta)
{
    cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n,
                (blasint)k, alpha, a, (blasint)(ta ? m : k), b, (blasint)(tb ? k : n), beta, c, (blasint)n);
}

/* b (rows, n) becomes b M^-1: row-major M is LAPACK's M^T, and b its b^T. */
static bool solve(double *b, double *m, int64_t rows, int64_t n, double *pivots)
{
    const blasint order = (blasint)n, sides = (blasint)rows;
    blasint info = 0;
    dgesv_(&order, &sides, m, &order, (blasint *)pivots, b, &order, &info);
    double sum = 0;
    for (int64_t i = 0; info == 0 && i < rows * n; i++) sum += b[i];
    return info == 0 && isfinite(sum);
}

/* Reads x as a tall matrix (n, m). */
static void get_tall(const taut_kernels *k, double *tall, const taut_real *x, double *spare, int64_t rows, int64_t cols)
{
    k->get(rows < cols ? spare : tall, x, rows * cols);
    if (rows < cols) transpose(tall, spare, rows, cols);
}

static void put_tall(const taut_kernels *k, taut_real *x, const double *tall, double *spare, int64_t rows, int64_t cols)
{
    if (rows < cols) transpose(spare, tall, cols, rows);
    k->put(x, rows < cols ? spare : tall, rows * cols);
}

/* D <- P D = D - W (W^T D)/2, then A = D W^T - W D^T, both (n, m) tall. */
static void skew_of_move(double *a, double *d, const double *w, double *inner, int64_t n, int64_t m)
{
    multiply(inner, w, true, d, false, m, m, n, 1, 0);
    multiply(d, w, false, inner, false, n, m, m, -0.5, 1);
    multiply(a, d, false, w, true, n, n, m, 1, 0);
    multiply(a, w, false, d, true, n, n, m, -1, 1);
}

bool taut_cayley(const taut_kernels *k, taut_real *x, const taut_real *before, double *work, int64_t rows, int64_t cols)
{
    const int64_t n = larger(rows, cols), m = smaller(rows, cols), len = n * m;
    double *a = work, *w = a + n * n, *d = w + len, *right = d + len, *spare = right + len, *inner = spare + len;
    get_tall(k, w, before, spare, rows, cols);
    get_tall(k, d, x, spare, rows, cols);
    for (int64_t i = 0; i < len; i++) d[i] -= w[i];
    skew_of_move(a, d, w, inner, n, m);
    /* (I - A/2) W' = (I + A/2) W; transposed, W'^T (I + A/2) = W^T (I - A/2), as A is skew */
    memcpy(right, w, (size_t)len * sizeof *w);
    multiply(right, a, false, w, false, n, m, n, 0.5, 1);
    transpose(spare, right, n, m);
    for (int64_t i = 0; i < n * n; i++) a[i] *= 0.5;
    for (int64_t i = 0; i < n; i++) a[i * n + i] += 1;
    if (!solve(spare, a, m, n, inner + m * m)) return false;
    transpose(right, spare, m, n);
    put_tall(k, x, right, spare, rows, cols);
    return true;
}
