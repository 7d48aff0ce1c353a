/* The BLAS against plain loops: each entry within twice the error that blas.h allows an inner product, once for either side.
 *
 * Rows of A and columns of B have sizes from 2^-20 to 2^20: a method whose error is small only beside the largest entry
 * (Strassen's), or a shorter format (TF32, bf16), does not pass.  What is not to be read (C at beta = 0) or written (below
 * the diagonal) is NaN.  The shapes are odd; the small ones take the short cuts that some libraries have for them, the
 * others are longer than a block in one of their sizes.  They run in all threads at once, as proofs do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/blas.h"
#include "base/rng.h"
#include "bound/arithmetic.h"
#include "bound/blas.h"

typedef struct {
    int m, n, k;
} shape;

static const shape shapes[] = { { 1, 1, 1 },   { 3, 5, 2 },     { 8, 4, 16 },    { 17, 33, 65 },
                                { 1, 70, 40 }, { 47, 49, 515 }, { 515, 47, 49 }, { 47, 515, 49 } };

/* A (m, k), B (k, n), both also transposed; what A B is, and sum |a| |b|; C before and after. */
typedef struct {
    shape s;
    double *a, *at, *b, *bt, *product, *size, *before, *after;
} trial;

static double entry(uint64_t key, int i, int j) { return taut_rng_unit(key, (uint64_t)i * 4096 + (uint64_t)j) - 0.5; }

static double row_size(uint64_t key, int i) { return ldexp(1, (int)taut_rng_below(key, (uint64_t)i, 41) - 20); }

/* One block of memory, or NULL: not through taut_malloc, since a test that counts allocations must not meet this one. */
static double *trial_create(trial *t, shape s)
{
    const size_t mk = (size_t)s.m * (size_t)s.k, kn = (size_t)s.k * (size_t)s.n, mn = (size_t)s.m * (size_t)s.n;
    double *all = calloc(2 * mk + 2 * kn + 4 * mn, sizeof *all);
    *t = (trial){ .s = s, .a = all };
    if (!all) return NULL;
    t->at = t->a + mk, t->b = t->at + mk, t->bt = t->b + kn, t->product = t->bt + kn;
    t->size = t->product + mn, t->before = t->size + mn, t->after = t->before + mn;
    for (int i = 0; i < s.m; i++)
        for (int l = 0; l < s.k; l++) t->at[l * s.m + i] = t->a[i * s.k + l] = row_size(1, i) * entry(2, i, l);
    for (int l = 0; l < s.k; l++)
        for (int j = 0; j < s.n; j++) t->bt[j * s.k + l] = t->b[l * s.n + j] = row_size(3, j) * entry(4, l, j);
    for (int i = 0; i < s.m; i++)
        for (int j = 0; j < s.n; j++) t->before[i * s.n + j] = row_size(1, i) * row_size(3, j) * entry(5, i, j);
    return all;
}

/* product += A B, size += |A| |B|: plain loops. */
static void multiply(const trial *t, const double *a, const double *b, int m, int n, int k)
{
    memset(t->product, 0, (size_t)m * (size_t)n * sizeof(double));
    memset(t->size, 0, (size_t)m * (size_t)n * sizeof(double));
    for (int i = 0; i < m; i++)
        for (int l = 0; l < k; l++) {
            const double x = a[i * k + l];
            const double *restrict y = b + l * n;
            double *restrict p = t->product + i * n, *restrict s = t->size + i * n;
            for (int j = 0; j < n; j++) p[j] += x * y[j], s[j] += fabs(x * y[j]);
        }
}

/* C before the call: NaN where it is not to be read. */
static void fill(trial *t, int len, double beta)
{
    for (int i = 0; i < len; i++) t->after[i] = beta == 0 ? NAN : t->before[i];
}

