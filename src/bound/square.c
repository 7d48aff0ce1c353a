/* ||W||^2 <= lam_max(G) + g_m ||W||_F^2 + lost,   G = fl(W^T W) on the smaller side n, inner products of length m.
 *
 * Proof.  Entry by entry |fl(W^T W) - W^T W| <= g_m |W|^T |W|, whose norm is at most its Frobenius norm, at most
 * ||W||_F^2.  `lost` covers underflow, here and in what bounds lam_max(G): entries are within 2^+-200
 * (range.h), every product loses at most 2^-1075, and mn of them with their successors stay below
 * 8 mn 2^-800 while ||W||^2 >= 2^-400.  Matrices outside that range are first scaled by 2^-e to a largest
 * entry in [1/2, 1), which may cost the small entries 2^-1075 each, sqrt(mn) 2^-1075 in the norm.
 * The Frobenius norm bounds the spectral one too, and is the sharper of the two at rank one. */
#include "bound/square.h"

#include "bound/blas.h"
#include "bound/range.h"

taut_up up_top_of_gram(const double *w, int64_t rows, int64_t cols, up_top_symmetric_fn *top)
{
    const int64_t n = rows < cols ? rows : cols, m = rows < cols ? cols : rows;
    double *g = taut_malloc((size_t)(n * n) * sizeof *g);
    if (!g) return UP_NONE;
    blas_syrk(g, w, rows >= cols, n, m, 1, 0);
    const taut_up r = top(g, n);
    free(g);
    return r;
}

/* ||W||^2 for entries within range. */
static taut_up up_square(const double *w, int64_t rows, int64_t cols, taut_up frobenius, up_top_fn *top)
{
    const int64_t n = rows < cols ? rows : cols, m = rows < cols ? cols : rows;
    const taut_up lost = up_mul(up_mul(up_int(8 * m), up_int(n)), (taut_up){ RANGE_LOST });
    const taut_up rounding = up_mul(up_gamma(m), up_mul(frobenius, frobenius));
    return up_add(up_add(top(w, rows, cols), rounding), lost);
}

taut_up up_norm_from_top(const double *w, int64_t rows, int64_t cols, up_top_fn *top)
{
    const int64_t len = rows * cols;
    const taut_up frobenius = up_norm_frobenius(w, len);
    const double most = range_max(w, len);
    if (rows <= 1 || cols <= 1 || rows > INT_MAX || cols > INT_MAX || !(most <= DBL_MAX) || most == 0) return frobenius;
    const int e = range_shift(most);
    double *c = e ? range_copy(w, len, e) : NULL;
    if (e && !c) return UP_NONE;
    const taut_up inside = e ? up_norm_frobenius(c, len) : frobenius;
    taut_up norm = up_sqrt(up_square(e ? c : w, rows, cols, inside, top));
    free(c);
    if (e) norm = up_ldexp(up_add(norm, up_mul(up_sqrt(up_int(len)), (taut_up){ 0x1p-1074 })), e);
    return norm.v < INFINITY ? up_min(norm, frobenius) : UP_NONE;
}
