/* F1 (norm.c) with G, S, R and T on a device.  There R need not be triangular, nor T symmetric: for any vector x
 *     x^T S x = |R^T x|^2 + x^T (T + D) x,   |D| <= g_{n+4} (|S| + |R| |R|^T) entry by entry,
 * so lam_max(G) <= mu + u max|S_ii| + ||T||_F + g_{n+4} (||S||_F + ||R||_F^2).  A sum of n^2 squares in any order is right to
 * g_{n^2}, and to 2^-1074 a square that underflows. */
#include "bound/far.h"

#include <float.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bound/arithmetic.h"
#include "bound/lanczos.h"
#include "bound/norm.h"
#include "bound/top.h"

enum { SIDE = 256, BETWEEN = 16 };
#define WORTH 0x1p26 /* multiplications: below, the way there takes longer */

static _Atomic(const taut_far *) chosen;

static bool worth(int64_t m, int64_t n, int64_t k) { return (double)m * (double)n * (double)k >= WORTH; }

bool taut_far_gemm(double *c, const double *a, bool ta, const double *b, bool tb, int64_t m, int64_t n, int64_t k)
{
    const taut_far *far = chosen;
    bool good = false;
    if (!far || !worth(m, n, k)) return false;
#pragma omp critical(taut_far)
    good = far->gemm(c, a, ta, b, tb, m, n, k, 1, 0);
    return good;
}

/* What Lanczos sees of the G that is held; NaN: the device failed. */
static double est_held(const taut_far *far, int64_t n)
{
    double alpha[LANCZOS_STEPS], beta[LANCZOS_STEPS], top = 0, before = -1;
    const int steps = n < LANCZOS_STEPS ? (int)n : LANCZOS_STEPS;
    double *start = taut_malloc((size_t)n * sizeof *start);
    bool good = start != NULL;
    if (good) est_start(start, n);
    for (int from = 0, to; good && from < steps && top - before > 1e-14 * top; from = to) {
        to = from + BETWEEN < steps ? from + BETWEEN : steps;
        good = far->lanczos(alpha, beta, start, from, to);
        before = top;
        if (good) top = est_top_tridiagonal(alpha, beta, to);
    }
    free(start);
    return good ? top : NAN;
}

static taut_up up_root_of_sum(double squares, int64_t n)
{
    const taut_up terms = up_mul(up_int(n), up_int(n)), lost = up_mul(terms, (taut_up){ DBL_TRUE_MIN });
    const taut_up sum = up_mul((taut_up){ squares }, up_add((taut_up){ 1 }, up_gamma(n * n + 2)));
    return up_sqrt(up_add(sum, lost));
}

typedef struct {
    const taut_far *far;
    int64_t n;
} held;

static taut_up certify(const void *self, double mu)
{
    const held *h = self;
    const int64_t n = h->n;
    taut_far_proof p;
    if (!h->far->prove(&p, mu)) return UP_NONE;
    if (!(p.s >= 0 && p.r >= 0 && p.t >= 0 && p.diagonal >= 0)) return UP_NONE;
    const taut_up s = up_root_of_sum(p.s, n), r = up_root_of_sum(p.r, n), t = up_root_of_sum(p.t, n);
    const taut_up diagonal = up_mul((taut_up){ p.diagonal }, (taut_up){ 0x1p-53 });
    const taut_up rounding = up_mul(up_gamma(n + 4), up_add(s, up_mul(r, r)));
    return up_add(up_add(up_exact(mu), diagonal), up_add(t, rounding));
}

static taut_up top(const taut_far *far, const double *w, int64_t rows, int64_t cols)
{
    const held h = { far, rows < cols ? rows : cols };
    double diagonal = 0;
    if (!far->hold(&diagonal, w, rows, cols)) return UP_NONE;
    return up_top_search(fmax(est_held(far, h.n), diagonal), h.n, certify, &h);
}

taut_up up_top_far(const double *w, int64_t rows, int64_t cols)
{
    const taut_far *far = chosen;
    const int64_t n = rows < cols ? rows : cols;
    taut_up r = UP_NONE;
    if (!far || n < SIDE || !worth(n, rows, cols)) return UP_NONE;
#pragma omp critical(taut_far)
    r = top(far, w, rows, cols);
    return r;
}

taut_status taut_far_use(const taut_far *given)
{
    bool memory = true;
    chosen = NULL;
    const char *fault = given ? taut_arithmetic_far(given, &memory) : NULL;
    if (!memory) return taut_no_memory("a test of the device's products");
    if (fault) return taut_fail(TAUT_DEVICE, "no proof can be trusted to this device: %s", fault);
    chosen = given;
    return TAUT_OK;
}
