/* Bjorck: on singular values s <- s (3 - s^2)/2, which converges to 1 from (0, sqrt 3).  X is first scaled so that s <=
 * 1.3, by ||X||^4 <= ||G^2||_F with G = X^T X on the smaller side, which is at most sqrt(side) too much.
 *
 * Cayley, tall X: M has the symmetric part I + V^T V >= I, so M^-1 exists, and
 *     M^T M - (I - A)^T (I - A) = 2 (A + A^T) = 4 V^T V   shows that the columns are orthonormal.
 * Retraction, tall W = before, move D = X - W, P = I - W W^T/2:  A = P D W^T - W D^T P is skew, and the rotation
 * (I - A/2)^-1 (I + A/2) moves W by D to first order, but for the symmetric part of W^T D.  A wide matrix is
 * transposed. */
#include "train/constrain/orthogonal.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

extern void dgesv_(const blasint *n, const blasint *nrhs, double *a, const blasint *lda, blasint *ipiv, double *b,
                   const blasint *ldb, blasint *info);

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a < b ? b : a; }

int64_t taut_bjorck_work(int64_t rows, int64_t cols)
{
    const int64_t side = smaller(rows, cols);
    return rows * cols + 2 * side * side;
}

/* gram = X^T X or X X^T, on the smaller side */
static void gram_of(const taut_kernels *k, taut_real *gram, const taut_real *x, int64_t rows, int64_t cols)
{
    const bool wide = rows <= cols;
    const int64_t side = smaller(rows, cols);
    k->gemm(gram, x, x, side, side, larger(rows, cols), !wide, wide, 1, 0);
}

/* Scales X so that its largest singular value is at most 1.3; false: X is 0. */
static bool fit(const taut_kernels *k, taut_real *x, taut_real *gram, taut_real *square, int64_t rows, int64_t cols)
{
    const int64_t side = smaller(rows, cols), len = rows * cols;
    const double size = sqrt(k->dot(x, x, len));
    if (!(size > 0)) return false;
    k->axpby(x, 1 / size, x, 0, len);
    gram_of(k, gram, x, rows, cols);
    k->gemm(square, gram, gram, side, side, side, false, false, 1, 0);
    const double most = sqrt(sqrt(sqrt(k->dot(square, square, side * side))));
    k->axpby(x, 1.3 / most, x, 0, len);
    return true;
}

void taut_bjorck(const taut_kernels *k, taut_real *x, taut_real *work, int64_t rows, int64_t cols, int steps)
{
    const int64_t side = smaller(rows, cols), len = rows * cols;
    const bool wide = rows <= cols;
    taut_real *next = work, *gram = taut_at(k, work, len), *square = taut_at(k, gram, side * side);
    if (!fit(k, x, gram, square, rows, cols)) return;
    for (int i = 0; i < steps; i++) {
        gram_of(k, gram, x, rows, cols);
        k->axpby(next, 1.5, x, 0, len);
        if (wide)
            k->gemm(next, gram, x, rows, cols, rows, false, false, -0.5, 1);
        else
            k->gemm(next, x, gram, rows, cols, cols, false, false, -0.5, 1);
        k->axpby(x, 1, next, 0, len);
    }
}

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
    if (m > 0 && n > 0)
        cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (blasint)m,
                    (blasint)n, (blasint)k, alpha, a, (blasint)(ta ? m : k), b, (blasint)(tb ? k : n), beta, c,
                    (blasint)n);
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

bool taut_cayley(const taut_kernels *k, taut_real *x, double *work, int64_t rows, int64_t cols)
{
    const int64_t n = larger(rows, cols), m = smaller(rows, cols), len = n * m;
    double *system = work, *tall = system + n * n, *result = tall + len, *spare = result + len;
    get_tall(k, tall, x, spare, rows, cols);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) system[i * m + j] = tall[i * m + j] - tall[j * m + i];
    multiply(system, tall + m * m, true, tall + m * m, false, m, m, n - m, 1, 1);
    for (int64_t i = 0; i < n * m; i++) result[i] = i < m * m ? -system[i] : -2 * tall[i];
    for (int64_t i = 0; i < m; i++) {
        result[i * m + i] += 1;
        system[i * m + i] += 1;
    }
    if (!solve(result, system, n, m, spare)) return false;
    put_tall(k, x, result, spare, rows, cols);
    return true;
}

/* D <- P D = D - W (W^T D)/2, then A = D W^T - W D^T, both (n, m) tall. */
static void skew_of_move(double *a, double *d, const double *w, double *inner, int64_t n, int64_t m)
{
    multiply(inner, w, true, d, false, m, m, n, 1, 0);
    multiply(d, w, false, inner, false, n, m, m, -0.5, 1);
    multiply(a, d, false, w, true, n, n, m, 1, 0);
    multiply(a, w, false, d, true, n, n, m, -1, 1);
}

bool taut_cayley_retract(const taut_kernels *k, taut_real *x, const taut_real *before, double *work, int64_t rows,
                         int64_t cols)
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
