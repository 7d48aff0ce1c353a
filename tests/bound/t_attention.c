/* The attention bound against attack.  Random heads of every kind; at random inputs the exact Jacobian's
 * norms, and from some of them gradient ascent over the inputs inside the ball: nothing may exceed the
 * bound.  Then the witnesses, which come close, its must-fail guards, and the corners. */
#include "attention_attack.h"
#include "base/alloc.h"
#include "bound/arb_include.h"
#include "bound/blas.h"
#include "stated.h"

static found worst, worst_ascent;
static double sharpest, climbed[2][2]; /* [rope][tokens] */

static void check_random(void)
{
    net a;
    double x[MAX_X] = { 0 };
    make_net(&a, 6);
    const double xk = size_of(), xq = a.w.cross ? size_of() : xk;
    const taut_attention_bound b = up_attention(&a.w, (taut_up){ xq }, (taut_up){ xk }, NULL);
    CHECK(b.flat.v < INFINITY && b.tokens.v < INFINITY && b.growth.v < INFINITY, "finite");
    for (int k = 0; k < 3; k++) {
        random_input(x, &a, xq, xk);
        keep(&worst, judge(&a, x, b, 12), b);
    }
}

/* Scaled so that a = X_k (s X_q ||A||..) is near `hard`: attacks are strongest around 1. */
static void check_ascent(int restarts, int steps)
{
    net a;
    double x[MAX_X] = { 0 };
    make_net(&a, effort(1) > 1 && rng_int(0, 3) == 0 ? 6 : 3);
    a.w.scale *= pow(10, rng_pm());
    const double xk = rng_int(0, 1) ? 1 : size_of(), xq = a.w.cross ? size_of() : xk;
    const taut_attention_bound b = up_attention(&a.w, (taut_up){ xq }, (taut_up){ xk }, NULL);
    for (int k = 0; k < restarts; k++)
        for (int tokens = 0; tokens < 2; tokens++) {
            ascend(&a, xq, xk, tokens, steps, x);
            keep(&worst_ascent, judge(&a, x, b, 200), b);
        }
}

/* Gaussian heads with logits of size about 1, attacked in inputs and weights. */
static void check_climb(void)
{
    net a;
    make_net(&a, 3);
    const int64_t n = a.w.heads * a.w.dh, d = a.w.width;
    const double one = 1 / sqrt((double)d);
    if (a.w.tk < 2) a.w.tk = 3, a.w.tq = a.w.cross ? a.w.tq : 3;
    a.length = a.w.keys_min = a.w.tk;
    fill_weight(a.wq, 0, n, d, a.w.dh, one), fill_weight(a.wk, 0, n, d, a.w.dh, one);
    fill_weight(a.wv, 0, n, d, a.w.dh, one), fill_weight(a.wo, 0, d, n, 1, one);
    for (int64_t i = 0; i < n; i++) a.bq[i] = 0.5 * gauss(), a.bk[i] = 0.5 * gauss();
    a.w.scale = 1, a.w.out = 1;
    const bool tokens = case_no % 2;
    const double ratio = climb(&a, 1, 1, tokens, 60);
    double *best = &climbed[a.w.rope][tokens];
    *best = fmax(*best, ratio);
}

/* The oracle itself: its derivative is the function's. */
static void check_oracle(void)
{
    net a;
    double x[MAX_X] = { 0 }, e[MAX_X] = { 0 }, y[MAX_T * MAX_D], lo[MAX_T * MAX_D], hi[MAX_T * MAX_D],
           moved[MAX_X] = { 0 };
    make_net(&a, 4);
    const double h = 1e-6;
    random_input(x, &a, 0.5, 0.5);
    const int64_t cols = input_tokens(&a) * a.w.width, rows = a.w.tq * a.w.width;
    fill(e, cols);
    net_jvp(y, &a, x, e);
    for (int64_t c = 0; c < cols; c++) moved[c] = x[c] + h * e[c];
    net_forward(hi, &a, moved);
    for (int64_t c = 0; c < cols; c++) moved[c] = x[c] - h * e[c];
    net_forward(lo, &a, moved);
    double size = 1;
    for (int64_t r = 0; r < rows; r++) size = fmax(size, fabs(hi[r]) + fabs(y[r]));
    for (int64_t r = 0; r < rows; r++) CHECK_NEAR(y[r], (hi[r] - lo[r]) / (2 * h), 2e-4 * size * (1 + size), "jvp");
}

