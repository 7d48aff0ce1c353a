/* Norm layers: ||diag(g) C|| against a witness evaluated in Arb; the Lipschitz constants against secants of
 * the layer itself, ascended from random pairs, evaluated in long double; a vector worked out by hand. */
#include "base/float32.h"
#include "bound/normlayer.h"

#include <float.h>

#include "base/alloc.h"
#include "bound/norm.h"
#include "oracle.h"

enum { MAX = 12 };

static double worst_global, worst_ball, worst_pointed, worst_norm = 1;

/* |diag(g) y| / |y| from below, y the centred vector 1/(l - g_i^2): the top eigenvector for l near the norm.
 */
static double centre_witness(const double *g, int64_t d, double bound)
{
    arb_t y[MAX], l, mean, top, bottom;
    arb_init(l), arb_init(mean), arb_init(top), arb_init(bottom);
    for (int64_t i = 0; i < d; i++) {
        arb_init(y[i]);
        arb_set_d(l, bound), arb_mul(l, l, l, 256);
        arb_set_d(y[i], g[i]), arb_mul(y[i], y[i], y[i], 256);
        arb_sub(y[i], l, y[i], 256);
        arb_set_d(l, 1e-30 * bound * bound), arb_add(y[i], y[i], l, 256);
        arb_inv(y[i], y[i], 256);
        arb_add(mean, mean, y[i], 256);
    }
    arb_div_si(mean, mean, d, 256);
    for (int64_t i = 0; i < d; i++) {
        arb_sub(y[i], y[i], mean, 256);
        arb_addmul(bottom, y[i], y[i], 256);
        arb_set_d(l, g[i]), arb_mul(y[i], y[i], l, 256);
        arb_addmul(top, y[i], y[i], 256);
        arb_clear(y[i]);
    }
    arb_div(top, top, bottom, 256), arb_sqrtpos(top, top, 256);
    const double r = arb_low(top);
    arb_clear(l), arb_clear(mean), arb_clear(top), arb_clear(bottom);
    return isfinite(r) ? r : 0;
}

static void layer(long double *y, const double *x, const double *g, int64_t d, bool centre, double eps)
{
    long double mean = 0, square = 0;
    for (int64_t i = 0; centre && i < d; i++) mean += (long double)x[i] / (long double)d;
    for (int64_t i = 0; i < d; i++) square += (x[i] - mean) * (x[i] - mean);
    const long double sd = sqrtl(square / (long double)d + eps);
    for (int64_t i = 0; i < d; i++) y[i] = g[i] * (x[i] - mean) / sd;
}

static double secant(const double *a, const double *b, const double *g, int64_t d, bool centre, double eps)
{
    long double ya[MAX], yb[MAX], top = 0, bottom = 0;
    layer(ya, a, g, d, centre, eps), layer(yb, b, g, d, centre, eps);
    for (int64_t i = 0; i < d; i++) {
        top += (ya[i] - yb[i]) * (ya[i] - yb[i]);
        bottom += ((long double)a[i] - b[i]) * ((long double)a[i] - b[i]);
    }
    return bottom > 0 ? (double)sqrtl(top / bottom) : 0;
}

/* A point within r of x (or anywhere near, for r = +inf), starting from `from`. */
static void step_near(double *to, const double *from, const double *x, int64_t d, double r, double step)
{
    double move[MAX];
    for (int64_t i = 0; i < d; i++) to[i] = from[i] + step * rng_pm(), move[i] = to[i] - x[i];
    const double far = norm(move, d);
    if (far > r)
        for (int64_t i = 0; i < d; i++) to[i] = x[i] + move[i] * (r / far) * (1 - 1e-12);
}