/* Is entry e alpha A B + beta C?  (1 + g)^k - 1 <= 2 k 2^-53 for the few hundred k here. */
static bool right(const trial *t, int e, int k, double alpha, double beta)
{
    const double old = beta == 0 ? 0 : beta * t->before[e], expected = alpha * t->product[e] + old;
    const double allowed = 2 * (2 * (k + 4) * 0x1p-53) * (fabs(alpha) * t->size[e] + fabs(old));
    return fabs(t->after[e] - expected) <= allowed;
}

static bool gemm_is_right(trial *t, bool ta, bool tb, double alpha, double beta)
{
    const int m = t->s.m, n = t->s.n, k = t->s.k;
    bool good = true;
    fill(t, m * n, beta);
    cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n, k, alpha,
                ta ? t->at : t->a, ta ? m : k, tb ? t->bt : t->b, tb ? k : n, beta, t->after, n);
    for (int e = 0; e < m * n; e++) good = good && right(t, e, k, alpha, beta);
    return good;
}

/* A column and a row of the product: A b and B^T a. */
static bool gemv_is_right(trial *t, double alpha, double beta)
{
    const int m = t->s.m, n = t->s.n, k = t->s.k;
    bool good = true;
    for (int way = 0; way < 4; way++) {
        const bool column = way % 2, across = way / 2, trans = column ? across : !across;
        const double *matrix = column ? (across ? t->at : t->a) : (across ? t->bt : t->b);
        const int rows = column ? (across ? k : m) : (across ? n : k),
                  cols = column ? (across ? m : k) : (across ? k : n);
        fill(t, m * n, beta);
        cblas_dgemv(CblasRowMajor, trans ? CblasTrans : CblasNoTrans, rows, cols, alpha, matrix, cols,
                    column ? t->b : t->a, column ? n : 1, beta, t->after, column ? n : 1);
        for (int i = 0; i < (column ? m : n); i++) good = good && right(t, column ? i * n : i, k, alpha, beta);
    }
    return good;
}

/* The upper half of A A^T into an m x m corner that is no larger than C; nothing below the diagonal may change. */
static bool syrk_is_right(trial *t, bool trans, double alpha, double beta)
{
    const int m = t->s.m < t->s.n ? t->s.m : t->s.n, k = t->s.k;
    bool good = true;
    fill(t, m * m, beta);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < i; j++) t->after[i * m + j] = NAN;
    cblas_dsyrk(CblasRowMajor, CblasUpper, trans ? CblasTrans : CblasNoTrans, m, k, alpha, trans ? t->at : t->a,
                trans ? t->s.m : k, beta, t->after, m);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            good = good && (j < i ? isnan(t->after[i * m + j]) : right(t, i * m + j, k, alpha, beta));
    return good;
}

static bool dot_is_right(const trial *t)
{
    const int n = t->s.n, k = t->s.k;
    const double got = cblas_ddot(k, t->a, 1, t->b, n);
    return fabs(got - t->product[0]) <= 4 * (k + 4) * 0x1p-53 * t->size[0];
}

static const char *fault_at(trial *t)
{
    static const struct {
        double alpha, beta;
    } factors[] = { { 1, 0 }, { -1, 1 }, { 0.75, -0.5 }, { 0, 0 }, { 0, 0.75 } };
    const int count = t->s.m > 500 || t->s.n > 500 ? 1 : t->s.k > 500 ? 2 : 5; /* the large ones take long */
    multiply(t, t->a, t->b, t->s.m, t->s.n, t->s.k);
    for (int f = 0; f < count; f++) {
        const double alpha = factors[f].alpha, beta = factors[f].beta;
        for (int way = 0; way < 4; way++)
            if (!gemm_is_right(t, way & 1, way & 2, alpha, beta)) return "the BLAS's dgemm is wrong";
        if (!gemv_is_right(t, alpha, beta)) return "the BLAS's dgemv is wrong";
    }
    if (!dot_is_right(t)) return "the BLAS's ddot is wrong";
    const int side = t->s.m < t->s.n ? t->s.m : t->s.n;
    double *bt = t->bt; /* A^T's first columns take its place */
    for (int l = 0; l < t->s.k; l++)
        for (int j = 0; j < side; j++) bt[l * side + j] = t->a[j * t->s.k + l];
    multiply(t, t->a, bt, side, side, t->s.k);
    for (int f = 0; f < count; f++)
        for (int way = 0; way < 2; way++)
            if (!syrk_is_right(t, way, factors[f].alpha, factors[f].beta)) return "the BLAS's dsyrk is wrong";
    return NULL;
}

