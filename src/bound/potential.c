/* Between two inputs f acts as a diagonal matrix D of secant slopes in [lo, hi], lo <= 0 <= hi, so the mix acts
 * as the symmetric matrix
 *     (keep + mix) I - 2 mix V^T R D V.
 * R D is diagonal with entries between lo R and hi R, hence lo V^T R V <= V^T R D V <= hi V^T R V, and with
 * 0 <= V^T R V <= ratio I all eigenvalues lie between keep + mix - 2 mix ratio hi and keep + mix - 2 mix
 * ratio lo.  The norm of a symmetric matrix is its largest |eigenvalue|.  No derivative is used.
 *
 * SLL.  With G = V V^T and Q = diag(q), T^-1 G is similar to Q^-1 T^-1 G Q, whose absolute row sums are
 * sum_j |G_ij| q_j / (q_i T_i) <= 1; so its eigenvalues, which are those of V^T T^-1 V but for zeros, are at
 * most 1 (Gershgorin).  This is true for any finite V and l, so no number has to be computed for it.  The
 * region needs |T^-1/2 b|: T_i is computed from below, each |G_ij| less its rounding g_m |v_i||v_j|. */
#include "bound/potential.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "bound/matrix.h"
#include "bound/norm.h"
#include "bound/range.h"
#include "bound/scalar.h"

/* a + b = s + lost exactly (Knuth). */
static double two_sum(double a, double b, double *lost)
{
    const double s = a + b, t = s - a;
    *lost = (a - (s - t)) + (b - t);
    return s;
}

/* |a + b + c|: exact when nothing is rounded. */
static taut_up up_total(double a, double b, double c)
{
    double e, f;
    const double ab = two_sum(a, b, &e), all = two_sum(ab, c, &f);
    return up_add(up_exact(all), up_add(up_exact(e), up_exact(f)));
}

/* a b, exact when nothing is rounded. */
static taut_up up_product(taut_up a, taut_up b)
{
    const double r = a.v * b.v;
    return r >= 0x1p-900 ? up_above(r, fma(a.v, b.v, -r) == 0) : up_mul(a, b);
}

taut_up up_potential_lip(taut_slopes slopes, taut_up ratio, double keep, double mix)
{
    const double ends[] = { slopes.lo, slopes.hi };
    taut_up most = up_total(keep, mix, 0);
    for (int i = 0; i < 2; i++) {
        const taut_up reach = up_product(up_exact(2 * mix), up_product(ratio, up_exact(ends[i])));
        most = up_max(most, up_total(keep, mix, (mix < 0) == (ends[i] < 0) ? -reach.v : reach.v));
    }
    return most;
}

/* h = V x + b, a = f(h), 2 V^T R a and the sum, one after the other; everything measured with R^1/2, R^-1/2 >= root, but what
 * R a loses by underflow, which V^T makes `plain` = |V|_F as long. */
taut_up up_potential_round(int64_t width, int64_t hidden, taut_slopes slopes, taut_up frobenius, taut_up bias,
                           taut_up delta, taut_up size, taut_lo root, taut_up plain)
{
    const taut_up lost = up_div(UP_LOST, root), h = up_add(up_mul(frobenius, size), bias);
    const taut_up dh = up_add(up_mul(up_gamma(width + 4), h), lost);
    const taut_up curve = up_add(up_mul((taut_up){ 0x1p-47 }, up_add(h, dh)), lost);
    const taut_up da = up_add(up_mul(up_slopes_lip(slopes), dh), curve), a = up_add(h, da);
    const taut_up wrong = up_add(da, up_mul(up_add(delta, up_gamma(hidden + 16)), a));
    const taut_up twice = up_mul((taut_up){ 2 }, frobenius);
    const taut_up sum = up_mul((taut_up){ 0x1p-50 }, up_add(size, up_mul(twice, a)));
    const taut_up small = up_mul(UP_LOST, up_add((taut_up){ 1 }, up_mul((taut_up){ 2 }, plain)));
    return up_add(up_add(up_mul(twice, wrong), sum), small);
}

typedef struct {
    taut_ball g;      /* V V^T as computed: an entry is wrong by at most gamma |v_i||v_j| */
    taut_up gamma;    /* of an entry */
    double *row, *lo; /* |v_i| from above; q from below */
    taut_up *up;      /* q from above */
    taut_up spread;   /* max |l_j - l_i| */
} dominance;

