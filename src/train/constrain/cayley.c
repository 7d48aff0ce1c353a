/* Cayley's retraction: a step away from orthogonal matrices becomes a rotation along them.
 *
 * Tall W = before, move D = X - W, P = I - W W^T/2:  A = P D W^T - W D^T P is skew, so the Cayley transform
 * (I - A/2)^-1 (I + A/2) is a rotation, and it moves W by D to first order, but for the symmetric part of W^T D.  With
 * S = W^T D and N = D - W S, what D has outside of W, the rotated W is
 *     (2 W + N) M^-1 - W,   M = I - (S - S^T)/4 + N^T N/4,
 * a system of the smaller side alone; the symmetric part of M is at least I, so it has a solution.  A wide matrix is
 * transposed.  In double, through LAPACK. */
#include <cblas.h>
#include <math.h>

#include "train/constrain/orthogonal.h"

extern void dgesv_(const blasint *n, const blasint *nrhs, double *a, const blasint *lda, blasint *ipiv, double *b,
                   const blasint *ldb, blasint *info);

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a < b ? b : a; }

int64_t taut_cayley_work(int64_t rows, int64_t cols)
{
    const int64_t n = larger(rows, cols), m = smaller(rows, cols);
    return 3 * n * m + 2 * m * m + m; /* W, D, a spare one, M, S, pivots */
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

/* d = D becomes N, and system M. */
static void part(double *system, double *d, const double *w, double *s, int64_t n, int64_t m)
{
    multiply(s, w, true, d, false, m, m, n, 1, 0);
    multiply(d, w, false, s, false, n, m, m, -1, 1);
    multiply(system, d, true, d, false, m, m, n, 0.25, 0);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) system[i * m + j] += (i == j) - 0.25 * (s[i * m + j] - s[j * m + i]);
}

bool taut_cayley(const taut_kernels *k, taut_real *x, const taut_real *before, double *work, int64_t rows, int64_t cols)
{
    const int64_t n = larger(rows, cols), m = smaller(rows, cols), len = n * m;
    double *w = work, *d = w + len, *spare = d + len, *system = spare + len, *s = system + m * m;
    get_tall(k, w, before, spare, rows, cols);
    get_tall(k, d, x, spare, rows, cols);
    for (int64_t i = 0; i < len; i++) d[i] -= w[i];
    part(system, d, w, s, n, m);
    for (int64_t i = 0; i < len; i++) d[i] += 2 * w[i];
    if (!solve(d, system, n, m, s + m * m)) return false;
    for (int64_t i = 0; i < len; i++) d[i] -= w[i];
    put_tall(k, x, d, spare, rows, cols);
    return true;
}
