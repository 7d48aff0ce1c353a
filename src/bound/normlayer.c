/* LayerNorm and RMSNorm,  y = diag(g) z + b,  z = C x / sd,  sd = sqrt(|C x|^2/d + eps).
 *
 * Jacobian diag(g) (C - z z^T/d) / sd with |z|^2 <= d, so its norm is at most ||diag(g) C|| / sd, and |z| <=
 * sqrt d. everywhere   sd >= sqrt(eps)                       on a ball   |C x'| >= |C x| - r, and balls are
 * convex pointed      z/sqrt d is the unit vector of (C x, sqrt(d eps)) without its last entry, and unit
 * vectors obey |a/|a| - b/|b|| <= |a - b| / sqrt(|a||b|): divide by sqrt(sd_x sd_x') instead.
 *
 * ||diag(g) C||^2 is the largest of sum g_i^2 y_i^2 over unit y with sum y_i = 0.  Divide by the largest |g|,
 * so that g_1^2 = 1, and let a_i >= g_i^2 for the others.  For a_i < l <= 1, (1 - l) sum_{i>1} 1/(l - a_i) <=
 * 1   proves   ||diag(g) C||^2 <= l, because y_1^2 = (sum_{i>1} y_i)^2 <= sum_{i>1} (l - a_i) y_i^2 *
 * sum_{i>1} 1/(l - a_i) by Cauchy-Schwarz.  The smallest such l is the norm squared (it is at least 1 - 1/d);
 * bisection finds it to the last bits, and the test is evaluated with its rounding.  l = 1 always passes. */
#include "bound/normlayer.h"

#include <float.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bound/norm.h"
#include "bound/range.h"

/* Does l pass?  Each term has 2 roundings, the sum one less than there are terms. */
static bool passes(double l, const double *a, int64_t others)
{
    double sum = 0;
    for (int64_t i = 0; i < others; i++) {
        if (!(l > a[i])) return false;
        sum += 1 / (l - a[i]);
    }
    const taut_up all = up_mul((taut_up){ sum }, up_add((taut_up){ 1 }, up_gamma(others + 2)));
    return up_mul(up_sub((taut_up){ 1 }, (taut_lo){ l }), all).v <= 1;
}

static taut_up up_secular(const double *g, int64_t d, int64_t first)
{
    const double most = fabs(g[first]);
    double *a = taut_malloc((size_t)d * sizeof *a), lo = 1 - 1 / (double)d, hi = 1;
    if (!a) return UP_NONE;
    int64_t others = 0;
    for (int64_t i = 0; i < d; i++) {
        if (i == first) continue;
        const taut_up h = up_div(up_exact(g[i]), (taut_lo){ most });
        a[others] = up_mul(h, h).v;
        lo = fmax(lo, fmin(a[others++], 1));
    }
    for (;;) {
        const double l = lo + (hi - lo) / 2;
        if (!(lo < l && l < hi)) break;
        if (passes(l, a, others))
            hi = l;
        else
            lo = l;
    }
    free(a);
    return hi == 1 ? up_exact(most) : up_mul(up_exact(most), up_sqrt((taut_up){ hi }));
}

taut_up up_diag_centre_norm(const double *g, int64_t d, bool centre)
{
    if (d < 1 || (d == 1 && centre && (!g || isfinite(g[0])))) return UP_ZERO;
    if (!g) return (taut_up){ 1 };
    const double most = range_max(g, d);
    if (!centre || most == 0 || !(most <= DBL_MAX)) return (taut_up){ most };
    int64_t first = 0;
    while (fabs(g[first]) < most) first++;
    return up_secular(g, d, first);
}

/* sqrt(size^2/d + eps) from below. */
static taut_lo lo_deviation(int64_t d, double eps, taut_lo size)
{
    const taut_lo variance = lo_div(lo_mul(size, size), up_int(d));
    return lo_sqrt(eps > 0 ? lo_add(variance, (taut_lo){ eps }) : variance);
}

taut_up up_normlayer_global(taut_up norm, double eps)
{
    if (!(eps >= 0)) return UP_NONE;
    return norm.v == 0 ? UP_ZERO : up_div(norm, lo_sqrt((taut_lo){ eps }));
}

taut_up up_normlayer_ball(taut_up norm, int64_t d, double eps, taut_lo size, taut_up r)
{
    if (!(eps >= 0)) return UP_NONE;
    return norm.v == 0 ? UP_ZERO : up_div(norm, lo_deviation(d, eps, lo_sub(size, r)));
}

taut_up up_normlayer_pointed(taut_up norm, int64_t d, double eps, taut_lo size, taut_up r)
{
    if (!(eps >= 0)) return UP_NONE;
    const taut_lo here = lo_deviation(d, eps, size), there = lo_deviation(d, eps, lo_sub(size, r));
    return norm.v == 0 ? UP_ZERO : up_div(norm, lo_sqrt(lo_mul(here, there)));
}

/* |z| = |C x| / sd grows with |C x| <= X. */
taut_up up_normlayer_radius(taut_up norm, const double *b, int64_t d, double eps, taut_up x)
{
    if (!(eps >= 0)) return UP_NONE;
    const taut_up at_x = x.v == 0 ? UP_ZERO : up_div(x, lo_deviation(d, eps, (taut_lo){ x.v }));
    const taut_up z = up_min(up_sqrt(up_int(d)), at_x);
    return up_add(b ? up_norm_frobenius(b, d) : UP_ZERO, up_mul(norm, z));
}

/* c = fl(x - m) for the computed mean m; |C x| >= |C c| - u|c|, and |C c| >= |c| - sqrt(d) |mean c|, where the
 * computed mean of c is wrong by at most g_{d+1} times the mean of |c|, which is at most |c|/sqrt d. */
taut_lo lo_centred_norm(const double *x, int64_t d, bool centre)
{
    if (!centre || d < 1) return lo_norm_frobenius(x, d);
    double *c = taut_malloc((size_t)d * sizeof *c), mean = 0, rest = 0;
    if (!c || !(range_max(x, d) < 0x1p900)) {
        free(c);
        return (taut_lo){ 0 };
    }
    for (int64_t i = 0; i < d; i++) mean += x[i] / (double)d;
    for (int64_t i = 0; i < d; i++) rest += c[i] = x[i] - mean;
    rest = fabs(rest / (double)d);
    const taut_up size = up_norm_frobenius(c, d), root = up_sqrt(up_int(d));
    taut_up lost = up_mul(up_add(up_gamma(d + 2), (taut_up){ 0x1p-53 }), size);
    lost = up_add(lost, up_mul(root, up_add((taut_up){ rest }, (taut_up){ 0x1p-1074 })));
    const taut_lo r = lo_sub(lo_norm_frobenius(c, d), lost);
    free(c);
    return r;
}