const char *taut_arithmetic_blas(bool *memory)
{
    const int count = sizeof shapes / sizeof *shapes;
    const char *fault = NULL;
    bool enough = true;
    taut_blas_single();
#pragma omp parallel for schedule(dynamic) reduction(&& : enough)
    for (int i = count - 1; i >= 0; i--) {
        trial t;
        double *all = trial_create(&t, shapes[i]);
        const char *wrong = all ? fault_at(&t) : NULL;
        enough = enough && all;
        if (wrong) {
#pragma omp critical(taut_arithmetic_blas)
            fault = wrong;
        }
        free(all);
    }
    *memory = enough;
    return fault;
}

static bool far_is_right(trial *t, const taut_far *far, bool ta, bool tb, double alpha, double beta)
{
    const int m = t->s.m, n = t->s.n, k = t->s.k;
    fill(t, m * n, beta);
    bool good = far->gemm(t->after, ta ? t->at : t->a, ta, tb ? t->bt : t->b, tb, m, n, k, alpha, beta);
    for (int e = 0; e < m * n; e++) good = good && right(t, e, k, alpha, beta);
    return good;
}

/* G = A^T A or A A^T, whose largest number on the diagonal is known, and a mu for which the factor and all sums follow from
 * it: from mu = 2 |A|_F^2 on S is positive definite, |S|^2 = sum of (mu - G)^2, |R|^2 = tr S, and T is but rounding. */
static bool far_proves(const trial *t, const taut_far *far)
{
    const int rows = t->s.m, cols = t->s.k, n = rows < cols ? rows : cols;
    double all = 0, most = 0, squares = 0, trace = 0, diagonal = 0, got = 0;
    taut_far_proof p;
    for (int e = 0; e < rows * cols; e++) all += t->a[e] * t->a[e];
    const double mu = 2 * all;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double g = 0;
            for (int l = 0; l < (rows < cols ? cols : rows); l++)
                g += rows < cols ? t->a[i * cols + l] * t->a[j * cols + l] : t->a[l * cols + i] * t->a[l * cols + j];
            const double s = (i == j ? mu : 0) - g;
            squares += s * s;
            if (i != j) continue;
            trace += s, most = fmax(most, g), diagonal = fmax(diagonal, s);
        }
    if (!far->hold(&got, t->a, rows, cols) || !(fabs(got - most) <= 1e-12 * all) || !far->prove(&p, mu)) return false;
    const bool sums = fabs(p.s - squares) <= 1e-10 * squares && fabs(p.r - trace) <= 1e-10 * trace;
    return sums && fabs(p.diagonal - diagonal) <= 1e-12 * mu && p.t <= 1e-24 * squares && !far->prove(&p, most / 2);
}

const char *taut_arithmetic_far(const taut_far *far, bool *memory)
{
    const int count = sizeof shapes / sizeof *shapes;
    const char *fault = NULL;
    *memory = true;
    for (int i = 0; i < count && !fault; i++) {
        trial t;
        double *all = trial_create(&t, shapes[i]);
        *memory = *memory && all;
        if (!all) continue;
        multiply(&t, t.a, t.b, t.s.m, t.s.n, t.s.k);
        for (int way = 0; way < 8; way++)
            if (!far_is_right(&t, far, way & 1, way & 2, way & 4 ? -1 : 1, way & 4 ? 1 : 0))
                fault = "its products of doubles are wrong";
        if (!fault && !far_proves(&t, far)) fault = "its factors or sums are wrong";
        free(all);
    }
    return fault;
}