static void eye(double *w, int64_t n)
{
    memset(w, 0, (size_t)(n * n) * sizeof *w);
    for (int64_t i = 0; i < n; i++) w[i * n + i] = 1;
}

/* A net of identity matrices, unbiased, unmasked. */
static void plain(net *a, int64_t width, int64_t heads, int64_t tokens, double scale)
{
    memset(a, 0, sizeof *a);
    a->w = (taut_attention_weights){ .width = width,
                                     .heads = heads,
                                     .dh = width / heads,
                                     .wq = a->wq,
                                     .wk = a->wk,
                                     .wv = a->wv,
                                     .wo = a->wo,
                                     .scale = scale,
                                     .out = 1,
                                     .tq = tokens,
                                     .tk = tokens,
                                     .keys_min = tokens };
    a->length = tokens;
    eye(a->wq, width), eye(a->wk, width), eye(a->wv, width), eye(a->wo, width);
    for (int i = 0; i < 2 * MAX_T; i++) eye(a->turn[i], a->w.dh);
}

static taut_attention_bound bound_at(const net *a, double x)
{
    return up_attention(&a->w, (taut_up){ x }, (taut_up){ x }, NULL);
}

/* (i): 4 heads, W_Q swaps coordinates 1 and 2; all tokens have RMS 1, and so has every token of the
 * direction, yet the first output moves by 17/3.  The full-matrix formula promises 3. */
static void check_counterexample(void)
{
    net a;
    double x[MAX_X] = { 0 }, e[MAX_X] = { 0 }, y[MAX_T * MAX_D];
    plain(&a, 16, 4, 3, 0.25);
    a.wq[17] = a.wq[34] = 0, a.wq[18] = a.wq[33] = 1;
    x[1] = 4, x[16] = 4, x[32] = -4;
    e[0] = 4, e[16 + 2] = 4, e[32 + 2] = -4;
    net_jvp(y, &a, x, e);
    const double moved = norm(y, 16) / 4;
    CHECK_NEAR(moved, 17.0 / 3, 1e-12, "the counterexample is one");
    CHECK_LE(moved, bound_at(&a, 4).tokens.v, "multi-head bound");
    CHECK_LE(bound_at(&a, 4).tokens.v, 10, "and is not silly");
}

/* (i): orthogonal weights, x <= 1 in RMS, s = 1/d_h, one head: a = 1, the bound is 1 + sqrt 2, nearly
 * attained. */
static void check_sharp(void)
{
    net a;
    double x[MAX_X] = { 0 };
    plain(&a, 4, 1, 6, 0.25);
    for (int k = 0; k < 60 && sharpest < 0.95; k++) {
        orthogonal(a.wq, 4, 4), orthogonal(a.wk, 4, 4), orthogonal(a.wv, 4, 4), orthogonal(a.wo, 4, 4);
        const double b = bound_at(&a, 2).tokens.v;
        CHECK_STATED(b, 1 + sqrt(2), 3, 1e-9, "orthogonal weights");
        sharpest = fmax(sharpest, ascend(&a, 2, 2, true, 60, x) / b);
    }
    CHECK_LE(0.9, sharpest, "the bound is nearly attained");
    CHECK_LE(sharpest, 1, "and never beaten");
}

