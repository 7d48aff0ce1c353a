/* F1: the spectral norm of W by a Cholesky certificate.
 *
 * G = fl(W^T W) on the smaller side n.  Lanczos suggests mu a little
 * above lam_max(G).  S = fl(mu I - G) gets a Cholesky factor R, and T = fl(S - R^T R) tests that factor,
 * whoever made it.  Then S = R^T R + T + D with |D| <= g_{n+1} (|S| + |R|^T |R|), R^T R >= 0, so
 *     lam_max(G) <= mu + u max|S_ii| + ||T||_F + g_{n+1} (||S||_F + ||R||_F^2),
 * and square.c goes from there to ||W||.  u = 2^-53, g_k = ku/(1-ku).
 *
 * top.c looks for the mu.  Assumes IEEE double, round to nearest, no flush to zero, and inner products as in blas.h.  Nothing is
 * assumed of blas_cholesky.  far.c does the same on a device, where there is one. */
#include <string.h>

#include "bound/blas.h"
#include "bound/far.h"
#include "bound/lanczos.h"
#include "bound/range.h"
#include "bound/shared.h"
#include "bound/square.h"
#include "bound/top.h"

typedef struct {
    const double *g;
    double *s, *r;
    int64_t n;
} proof; /* g: upper triangle */

/* S = mu I - G and a copy in R, upper triangles, zeros below.  Returns max |S_ii|. */
static double shift(proof p, double mu)
{
    double most = 0;
    for (int64_t i = 0; i < p.n; i++) {
        double *row = p.s + i * p.n;
        memset(row, 0, (size_t)i * sizeof *row);
        for (int64_t j = i; j < p.n; j++) row[j] = -p.g[i * p.n + j];
        row[i] = mu - p.g[i * p.n + i];
        most = fmax(most, fabs(row[i]));
    }
    memcpy(p.r, p.s, (size_t)(p.n * p.n) * sizeof *p.r);
    return most;
}

/* A proved bound on lam_max(G), or +inf where mu is too small. */
static taut_up certify(const void *self, double mu)
{
    const proof p = *(const proof *)self;
    const int64_t nn = p.n * p.n;
    const taut_up diagonal = up_mul((taut_up){ shift(p, mu) }, (taut_up){ 0x1p-53 });
    if (!blas_cholesky(p.r, p.n)) return UP_NONE;
    const taut_up root2 = { 0x1.6a09e667f3bcdp+0 }; /* the whole of a symmetric matrix from its half */
    const taut_up s = up_mul(root2, up_norm_frobenius(p.s, nn)), r = up_norm_frobenius(p.r, nn);
    blas_syrk(p.s, p.r, true, p.n, p.n, -1, 1);
    const taut_up t = up_mul(root2, up_norm_frobenius(p.s, nn));
    const taut_up rounding = up_mul(up_gamma(p.n + 1), up_add(s, up_mul(r, r)));
    return up_add(up_add(up_exact(mu), diagonal), up_add(t, rounding));
}

/* lam_max of the computed G. */
static taut_up up_top(proof p)
{
    double theta = est_top_symmetric(p.g, p.n);
    for (int64_t i = 0; i < p.n; i++) theta = fmax(theta, p.g[i * p.n + i]); /* also where theta is NaN */
    return up_top_search(theta, p.n, certify, &p);
}

taut_up up_top_symmetric(double *g, int64_t n)
{
    double *two = taut_malloc((size_t)(2 * n * n) * sizeof *two);
    if (!two) return UP_NONE;
    const taut_up r = up_top((proof){ g, two, two + n * n, n });
    free(two);
    return r;
}

static taut_up top(const double *w, int64_t rows, int64_t cols)
{
    const taut_up far = up_top_far(w, rows, cols);
    return far.v < INFINITY ? far : up_top_of_gram(w, rows, cols, up_top_symmetric);
}

static taut_up prove(const double *w, int64_t rows, int64_t cols) { return up_norm_from_top(w, rows, cols, top); }

taut_up up_norm(const double *w, int64_t rows, int64_t cols) { return up_norm_shared(w, rows, cols, prove); }