static bool open_dominance(dominance *p, const double *v, const double *l, int64_t n, int64_t width)
{
    taut_ball w = ball_of(v, n, width);
    *p = (dominance){ .g = ball_mul(&w, false, &w, true), .gamma = up_gamma(width + 2) };
    ball_free(&w);
    p->row = taut_malloc((size_t)(2 * n + 1) * sizeof *p->row);
    p->up = taut_malloc((size_t)(n + 1) * sizeof *p->up);
    if (!p->g.v || !p->row || !p->up) return false;
    p->lo = p->row + n;
    for (int64_t i = 0; i < n; i++) {
        p->row[i] = up_norm_frobenius(v + i * width, width).v;
        p->lo[i] = lo_exp(l[i]).v;
        p->up[i] = up_exp(l[i]);
        p->spread = up_max(p->spread, up_mul((taut_up){ 2 }, up_exact(l[i])));
    }
    return true;
}

static void close_dominance(dominance *p)
{
    ball_free(&p->g);
    free(p->row), free(p->up);
}

/* T_i from below; *wrong: how much a pass that is off like this can be off, relatively. */
static taut_lo lo_dominant(const dominance *p, int64_t i, int64_t n, double eps, taut_sll_off by, taut_up *wrong)
{
    const double *g = p->g.v + i * n;
    double sum = 0, lost = 0;
    for (int64_t j = 0; j < n; j++) {
        const double slack = p->gamma.v * p->row[i] * p->row[j] * (1 + 0x1p-40) + 0x1p-1000;
        if (j != i && fabs(g[j]) > slack) sum += (fabs(g[j]) - slack) * p->lo[j];
        lost += (by.product.v * p->row[i] * p->row[j] * (1 + 0x1p-40) + by.least.v) * p->up[j].v;
    }
    const taut_up rounding = up_gamma(n + 8), own = up_mul(p->gamma, up_exact(p->row[i] * p->row[i]));
    const taut_lo others = lo_sub((taut_lo){ sum }, up_mul((taut_up){ sum }, rounding));
    taut_lo t = lo_add((taut_lo){ eps }, lo_sub(lo_exact(g[i]), up_mul(own, (taut_up){ 1 + 0x1p-40 })));
    if (p->up[i].v < INFINITY) t = lo_add(t, lo_div(others, p->up[i]));
    const taut_up off = up_div(up_mul((taut_up){ lost }, (taut_up){ 1 + 0x1p-30 }), (taut_lo){ p->lo[i] });
    const taut_up relative = up_add(up_div(off, t), by.after);
    *wrong = relative.v < 0.5 && t.v < 0x1p900 ? up_mul((taut_up){ 2 }, relative)
                                               : UP_NONE; /* of 1/T, which keeps its digits */
    return t;
}

taut_sll_numbers up_sll(const double *v, const double *b, const double *l, int64_t hidden, int64_t width, double eps)
{
    taut_sll_numbers r = { UP_NONE, UP_NONE, UP_NONE };
    dominance p;
    const bool finite = range_max(v, hidden * width) <= DBL_MAX && range_max(l, hidden) <= DBL_MAX &&
                        (!b || range_max(b, hidden) <= DBL_MAX);
    if (!finite) return r;
    if (open_dominance(&p, v, l, hidden, width)) {
        const taut_sll_off by = { p.gamma,
                                  { 0x1p-1000 },
                                  up_add(up_gamma(hidden + 24), up_mul(p.spread, up_gamma(4))) };
        taut_up square = UP_ZERO, delta = UP_ZERO, wrong;
        for (int64_t i = 0; i < hidden; i++) {
            const taut_lo t = lo_dominant(&p, i, hidden, eps, by, &wrong);
            const taut_up bi = b ? up_exact(b[i]) : UP_ZERO;
            if (bi.v > 0) square = up_add(square, up_div(up_mul(bi, bi), t));
            delta = up_max(delta, wrong);
        }
        r.bias = up_sqrt(square);
        r.delta = delta;
    }
    r.ratio = (taut_up){ 1 };
    close_dominance(&p);
    return r;
}

taut_up up_sll_delta(const double *v, const double *l, int64_t hidden, int64_t width, double eps, taut_sll_off by)
{
    dominance p;
    taut_up delta = UP_NONE;
    if (open_dominance(&p, v, l, hidden, width)) {
        taut_up wrong, longest = UP_ZERO;
        delta = UP_ZERO;
        for (int64_t i = 0; i < hidden; i++) {
            lo_dominant(&p, i, hidden, eps, by, &wrong);
            delta = up_max(delta, wrong);
            longest = up_max(longest, (taut_up){ p.row[i] });
        }
        /* T <= eps + hidden |v|^2 exp(spread), and exp(x) <= 2^(1.5 x) */
        const double bits = 2 * log2(longest.v + 1) + log2((double)hidden + 1) + 1.5 * p.spread.v;
        if (!(bits < 90)) delta = UP_NONE;
    }
    close_dominance(&p);
    return delta;
}