/* W_K^T W_Q = 0, but a quarter turn between positions brings the logits back. */
static void check_rope(void)
{
    net a;
    double x[MAX_X] = { 0 }, e[MAX_X], g[MAX_T * MAX_D];
    static double jac[MAX_X * MAX_T * MAX_D];
    plain(&a, 2, 1, 3, 1);
    memset(a.wq, 0, sizeof a.wq), memset(a.wk, 0, sizeof a.wk);
    a.wq[0] = 1, a.wk[2] = 1; /* q along axis 0, k along axis 1 */
    for (int t = 0; t < MAX_T; t++) {
        const double c = cos(t * 1.5707963267948966), s = sin(t * 1.5707963267948966), r[] = { c, -s, s, c };
        memcpy(a.turn[t], r, sizeof r), memcpy(a.turn[MAX_T + t], r, sizeof r);
    }
    const taut_attention_bound still = bound_at(&a, 2);
    a.w.rope = true;
    const taut_attention_bound b = bound_at(&a, 2);
    double best = 0;
    for (int k = 0; k < 6; k++) best = fmax(best, ascend(&a, 2, 2, true, 40, x));
    net_jacobian(jac, &a, x);
    CHECK_LE(token_norm(&a, jac, e, g, 50), b.tokens.v, "RoPE");
    CHECK_LE(best, b.tokens.v, "RoPE");
    CHECK_LE(still.tokens.v * 1.5, best, "the formula without RoPE is beaten");
    CHECK_LE(0.5, best / b.tokens.v, "RoPE's bound is near");
}

/* No logits at all: the causal net is the Cesaro matrix, padding to one key copies it to every query. */
static void check_masks(void)
{
    net a;
    double x[MAX_X] = { 0 }, e[MAX_X], g[MAX_T * MAX_D];
    static double jac[MAX_X * MAX_T * MAX_D];
    plain(&a, 1, 1, 2, 0);
    a.w.causal = true;
    net_jacobian(jac, &a, x);
    CHECK_NEAR(flat_norm(jac, 2, 2, e, g, 100), 1.14412280563537, 1e-9, "Cesaro");
    CHECK_LE(1.14412280563537, bound_at(&a, 1).flat.v, "causal flat");
    CHECK_STATED(bound_at(&a, 1).flat.v, sqrt(1.5), 2, 1e-9, "causal flat is sqrt(1 + 1/2)");
    plain(&a, 2, 1, 5, 0);
    CHECK_STATED(bound_at(&a, 1).flat.v, 1, 2, 1e-9, "averaging is 1-Lipschitz");
    a.length = a.w.keys_min = 1;
    net_jacobian(jac, &a, x);
    CHECK_NEAR(flat_norm(jac, 10, 10, e, g, 100), sqrt(5), 1e-9, "one key for five queries");
    CHECK_STATED(bound_at(&a, 1).flat.v, sqrt(5), 2, 1e-9, "is what the bound says");
    a.w.keys_min = 0;
    CHECK_LE(sqrt(5), bound_at(&a, 1).flat.v, "any padding");
    plain(&a, 2, 1, 6, 0);
    a.w.cross = true, a.w.tk = a.w.keys_min = a.length = 2;
    CHECK_STATED(bound_at(&a, 1).flat.v, sqrt(3), 2, 1e-9, "cross-attention without logits: sqrt(m/n)");
}

/* |A x_i| = 0 for these tokens, yet the Jacobian's norm is 100.0099990002. */
static void check_nilpotent(void)
{
    net a;
    const double x[MAX_X] = { 1, 0, -1, 0, 1, 0, -1, 0 };
    static double jac[MAX_X * MAX_T * MAX_D];
    double e[MAX_X], g[MAX_T * MAX_D];
    plain(&a, 2, 1, 4, 1);
    memset(a.wq, 0, sizeof a.wq);
    a.wq[1] = 100;
    net_jacobian(jac, &a, x);
    const double exact = flat_norm(jac, 8, 8, e, g, 40000);
    CHECK_NEAR(exact, 100.00999900019995, 1e-4, "(c2)");
    CHECK_LE(exact, bound_at(&a, 1).flat.v, "(c2) flat");
}

