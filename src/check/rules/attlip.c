/* AttLip: prox(x) = argmin_y f(y) + |y - x|^2 / (2 eta), or 2 prox(x) - x;  f = 1/2 sum_h sum_i ln sum_j exp S_ij,
 * S_ij = s |v_i + v_j|^2 - near 2^(-h/2) |i - j|, v_i = W_h y_i, perhaps turned by its position, s = fl32(1/sqrt(dh)).
 *
 * The rule.  f is convex (log-sum-exp of convex quadratics and constants) and least at 0.  Let p = prox(x), so
 * p + eta f'(p) = x.  As f' is monotone, |p - p'|^2 <= (p - p').(x - x'): both maps are 1-Lipschitz in l2 over
 * everything, and prox(0) = 0.  Between that norm and the largest token is a factor sqrt(T).  A y with residual
 * g = f'(y) + (y - x)/eta is prox(x + eta g) exactly, so |y - prox(x)| <= eta |g|: whoever stops at |g| <= tol is
 * k eta tol away, k = 1 or reflected 2.
 *
 * The forward pass looks for a y by gradient steps of Barzilai and Borwein's length, and owes nothing to how it was found:
 * the residual's size, with its rounding, is the error.  Per head, with m >= |v_i|, v_i off by e, c_k the column sums:
 *     a logit is off by s (8 m e + 4 gamma m^2) + gamma near T,  alpha by a factor 1 + a, a = exp of twice that and roundings;
 *     G_k = s [(1 + c_k) v_k + sum_i (alpha_ki + alpha_ik) v_i]: the coefficients sum to 2 (1 + c_k), so G_k is off by
 *     2 s (1 + c_k) ((a + gamma) m + e).   f' = sum_h G_h W_h. */
#include <fenv.h>

#include "check/examples/examples.h"
#include "check/rules/rules.h"

enum { HEADS, ETA, TOL, REFLECTED, STEPS, NEAR, ROPE };
enum { WEIGHT, ROOT };
enum { TRIES = 2000, GROWS = 4 }; /* gradients; how much the residual may grow on its way */

static double eta_of(const ck_node *n) { return n->w[ROOT].v ? *n->w[ROOT].v * *n->w[ROOT].v : n->k[ETA]; } /* exact */
static double times(const ck_node *n) { return n->k[REFLECTED] != 0 ? 2 : 1; }

static bool fits(const ck_node *n)
{
    const double *k = n->k;
    return fmod((double)n->w[WEIGHT].rows, k[HEADS]) == 0 && k[ETA] >= 0 && (k[ETA] == 0) == (n->w[ROOT].v != NULL) &&
           k[TOL] >= 0 && k[STEPS] >= 0 && k[NEAR] >= 0 && (k[ROPE] == 0 || k[ROPE] >= 1);
}

static ck_bound prove(ck_fields *f, ck_node *n, double x)
{
    const bool sound = n->k[STEPS] == 0 && eta_of(n) > 0;
    const double eta = ck_claim(f, "eta", eta_of(n)), spread = sqrt((double)n->tokens);
    n->defect = ck_claim(f, "defect", sound ? 2 * times(n) * eta * n->k[TOL] : INFINITY);
    if (!sound) return (ck_bound){ INFINITY, INFINITY };
    return (ck_bound){ f->c->out->flat ? 1 : spread, spread * x + n->defect };
}

/* G of the head whose vectors begin at column `at`; `away`: what a step of distance takes; p is room for its weights.
 * Answers the largest 1 + c_k. */
static double pull(ck_mat g, ck_mat v, int64_t at, int64_t dh, double s, double away, double *p)
{
    const int64_t t = v.rows;
    double most = 0;
    fesetround(FE_TONEAREST); /* every rounding is counted */
    for (int64_t i = 0; i < t; i++) {
        const double *a = v.v + i * v.ld + at;
        double top = 0, sum = 0, *row = p + i * t;
        for (int64_t j = 0; j < t; j++) {
            const double *b = v.v + j * v.ld + at;
            double square = 0;
            for (int64_t k = 0; k < dh; k++) square += (a[k] + b[k]) * (a[k] + b[k]);
            row[j] = s * square - away * fabs((double)(i - j));
            top = fmax(top, row[j]);
        }
        for (int64_t j = 0; j < t; j++) sum += row[j] = exp(row[j] - top);
        for (int64_t j = 0; j < t; j++) row[j] /= sum;
    }
    for (int64_t k = 0; k < t; k++) {
        double all = 1, *to = g.v + k * g.ld + at;
        for (int64_t i = 0; i < t; i++) all += p[i * t + k];
        most = fmax(most, all);
        for (int64_t d = 0; d < dh; d++) to[d] = all * v.v[k * v.ld + at + d];
        for (int64_t i = 0; i < t; i++)
            for (int64_t d = 0; d < dh; d++) to[d] += (p[k * t + i] + p[i * t + k]) * v.v[i * v.ld + at + d];
        for (int64_t d = 0; d < dh; d++) to[d] *= s;
    }
    fesetround(FE_UPWARD);
    return most;
}

