/* F2: the spectral norm of W by Gram iteration.
 *
 * G_0 = fl(W^T W), then H_k = G_k 2^{-e_k} and G_{k+1} = fl(H_k^T H_k): squaring pulls the largest eigenvalue
 * away from the others until cheap bounds of the last G are sharp.  All G are exactly symmetric (one triangle
 * copied onto the other).  With f_k >= ||G_k||_F and 2^{e_k} >= f_k,
 *     ||G_k|| <= 2^{e_k} ( sqrt( ||G_{k+1}|| + g_n (f_k 2^{-e_k})^2 + n^3 2^-1074 ) + n 2^-1074 ),
 *     ||W||^2 <= ||G_0|| + g_m ||W||_F^2 + lost,
 * the terms 2^-1074 for underflow.  At the end, b = min( f, max row sum of |G|, t/n + sqrt((n-1)/n (f^2 -
 * t^2/n)) ) with t = tr G (Wolkowicz-Styan; t rounded up in the first place and down in the second) bounds
 * lam_max(G), which is enough there, and the inequalities carry it back to W.  Every k gives a valid bound;
 * the smallest counts. */
#include "bound/blas.h"
#include "bound/range.h"
#include "bound/square.h"

enum { ROUNDS = 12 };

typedef struct {
    int e;
    taut_up err, tiny;
} step; /* what carries a bound of G_{k+1} back to G_k */

static void mirror(double *g, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) g[i * n + j] = g[j * n + i];
}

static taut_up up_row_sum(const double *g, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += fabs(g[i * n + j]);
        most = fmax(most, sum);
    }
    return up_mul((taut_up){ most }, up_add((taut_up){ 1 }, up_gamma(n)));
}

static taut_up up_last(const double *g, int64_t n, taut_up f)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += g[i * n + i]; /* none is negative: they are sums of squares */
    const taut_up gamma = up_gamma(n), t_up = up_mul((taut_up){ sum }, up_add((taut_up){ 1 }, gamma));
    const taut_lo t_lo = lo_mul((taut_lo){ sum }, lo_sub((taut_lo){ 1 }, gamma)), exact_n = { (double)n };
    const taut_up rest = up_sub(up_mul(f, f), lo_div(lo_mul(t_lo, t_lo), (taut_up){ (double)n }));
    const taut_up spread = up_sqrt(up_mul(up_div((taut_up){ (double)(n - 1) }, exact_n), rest));
    return up_min(up_min(f, up_row_sum(g, n)), up_add(up_div(t_up, exact_n), spread));
}

static taut_up carry_back(const step *s, int k, taut_up b)
{
    while (k-- > 0) b = up_ldexp(up_add(up_sqrt(up_add(b, s[k].err)), s[k].tiny), s[k].e);
    return b;
}

/* H = G 2^{-e} in place, G' = fl(H^T H) into next. */
static step squared(double *next, double *g, int64_t n, taut_up f)
{
    step s = { 0 };
    const taut_up nn = up_mul(up_int(n), up_int(n));
    (void)frexp(f.v, &s.e);
    for (int64_t i = 0; i < n * n; i++) g[i] = ldexp(g[i], -s.e);
    const taut_up h = up_ldexp(f, -s.e);
    s.tiny = up_mul(up_int(n), (taut_up){ 0x1p-1074 });
    const taut_up products = up_mul(up_gamma(n), up_mul(up_add(h, s.tiny), up_add(h, s.tiny)));
    s.err = up_add(products, up_mul(up_mul(nn, up_int(n)), (taut_up){ 0x1p-1074 }));
    blas_syrk(next, g, true, n, n, 1, 0);
    mirror(next, n);
    return s;
}

static taut_up up_iterate(double *g, double *next, int64_t n)
{
    step steps[ROUNDS];
    taut_up best = UP_NONE;
    for (int k = 0;; k++) {
        const taut_up f = up_norm_frobenius(g, n * n);
        const taut_up b = carry_back(steps, k, up_last(g, n, f));
        const bool settled = b.v >= best.v * (1 - 1e-9);
        best = up_min(best, b);
        if (k == ROUNDS || settled || !(f.v > 0 && f.v < INFINITY)) return best;
        steps[k] = squared(next, g, n, f);
        double *swap = g;
        g = next;
        next = swap;
    }
}

static taut_up up_square(double *g, int64_t n)
{
    double *next = taut_malloc((size_t)(n * n) * sizeof *next);
    if (!next) return UP_NONE;
    mirror(g, n);
    const taut_up r = up_iterate(g, next, n);
    free(next);
    return r;
}

static taut_up top(const double *w, int64_t rows, int64_t cols) { return up_top_of_gram(w, rows, cols, up_square); }

taut_up up_norm_gram(const double *w, int64_t rows, int64_t cols) { return up_norm_from_top(w, rows, cols, top); }