/* eq (21): each head reads another token, so the output can be sqrt(H) times as long as any input. */
static void check_growth(void)
{
    net a;
    double x[MAX_X] = { 0 }, y[MAX_T * MAX_D];
    plain(&a, 8, 4, 5, 60);
    for (int h = 0; h < 4; h++) x[h * 8 + 2 * h] = 1, x[32 + 2 * h] = 0.5;
    net_forward(y, &a, x);
    const double out = norm(y + 32, 8), b = bound_at(&a, 1).growth.v;
    CHECK_LE(1.9, out, "growth beyond ||W_O|| ||W_V||");
    CHECK_LE(out, b, "growth");
    CHECK_STATED(b, 2, 1, 1e-9, "growth is sqrt(H)");
}

/* T8: one feature, A = -a, two clusters with n = round(e^{2a}) + 1 tokens: exact norms, and how near we are.
 */
static void check_clusters(void)
{
    static const struct {
        double a, exact, ratio;
        int64_t n;
    } row[] = { { 2, 11.39, 1.213, 56 }, { 3, 40.35, 1.188, 404 }, { 4, 136.61, 1.195, 2982 } };
    for (int k = 0; k < 3; k++) {
        net a;
        plain(&a, 1, 1, 1, row[k].a);
        a.wq[0] = -1, a.w.tq = a.w.tk = a.w.keys_min = row[k].n;
        CHECK_NEAR(bound_at(&a, 1).flat.v / row[k].exact, row[k].ratio, 1e-3, "T8");
    }
}

/* One large head and one tiny: the bounds of growth and of the keys' part add like norms, not like sqrt(H).
 */
static void check_unequal(void)
{
    net a;
    plain(&a, 4, 2, 3, 0);
    for (int i = 8; i < 16; i++) a.wv[i] *= 1e-3; /* the second head's values */
    CHECK_LE(bound_at(&a, 1).growth.v, 1.002, "unequal heads");
    CHECK_LE(bound_at(&a, 1).tokens.v, 1.002, "unequal heads");
    a.w.scale = 1;
    for (int i = 8; i < 16; i++) a.wq[i] *= 1e3; /* all the logits where there are no values */
    CHECK_LE(bound_at(&a, 1).tokens.v, 6, "logits of a head that hardly counts");
}

/* Self-attention takes the larger radius, cross-attention each its own. */
static void check_radii(void)
{
    net a;
    plain(&a, 2, 1, 3, 1);
    const taut_up one = { 1 }, half = { 0.5 };
    CHECK(up_attention(&a.w, half, one, NULL).tokens.v == up_attention(&a.w, one, one, NULL).tokens.v, "self");
    CHECK(up_attention(&a.w, one, half, NULL).tokens.v == up_attention(&a.w, one, one, NULL).tokens.v, "self");
    a.w.cross = true;
    CHECK_STATED(up_attention(&a.w, half, one, NULL).tokens.v, sqrt(1.25) + 1, 3, 1e-9, "cross: keys wide");
    CHECK_STATED(up_attention(&a.w, one, half, NULL).tokens.v, sqrt(1.25) + 0.25, 3, 1e-9, "cross: queries wide");
}

static bool same(taut_attention_bound a, taut_attention_bound b, double tol)
{
    return fabs(a.tokens.v / b.tokens.v - 1) < tol && fabs(a.flat.v / b.flat.v - 1) < tol;
}

/* K -> 4K, Q -> Q/4 changes nothing; without RoPE neither do b_K and b_V. */
static void check_invariance(void)
{
    net a;
    make_net(&a, 5);
    fill_weight(a.wv, 0, a.w.heads * a.w.dh, a.w.width, a.w.dh, 1),
        fill_weight(a.wo, 0, a.w.width, a.w.heads * a.w.dh, 1, 1);
    a.w.rope = false, a.w.out = 1, a.w.bq = a.bq;
    make_biases(&a, 0.5);
    a.w.bk = a.w.bv = NULL;
    const taut_attention_bound before = bound_at(&a, 0.7);
    for (int i = 0; i < MAX_I * MAX_D; i++) a.wq[i] /= 4, a.wk[i] *= 4;
    for (int i = 0; i < MAX_I; i++) a.bq[i] /= 4;
    a.w.bk = a.bk, a.w.bv = a.bv;
    CHECK(same(before, bound_at(&a, 0.7), 1e-6), "invariance");
}