/* g = f'(y) + (y - x)/eta into `g`; answers what its length cannot exceed. */
static double residual(ck *c, const ck_node *n, ck_mat *g, ck_mat y, ck_mat x)
{
    const struct ck_block *mark = c->blocks;
    const ck_mat w = n->w[WEIGHT];
    ck_mat v = ck_affine(c, y, 1, w, (ck_mat){ 0 });
    const int64_t t = y.rows, dh = w.rows / (int64_t)n->k[HEADS];
    if (n->k[ROPE] > 0) ck_rotate(&v, dh, n->k[ROPE], 1);
    const double s = ck_root((double)dh), m = ck_longest(v), eta = eta_of(n), roundings = 2 * (double)t + 64;
    ck_mat pulls = ck_new(c, t, w.rows);
    double most = 0, *p = ck_room(c, t * t, sizeof *p);
    for (int64_t at = 0; at < w.rows; at += dh)
        most = fmax(most, pull(pulls, v, at, dh, s, n->k[NEAR] * exp2(-0.5 * (double)(at / dh)), p));
    const double moved = 8 * m * v.err + 4 * ck_gamma((double)dh + 8) * m * m;
    const double logit = 2 * (s * moved + ck_gamma(16) * n->k[NEAR] * (double)t);
    const double alpha = (logit < 0.01 ? 1.01 * logit : INFINITY) + ck_gamma(roundings);
    pulls.err = 2.1 * sqrt(n->k[HEADS]) * s * most * ((alpha + ck_gamma(roundings)) * m + v.err);
    if (n->k[ROPE] > 0) ck_rotate(&pulls, dh, n->k[ROPE], -1);
    const ck_mat slope = ck_affine(c, pulls, 1, ck_turn(c, w), (ck_mat){ 0 });
    for (int64_t i = 0; i < t * x.ld; i++) g->v[i] = slope.v[i] + (y.v[i] - x.v[i]) / eta;
    const double err = slope.err + ck_gamma(4) * (ck_longest(slope) + (ck_longest(x) + ck_longest(y)) / eta);
    ck_give_back(c, mark);
    return ck_length(*g) + sqrt((double)t) * err;
}

/* The y with the smallest residual that was found, and what that residual cannot exceed.  A step is taken unless the residual
 * grows to several times the smallest, else a shorter one is tried: along -g it falls at first. */
static double solve(ck *c, const ck_node *n, ck_mat *best, ck_mat x)
{
    const int64_t len = x.rows * x.ld;
    ck_mat y = ck_new(c, x.rows, x.cols), to = ck_new(c, x.rows, x.cols), g = ck_new(c, x.rows, x.cols),
           h = ck_new(c, x.rows, x.cols);
    for (int64_t k = 0; k < len; k++) y.v[k] = x.v[k];
    double step = eta_of(n), least = residual(c, n, &g, y, x);
    for (int i = 0; i < TRIES && least > 1e-3 * n->k[TOL] && step > 0; i++) {
        double moved = 0, turned = 0;
        for (int64_t k = 0; k < len; k++) to.v[k] = y.v[k] - step * g.v[k];
        const double now = residual(c, n, &h, to, x);
        step /= 4;
        if (!(now < GROWS * least)) continue;
        for (int64_t k = 0; k < len; k++) {
            const double by = to.v[k] - y.v[k];
            moved += by * by, turned += by * (h.v[k] - g.v[k]);
            y.v[k] = to.v[k], g.v[k] = h.v[k];
            if (now < least) best->v[k] = to.v[k];
        }
        step = ck_over(moved, turned);
        least = fmin(least, now);
    }
    return least;
}

static void run(ck *c, const ck_node *n, ck_mat *x)
{
    ck_mat y = ck_stack(c, x, (const double[]){ 1 }, 1);
    const double left = n->k[STEPS] == 0 ? solve(c, n, &y, *x) : INFINITY;
    if (!(left <= n->k[TOL] / 2)) c->unsure = true;
    for (int64_t i = 0; i < x->rows * x->ld; i++) x->v[i] = times(n) * y.v[i] - (times(n) - 1) * x->v[i];
    x->err = times(n) * eta_of(n) * left + ck_gamma(2) * ck_longest(*x);
}

const ck_rule ck_rule_attlip = { .name = "attlip",
                                 .prove = prove,
                                 .run = run,
                                 .fits = fits,
                                 .constants = { "#heads", "eta", "tol", "?reflected", "~steps", "near", "~rope" },
                                 .tensors = { { "weight", "hd" }, { "?root", "1" } } };
