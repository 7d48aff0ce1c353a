/* Between any two inputs the activation acts as a diagonal matrix D of secant slopes in [lo, hi] = [m - r, m
 * + r], so keep I + mix c W_out D W_in = (keep I + mix c m W_out W_in) + mix c W_out (D - m I) W_in,  |D - m
 * I| <= r, and Lip <= ||keep I + mix c m W_out W_in|| + |mix c| r ||W_out T^-1|| ||T W_in||      for every
 * diagonal T > 0, since T commutes with D.  Or the triangle inequality, |keep| + |mix c| max(|lo|,|hi|)
 * ||W_out T^-1|| ||T W_in||.  The lesser of the two.  Growth is the same with the secants from 0, f(z)/z in
 * [0, 1], so m = r = 1/2 (of |z| in [-1, 1], so m = 0, r = 1), and |mix| (|c| ||W_out|| |b_in| + |b_out|)
 * added.   T = I, and T_k = sqrt(|column k of W_out| / |row k of W_in|), which makes both factors alike; where
 * either is 0 the unit contributes nothing and T_k = 1. */
#include "bound/mlp.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "bound/matrix.h"
#include "bound/norm.h"
#include "bound/range.h"

enum { UNITS = 64 }; /* hidden units whose columns are read together, row by row */

static void add_squares(double *sum, const double *x, int64_t len)
{
    for (int64_t i = 0; i < len; i++) sum[i] += x[i] * x[i];
}

/* e_k with T_k = 2^e_k: powers of two, so that scaling by them is exact. */
static void balance(const taut_mlp_weights *w, double *exponent)
{
#pragma omp parallel for schedule(static) if (w->hidden * w->width >= RANGE_SHARED)
    for (int64_t from = 0; from < w->hidden; from += UNITS) {
        const int64_t units = w->hidden - from < UNITS ? w->hidden - from : UNITS;
        double columns[UNITS] = { 0 };
        for (int64_t i = 0; i < w->out; i++) add_squares(columns, w->w_out + i * w->hidden + from, units);
        for (int64_t u = 0; u < units; u++) {
            const double *in = w->w_in + (from + u) * w->width, column = columns[u];
            double row = 0;
            int e = 0;
            for (int64_t j = 0; j < w->width; j++) row += in[j] * in[j];
            if (row > 0 && column > 0 && isfinite(row) && isfinite(column)) frexp(sqrt(sqrt(column / row)), &e);
            exponent[from + u] = e > 200 || e < -200 ? 0 : e;
        }
    }
}

/* T = I unless balancing makes the product smaller. */
static void scale_units(const taut_mlp_weights *w, const taut_ball *in, const taut_ball *out, taut_mlp_numbers *n)
{
    double *up = taut_malloc((size_t)(3 * w->hidden + 1) * sizeof *up);
    n->scaled_in = up_ball_norm(in);
    n->scaled_out = n->norm_out;
    if (!up) return;
    double *down = up + w->hidden, *units = down + w->hidden;
    balance(w, units);
    for (int64_t k = 0; k < w->hidden; k++) {
        up[k] = ldexp(1, (int)units[k]);
        down[k] = ldexp(1, -(int)units[k]);
    }
    taut_ball a = ball_scale_rows(in, up), b = ball_scale_cols(out, down);
    const taut_up sa = up_ball_norm(&a), sb = up_ball_norm(&b);
    if (up_mul(sa, sb).v < up_mul(n->scaled_in, n->scaled_out).v) {
        n->scaled_in = sa, n->scaled_out = sb;
        ledger_list(w->ledger, "units", units, (int)w->hidden);
    }
    ball_free(&a), ball_free(&b);
    free(up);
}

/* ||keep I + slope W_out W_in|| */
static taut_up up_joint(const taut_ball *product, double keep, double slope, int64_t n)
{
    taut_ball scaled = ball_scale(product, slope), identity = ball_identity(keep, n);
    taut_ball sum = keep == 0 ? ball_of(NULL, 0, 0) : ball_add(&identity, &scaled);
    const taut_up norm = up_ball_norm(keep == 0 ? &scaled : &sum);
    ball_free(&scaled), ball_free(&identity), ball_free(&sum);
    return norm;
}