/* Random ascent of the secant; `pinned` keeps a at x. */
static double attack(const double *x, const double *g, int64_t d, bool centre, double eps, double r, bool pinned)
{
    double a[MAX], b[MAX], ta[MAX], tb[MAX], best = 0, scale = fmin(r, 1 + norm(x, d));
    memcpy(a, x, sizeof a), memcpy(b, x, sizeof b);
    for (int k = 0; k < 60; k++) {
        const double step = scale * pow(10, -5 * rng_unit());
        step_near(ta, rng_int(0, 3) ? a : x, x, d, pinned ? 0 : r, pinned ? 0 : step);
        step_near(tb, rng_int(0, 1) ? b : ta, x, d, r, step);
        if (pinned) memcpy(ta, x, sizeof a);
        const double s = secant(ta, tb, g, d, centre, eps);
        double apart[MAX];
        for (int64_t i = 0; i < d; i++) apart[i] = ta[i] - tb[i];
        if (!(s > best) || norm(apart, d) < 1e-7 * (1 + norm(x, d))) continue;
        best = s;
        memcpy(a, ta, sizeof a), memcpy(b, tb, sizeof b);
    }
    return best;
}

static void check_centred(const double *x, int64_t d)
{
    long double mean = 0, square = 0;
    for (int64_t i = 0; i < d; i++) mean += (long double)x[i] / (long double)d;
    for (int64_t i = 0; i < d; i++) square += (x[i] - mean) * (x[i] - mean);
    const double lo = lo_centred_norm(x, d, true).v, truth = (double)sqrtl(square);
    CHECK_LE(lo, truth * (1 + 1e-16), "|C x| from below");
    CHECK_LE(truth * (1 - 1e-13) - 1e-14 * norm(x, d), lo, "and close");
}

static void check_one(void)
{
    const int64_t d = rng_int(1, MAX);
    const bool centre = rng_int(0, 1);
    double x[MAX] = { 0 }, g[MAX], b[MAX], y_scale = pow(10, 2 * rng_pm());
    const int kind = (int)rng_int(0, 4);
    for (int64_t i = 0; i < d; i++) {
        x[i] = kind == 4 ? 3.0 : y_scale * rng_pm() + (kind == 3 ? 100 : 0);
        g[i] = kind == 1 ? pow(10, 3 * rng_pm()) : kind == 2 ? (double)rng_int(-2, 2) : taut_float32(rng_pm());
        b[i] = rng_pm();
    }
    const double eps = pow(10, -8 * rng_unit()), r = y_scale * pow(10, 1 - 3 * rng_unit());
    const taut_up n = up_diag_centre_norm(g, d, centre), radius = { r };
    const taut_lo size = lo_centred_norm(x, d, centre);
    check_centred(x, d);
    if (centre && n.v > 0) {
        double found = centre_witness(g, d, n.v);
        for (int64_t p = 0; p < d; p++) /* e_p - e_q, the top vector when two gains are alike */
            for (int64_t q = 0; q < p; q++) found = fmax(found, hypot(g[p], g[q]) * M_SQRT1_2 * (1 - 1e-15));
        CHECK_LE(found, n.v, "||diag(g) C||");
        worst_norm = fmin(worst_norm, found / n.v);
    }
    const double global = up_normlayer_global(n, eps).v, ball = up_normlayer_ball(n, d, eps, size, radius).v;
    const double pointed = up_normlayer_pointed(n, d, eps, size, radius).v, tol = 1 + 1e-9;
    const double found = attack(x, g, d, centre, eps, INFINITY, false), inside = attack(x, g, d, centre, eps, r, false);
    const double pinned = attack(x, g, d, centre, eps, r, true);
    CHECK_LE(found, global * tol, "global");
    CHECK_LE(inside, ball * tol, "ball");
    CHECK_LE(pinned, pointed * tol, "pointed");
    if (n.v > 0) worst_global = fmax(worst_global, found / global), worst_ball = fmax(worst_ball, inside / ball);
    if (n.v > 0) worst_pointed = fmax(worst_pointed, pinned / pointed);
    long double y[MAX];
    double out[MAX];
    layer(y, x, g, d, centre, eps);
    for (int64_t i = 0; i < d; i++) out[i] = (double)y[i] + b[i];
    const double reach = up_normlayer_radius(n, b, d, eps, up_norm_frobenius(x, d)).v;
    CHECK_LE(norm(out, d), reach * (1 + 1e-14), "output radius");
    CHECK_LE(reach, up_normlayer_radius(n, b, d, eps, UP_NONE).v, "output radius anywhere");
}

