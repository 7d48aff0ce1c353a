/* Lanczos with every vector kept orthogonal to all earlier ones (twice, by classical Gram-Schmidt):
 *     A V_k = V_k T_k + beta_k v_{k+1} e_k^T,   T_k tridiagonal,   lam_max(T_k) <= lam_max(A), increasing in k.
 * It stops when four more steps change lam_max by less than 1e-14 of it, or after STEPS.  The start
 * vector is a fixed random one, so the same matrix gives the same estimate.  Nothing here is a bound:
 * norm.c proves or rejects what it is told. */
#include "bound/lanczos.h"

#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bound/blas.h"
#include "bound/norm.h"
#include "bound/range.h"

enum { STEPS = LANCZOS_STEPS, CHECK_EVERY = 4 };

typedef struct {
    void (*apply)(const void *self, double *y, const double *x); /* y = A x, both of length n */
    const void *self;
    int64_t n;
} lanczos_operator;

double est_top_tridiagonal(const double *alpha, const double *beta, int k)
{
    double d[STEPS], e[STEPS];
    const blasint size = k;
    blasint info = 0;
    memcpy(d, alpha, (size_t)k * sizeof *d);
    memcpy(e, beta, (size_t)k * sizeof *e);
    dsterf_(&size, d, e, &info);
    return info == 0 ? d[k - 1] : NAN;
}

void est_start(double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) v[i] = taut_rng_unit(1, (uint64_t)i) - 0.5;
    cblas_dscal((blasint)n, 1 / cblas_dnrm2((blasint)n, v, 1), v, 1);
}

/* w minus its components along the first k rows of v. */
static void orthogonalise(double *w, const double *v, int64_t k, int64_t n, double *h)
{
    for (int pass = 0; pass < 2; pass++) {
        blas_gemv(h, v, false, w, k, n);
        cblas_dgemv(CblasRowMajor, CblasTrans, (blasint)k, (blasint)n, -1, v, (blasint)n, h, 1, 1, w, 1);
    }
}

static double iterate(lanczos_operator a, double *v, int64_t steps)
{
    double alpha[STEPS], beta[STEPS], h[STEPS], top = 0, before = -1;
    const blasint n = (blasint)a.n;
    est_start(v, a.n);
    for (int64_t k = 0; k < steps; k++) {
        double *at = v + k * a.n, *next = at + a.n;
        a.apply(a.self, next, at);
        alpha[k] = cblas_ddot(n, at, 1, next, 1);
        orthogonalise(next, v, k + 1, a.n, h);
        beta[k] = cblas_dnrm2(n, next, 1);
        const bool closed = !(beta[k] > 1e-15 * fmax(top, alpha[k])), last = k + 1 == steps;
        if (!closed && !last && (k + 1) % CHECK_EVERY) {
            cblas_dscal(n, 1 / beta[k], next, 1);
            continue;
        }
        top = est_top_tridiagonal(alpha, beta, (int)(k + 1));
        if (closed || last || top - before <= 1e-14 * top) return top;
        before = top;
        cblas_dscal(n, 1 / beta[k], next, 1);
    }
    return top;
}

static double est_top(lanczos_operator a)
{
    if (a.n < 1) return 0;
    const int64_t steps = a.n < STEPS ? a.n : STEPS;
    double *v = taut_malloc((size_t)(steps + 1) * (size_t)a.n * sizeof *v);
    if (!v) return NAN;
    const double top = iterate(a, v, steps);
    free(v);
    return top;
}

typedef struct {
    const double *g;
    double *work;
    int64_t n;
} stored;

static void apply_stored(const void *self, double *y, const double *x)
{
    const stored *s = self;
    blas_symv(y, s->g, x, s->n, s->work);
}

double est_top_symmetric(const double *g, int64_t n)
{
    const stored s = { g, taut_malloc((size_t)blas_symv_work(n) * sizeof(double)), n };
    const double top = s.work ? est_top((lanczos_operator){ apply_stored, &s, n }) : NAN;
    free(s.work);
    return top;
}

typedef struct {
    const double *w;
    double *half;
    int64_t rows, cols;
} product;

/* y = W^T W x, or W W^T x when that is the smaller side. */
static void apply_product(const void *self, double *y, const double *x)
{
    const product *p = self;
    const bool tall = p->rows >= p->cols;
    blas_gemv(p->half, p->w, !tall, x, p->rows, p->cols);
    blas_gemv(y, p->w, tall, p->half, p->rows, p->cols);
}

double est_norm(const double *w, int64_t rows, int64_t cols)
{
    const int64_t len = rows * cols, small = rows < cols ? rows : cols, large = rows < cols ? cols : rows;
    const double most = range_max(w, len);
    if (most == 0) return 0;
    if (!(most <= DBL_MAX) || large > INT_MAX) return NAN;
    const int e = range_shift(most);
    double *copy = e ? range_copy(w, len, e) : NULL, *half = taut_malloc((size_t)large * sizeof *half);
    double top = NAN;
    if (half && (!e || copy)) {
        const product p = { e ? copy : w, half, rows, cols };
        top = est_top((lanczos_operator){ apply_product, &p, small });
    }
    free(half);
    free(copy);
    return ldexp(sqrt(top), e);
}