taut_mlp_numbers up_mlp_numbers(const taut_mlp_weights *w)
{
    taut_ball in = ball_of(w->w_in, w->hidden, w->width), out = ball_of(w->w_out, w->out, w->hidden);
    taut_ball product = ball_mul(&out, false, &in, false);
    const double slope = w->mix * w->factor;
    taut_mlp_numbers n = { .norm_out = up_ball_norm(&out) };
    scale_units(w, &in, &out, &n);
    n.joint = up_joint(&product, w->keep, slope * slopes_mid(w->slopes), w->out);
    n.joint_half = up_joint(&product, w->keep, slope * slopes_mid(w->ratio), w->out);
    n.bias_in = w->b_in ? up_norm_frobenius(w->b_in, w->hidden) : UP_ZERO;
    n.bias_out = w->b_out ? up_norm_frobenius(w->b_out, w->out) : UP_ZERO;
    ball_free(&in), ball_free(&out), ball_free(&product);
    return n;
}

/* slope * slopes_mid and mix * factor round; what that moves the middle by is added to the half width. */
static taut_up up_slack(const taut_mlp_weights *w, double middle)
{
    const taut_up size = up_mul(up_mul(up_exact(w->mix), up_exact(w->factor)), up_exact(middle));
    return up_mul(size, (taut_up){ 0x1p-51 });
}

static taut_up up_either(const taut_mlp_weights *w, const taut_mlp_numbers *n, taut_up joint, double middle,
                         taut_up half, taut_up most)
{
    const taut_up mixed = up_mul(up_exact(w->mix), up_exact(w->factor)), product = up_mul(n->scaled_in, n->scaled_out);
    const taut_up spread = up_add(up_mul(mixed, half), up_slack(w, middle));
    return up_min(up_add(joint, up_mul(spread, product)),
                  up_add(up_exact(w->keep), up_mul(up_mul(mixed, most), product)));
}

taut_up up_mlp_lip(const taut_mlp_weights *w, const taut_mlp_numbers *n)
{
    return up_either(w, n, n->joint, slopes_mid(w->slopes), up_slopes_half(w->slopes), up_slopes_lip(w->slopes));
}

taut_up up_mlp_near(const taut_mlp_weights *w, const taut_slopes *unit)
{
    double *middle = taut_malloc((size_t)(2 * w->hidden + 1) * sizeof *middle);
    if (!middle) return UP_NONE;
    double *root = middle + w->hidden;
    for (int64_t k = 0; k < w->hidden; k++) {
        middle[k] = slopes_mid(unit[k]);
        root[k] = up_sqrt(up_slopes_half(unit[k])).v;
    }
    taut_ball in = ball_of(w->w_in, w->hidden, w->width), out = ball_of(w->w_out, w->out, w->hidden);
    taut_ball bent = ball_scale_rows(&in, middle), product = ball_mul(&out, false, &bent, false);
    taut_ball a = ball_scale_rows(&in, root), b = ball_scale_cols(&out, root);
    const double slope = w->mix * w->factor; /* two float numbers: exact */
    const taut_up joint = up_joint(&product, w->keep, slope, w->out);
    const taut_up lip = up_add(joint, up_mul(up_exact(slope), up_mul(up_ball_norm(&a), up_ball_norm(&b))));
    ball_free(&in), ball_free(&out), ball_free(&bent), ball_free(&product), ball_free(&a), ball_free(&b);
    free(middle);
    return lip;
}

taut_up up_mlp_growth(const taut_mlp_weights *w, const taut_mlp_numbers *n, taut_up size)
{
    const taut_up linear = up_either(w, n, n->joint_half, slopes_mid(w->ratio), up_slopes_half(w->ratio),
                                     up_slopes_lip(w->ratio));
    const taut_up bias = up_add(up_mul(up_mul(up_exact(w->factor), n->norm_out), n->bias_in), n->bias_out);
    return up_add(up_mul(linear, size), up_mul(up_exact(w->mix), bias));
}