static void check_t7(void)
{
    const double x[] = { 1, 2, 4 }, g[] = { 1, -2, .5 }, eps = 1e-5;
    const taut_up n = up_diag_centre_norm(g, 3, true);
    const taut_lo size = lo_centred_norm(x, 3, true);
    CHECK_NEAR(n.v, 1.701659167912, 1e-12, "T7 norm");
    CHECK_NEAR(up_normlayer_global(n, eps).v, 538.11187719, 1e-8, "T7 global");
    CHECK_NEAR(up_normlayer_ball(n, 3, eps, size, (taut_up){ 1 }).v, 2.5402587125, 1e-10, "T7 ball");
    CHECK_NEAR(up_normlayer_pointed(n, 3, eps, size, (taut_up){ 1 }).v, 1.8616720741, 1e-10, "T7 pointed");
}

static void check_corners(void)
{
    const double g[] = { 2, -2, 1 }, one[] = { 5 }, zero[3] = { 0 }, bad[] = { 1, NAN, 1 },
                 big[] = { 1e300, 1e-300, 1e300 };
    CHECK(up_diag_centre_norm(g, 3, true).v == 2, "two largest alike");
    CHECK(up_diag_centre_norm(g, 3, false).v == 2 && up_diag_centre_norm(NULL, 3, true).v == 1, "no centring, no gain");
    CHECK(up_diag_centre_norm(one, 1, true).v == 0 && up_diag_centre_norm(NULL, 1, true).v == 0, "one feature");
    CHECK(up_diag_centre_norm(zero, 3, true).v == 0, "zero gain");
    CHECK(up_diag_centre_norm(bad, 3, true).v == INFINITY && up_diag_centre_norm(bad, 3, false).v == INFINITY,
          "NaN gain");
    CHECK(up_diag_centre_norm((double[]){ NAN }, 1, true).v == INFINITY, "NaN gain, one feature");
    CHECK(up_diag_centre_norm(big, 3, true).v == 1e300, "huge gain");
    CHECK(up_normlayer_global((taut_up){ 1 }, 0).v == INFINITY, "eps 0 has no global constant");
    CHECK(up_normlayer_global((taut_up){ 1 }, NAN).v == INFINITY &&
              up_normlayer_global((taut_up){ 1 }, -1).v == INFINITY,
          "nor has a bad eps");
    CHECK(up_normlayer_ball((taut_up){ 1 }, 3, 0, (taut_lo){ 1 }, (taut_up){ 2 }).v == INFINITY,
          "ball over the centre");
    CHECK_NEAR(up_normlayer_ball((taut_up){ 1 }, 4, 0, (taut_lo){ 3 }, (taut_up){ 1 }).v, 1, 1e-14, "ball, eps 0");
    CHECK(up_normlayer_radius((taut_up){ 1 }, NULL, 4, 1e-5, UP_ZERO).v == 0, "nothing in, nothing out");
    CHECK_NEAR(up_normlayer_radius((taut_up){ 1 }, NULL, 4, 1e-5, UP_NONE).v, 2, 1e-14, "at most sqrt d");
    CHECK(lo_centred_norm(bad, 3, true).v == 0, "NaN token");
    taut_alloc_fail_at(1);
    CHECK(up_diag_centre_norm((double[]){ 1, 2, 3 }, 3, true).v == INFINITY, "no memory");
    taut_alloc_fail_at(1);
    CHECK(lo_centred_norm(g, 3, true).v == 0, "no memory");
    taut_alloc_fail_at(0);
}

int main(void)
{
    test_begin();
    const int cases = effort(1500);
    for (case_no = 0; case_no < cases; case_no++) check_one();
    check_t7();
    check_corners();
    flint_cleanup();
    CHECK_LE(1 - 1e-12, worst_norm, "||diag(g) C|| is sharp");
    CHECK_LE(0.9, fmin(worst_global, fmin(worst_ball, worst_pointed)), "the constants are attained");
    return test_end("normlayer", "%d layers, found/bound: global %.6f ball %.6f pointed %.6f, norm sharp to %.1e",
                    cases, worst_global, worst_ball, worst_pointed, 1 - worst_norm);
}