static void check_corners(void)
{
    net a;
    plain(&a, 4, 2, 3, 0.5);
    taut_attention_bound b = bound_at(&a, INFINITY);
    CHECK(b.tokens.v == INFINITY && b.flat.v == INFINITY && b.growth.v == INFINITY, "an infinite region");
    b = bound_at(&a, 0);
    CHECK_STATED(b.tokens.v, sqrt(2), 1, 1e-9, "the origin");
    CHECK(b.growth.v == 0 && b.flat.v < INFINITY, "the origin");
    memset(a.wq, 0, sizeof a.wq);
    b = bound_at(&a, INFINITY);
    CHECK_STATED(b.tokens.v, sqrt(2), 1, 1e-9, "no logits: linear, even far away");
    a.w.bq = a.bq, a.bq[0] = 1;
    CHECK(bound_at(&a, INFINITY).tokens.v == INFINITY && bound_at(&a, 5).tokens.v > 2,
          "a bias alone is enough for logits");
    memset(a.wv, 0, sizeof a.wv);
    a.w.bv = a.bv, a.bv[0] = 3, a.w.bo = a.bo, a.bo[0] = 4;
    b = bound_at(&a, 5);
    CHECK(b.tokens.v == 0 && b.flat.v == 0, "no values: constant");
    CHECK_STATED(b.growth.v, 7, 1, 1e-12, "but not zero");
    a.wq[3] = NAN;
    CHECK(bound_at(&a, 5).tokens.v == INFINITY, "NaN in a dead head");
    plain(&a, 4, 2, 3, 0.5);
    a.bk[1] = INFINITY, a.w.bk = a.bk;
    CHECK(bound_at(&a, 1).flat.v == INFINITY && bound_at(&a, 1).growth.v == INFINITY, "infinite bias");
    plain(&a, 4, 2, 3, NAN);
    CHECK(bound_at(&a, 1).tokens.v == INFINITY, "NaN scale");
    CHECK(up_attention(&a.w, (taut_up){ NAN }, UP_NONE, NULL).growth.v == INFINITY, "NaN radius");
}

/* Whichever allocation fails: +inf or a bound, and nothing leaks. */
static void check_memory(bool rope)
{
    net a;
    double x[MAX_X] = { 0 };
    plain(&a, 4, 2, 3, 0.5);
    a.w.rope = rope, a.w.bq = a.bq, a.w.bv = a.bv, a.bq[1] = 1;
    random_input(x, &a, 1, 1);
    for (int n = 1; n < 200; n += n < 40 ? 1 : 7) {
        taut_alloc_fail_at(n);
        const taut_attention_bound b = bound_at(&a, 1);
        taut_alloc_fail_at(0);
        judge(&a, x, b, 20);
    }
}

static void check_known(void)
{
    check_counterexample();
    check_sharp();
    check_rope();
    check_masks();
    check_nilpotent();
    check_growth();
    check_clusters();
    check_unequal();
    check_radii();
    for (case_no = 0; case_no < 20; case_no++) check_invariance();
    check_corners();
    check_memory(false);
    check_memory(true);
}

int main(void)
{
    test_begin();
    const int cases = effort(5000), ascents = effort(40);
    for (case_no = 0; case_no < 50; case_no++) check_oracle();
    for (case_no = 0; case_no < cases; case_no++) check_random();
    for (case_no = 0; case_no < ascents; case_no++) check_ascent(2, 30);
    for (case_no = 0; case_no < ascents; case_no++) check_climb();
    check_known();
    flint_cleanup();
    return test_end("attention",
                    "%d nets x 3, %d ascents, %d climbs; found/bound tokens %.4f %.4f flat %.4f %.4f growth %.4f; "
                    "climbed tokens %.3f (RoPE %.3f) flat %.3f (RoPE %.3f); sharp %.3f",
                    cases, ascents * 4, ascents, worst.tokens, worst_ascent.tokens, worst.flat, worst_ascent.flat,
                    fmax(worst.growth, worst_ascent.growth), climbed[0][1], climbed[1][1], climbed[0][0], climbed[1][0],
                    sharpest);
}
