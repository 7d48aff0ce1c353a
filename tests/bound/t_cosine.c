/* The bound of cosine attention against attack: random nets of every kind with the exact Jacobian's norms, gradient
 * ascent over inputs inside the ball, climbing over the weights too; nothing may exceed the bound.  Then how near
 * the witnesses come, the published constant, and the corners. */
#include "base/alloc.h"
#include "bound/arb_include.h"
#include "bound/blas.h"
#include "cosine_oracle.h"
#include "stated.h"

static double worst[3], ascended[2], climbed[2]; /* tokens, flat, growth */

static double gauss(void) { return sqrt(-2 * log(1 - rng_unit())) * cos(6.283185307179586 * rng_unit()); }
static double size_of(void) { return pow(10, -2 + 3 * rng_unit()); }

static void fill_weight(double *w, int64_t rows, int64_t cols, double size)
{
    const int kind = (int)rng_int(0, 4);
    double u[MAX_I], v[MAX_I];
    for (int i = 0; i < MAX_I; i++) u[i] = gauss(), v[i] = gauss();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double x = gauss();
            if (kind == 1) x = u[i] * v[j];
            if (kind == 2 && rng_int(0, 1)) x = 0;
            if (kind == 3) x *= pow(10, (double)(i % 3) - 1);
            if (kind == 4) x = i % cols == j;
            w[i * cols + j] = x * size;
        }
}

static void rotation(double *r, int64_t n, bool identity)
{
    for (int64_t i = 0; i < n * n; i++) r[i] = identity ? i / n == i % n : gauss();
    for (int64_t i = 0; !identity && i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            const double c = dot(r + i * n, r + j * n, n);
            for (int64_t k = 0; k < n; k++) r[i * n + k] -= c * r[j * n + k];
        }
        const double size = norm(r + i * n, n);
        for (int64_t k = 0; k < n; k++) r[i * n + k] /= size;
    }
}

static void make_net(net *a, int64_t most)
{
    memset(a, 0, sizeof *a);
    taut_cosine_weights *w = &a->w;
    w->width = rng_int(1, most), w->heads = rng_int(1, 3), w->dh = rng_int(1, most < 4 ? most : 4);
    w->tokens = rng_int(1, most), w->tau = rng_int(0, 5) ? pow(10, 1.5 * rng_unit() - 0.5) : -2,
    w->out = 0.5 + rng_unit();
    w->eps = pow(10, -6 * rng_unit());
    w->values = rng_int(0, 1), w->causal = rng_int(0, 2) == 0, w->alibi = rng_int(0, 3) == 0;
    a->length = rng_int(0, 1) ? w->tokens : rng_int(0, w->tokens);
    w->keys_min = rng_int(0, 1) ? a->length : rng_int(0, a->length);
    const int64_t n = w->heads * w->dh, d = w->width;
    fill_weight(a->wq, n, d, size_of()), fill_weight(a->wk, n, d, size_of()), fill_weight(a->wv, n, d, size_of());
    fill_weight(a->wo, d, n, size_of());
    const double bias = rng_int(0, 1) ? size_of() : 0;
    for (int i = 0; i < MAX_I; i++) a->bq[i] = bias * gauss(), a->bk[i] = bias * gauss(), a->bv[i] = bias * gauss();
    for (int i = 0; i < MAX_D; i++) a->bo[i] = bias * gauss();
    w->bq = bias > 0 ? a->bq : NULL, w->bk = bias > 0 && rng_int(0, 1) ? a->bk : NULL;
    w->bv = bias > 0 && rng_int(0, 1) ? a->bv : NULL, w->bo = bias > 0 && rng_int(0, 1) ? a->bo : NULL;
    const bool rope = rng_int(0, 2) == 0;
    for (int t = 0; t < MAX_T; t++) rotation(a->turn[t], w->dh, !rope);
    net_own(a);
}

/* Tokens on the sphere, inside, in clusters, and near 0, where n is steep. */
static void random_input(double *x, const net *a, double radius)
{
    const int kind = (int)rng_int(0, 4);
    const int64_t d = a->w.width;
    for (int64_t t = 0; t < a->w.tokens; t++) {
        double *token = x + t * d, length = radius * (1 - 1e-14);
        if (kind == 1) length *= rng_unit();
        if (kind == 2 && rng_int(0, 1)) length *= sqrt(a->w.eps) * rng_unit();
        for (int64_t c = 0; c < d; c++) token[c] = gauss();
        if (kind == 3 && t > 0) memcpy(token, x, (size_t)d * sizeof *x);
        if (kind == 4 && t % 2) length *= 1e-3 * rng_unit();
        const double size = norm(token, d) * (kind == 3 && t > 0 && rng_int(0, 1) ? -1 : 1);
        for (int64_t c = 0; c < d; c++) token[c] *= length / size;
    }
}

static void judge(const net *a, const double *x, taut_attention_bound b, int steps, double *tokens, double *flat)
{
    static double jac[MAX_X * MAX_X];
    double e[MAX_X], g[MAX_X], y[MAX_X];
    const double bound[] = { b.tokens.v, b.flat.v, b.growth.v };
    net_jacobian(jac, a, x);
    net_run(y, NULL, a, x, x);
    const double found[] = { token_norm(jac, a, e, g, steps), flat_norm(jac, a, e, g, steps), longest(y, a) };
    CHECK_LE(found[0], bound[0] * (1 + 1e-12), "tokens");
    CHECK_LE(found[1], bound[1] * (1 + 1e-12), "flat");
    CHECK_LE(found[2], bound[2] * (1 + 1e-12), "growth");
    *tokens = bound[0] > 0 ? found[0] / bound[0] : 0;
    *flat = bound[1] > 0 ? found[1] / bound[1] : 0;
    if (bound[2] > 0) worst[2] = fmax(worst[2], found[2] / bound[2]);
}

static void check_random(void)
{
    net a;
    double x[MAX_X], tokens, flat;
    make_net(&a, MAX_D);
    const double radius = size_of();
    const taut_attention_bound b = up_cosine(&a.w, (taut_up){ radius }, NULL);
    CHECK(b.tokens.v < INFINITY && b.flat.v < INFINITY && b.growth.v < INFINITY, "finite");
    for (int k = 0; k < 3; k++) {
        random_input(x, &a, radius);
        judge(&a, x, b, 12, &tokens, &flat);
        worst[0] = fmax(worst[0], tokens), worst[1] = fmax(worst[1], flat);
    }
}

/* Ascent of g . J(x) e over x from best, e and g renewed at every step; the step in x shrinks from `first` to the
 * scale on which n bends.  Returns the best norm seen. */
static double ascend(const net *a, double radius, bool tokens, int steps, double first, double *best_x)
{
    static double jac[MAX_X * MAX_X];
    double x[MAX_X], up[MAX_X], e[MAX_X], g[MAX_X], y[MAX_X], best = -1;
    const int64_t len = net_len(a), d = a->w.width;
    const double last = fmin(0.01, sqrt(a->w.eps));
    memcpy(x, best_x, sizeof x);
    for (int step = 0; step < steps; step++) {
        net_jacobian(jac, a, x);
        const double value = tokens ? token_norm(jac, a, e, g, 10) : flat_norm(jac, a, e, g, 15);
        if (value > best) best = value, memcpy(best_x, x, sizeof x);
        if (step % 8 == 7) memcpy(x, best_x, sizeof x);
        for (int64_t c = 0; c < len; c++) {
            const double at = x[c], h = 1e-3 * last * radius;
            x[c] = at + h, net_run(NULL, y, a, x, e), up[c] = dot(g, y, len);
            x[c] = at - h, net_run(NULL, y, a, x, e), up[c] -= dot(g, y, len);
            x[c] = at;
        }
        const double size = norm(up, len), move = first * pow(last / first, (double)step / steps) * radius;
        for (int64_t c = 0; size > 0 && c < len; c++) x[c] += move * up[c] / size;
        for (int64_t t = 0; t < a->w.tokens; t++) {
            const double length = norm(x + t * d, d);
            for (int64_t c = t * d; length > radius && c < (t + 1) * d; c++) x[c] *= radius / length * (1 - 1e-14);
        }
    }
    return best;
}

static void check_ascent(int steps)
{
    net a;
    double x[MAX_X], found_tokens, found_flat;
    make_net(&a, 4);
    a.w.eps = pow(10, -4 * rng_unit());
    const double radius = rng_int(0, 1) ? 1 : size_of();
    const taut_attention_bound b = up_cosine(&a.w, (taut_up){ radius }, NULL);
    for (int tokens = 0; tokens < 2; tokens++) {
        random_input(x, &a, radius);
        ascend(&a, radius, tokens, steps, 0.5, x);
        judge(&a, x, b, 100, &found_tokens, &found_flat);
        ascended[0] = fmax(ascended[0], found_tokens), ascended[1] = fmax(ascended[1], found_flat);
    }
}

static void nudge(double *w, int64_t len, double step)
{
    const double size = norm(w, len) / sqrt((double)len);
    for (int64_t i = 0; i < len; i++) w[i] += step * size * gauss();
}

/* Logits strong enough that they make most of the bound: it is 2.5 times what it would be without. */
static void harden(net *a)
{
    a->w.tau = 0;
    const double still = up_cosine(&a->w, (taut_up){ 1 }, NULL).tokens.v;
    a->w.tau = 1;
    const double moved = up_cosine(&a->w, (taut_up){ 1 }, NULL).tokens.v;
    a->w.tau = moved > still ? 1.5 * still / (moved - still) : 1;
}

/* Over the weights too: found / bound, never to exceed 1. */
static void check_climb(int rounds)
{
    net a, t;
    double x[MAX_X], moved[MAX_X], best = -1, step = 0.5;
    const bool tokens = case_no % 2;
    do make_net(&a, 3);
    while (a.w.tokens < 2 || a.w.width < 2);
    a.length = a.w.keys_min = a.w.tokens, a.w.eps = pow(10, -3 * rng_unit());
    if (rng_int(0, 2)) a.w.bq = a.w.bk = NULL;
    random_input(x, &a, 1);
    for (int k = 0; k < rounds; k++) {
        t = a;
        double *const all[] = { t.wq, t.wk, t.wv, t.wo };
        for (int m = 0; k > 0 && m < 4; m++)
            if (rng_int(0, 1)) nudge(all[m], t.w.heads * t.w.dh * t.w.width, step);
        net_own(&t);
        harden(&t);
        memcpy(moved, x, sizeof x);
        const double value = ascend(&t, 1, tokens, k ? 4 : 30, k ? 0.1 : 0.5, moved);
        const taut_attention_bound b = up_cosine(&t.w, (taut_up){ 1 }, NULL);
        const double bound = tokens ? b.tokens.v : b.flat.v, ratio = bound > 0 ? value / bound : 0;
        CHECK_LE(value, bound * (1 + 1e-12), "climbing over the weights");
        step = fmax(ratio > best ? step * 1.3 : step * 0.93, 1e-4);
        if (!(ratio > best)) continue;
        best = ratio, a = t;
        net_own(&a);
        memcpy(x, moved, sizeof x);
    }
    climbed[!tokens] = fmax(climbed[!tokens], best);
}

/* The oracle itself: its derivative is the function's. */
static void check_oracle(void)
{
    net a;
    double x[MAX_X], e[MAX_X], ty[MAX_X], hi[MAX_X], lo[MAX_X], moved[MAX_X];
    make_net(&a, 4);
    a.w.eps = 0.01 + rng_unit();
    const double h = 1e-6;
    random_input(x, &a, 0.5);
    const int64_t len = net_len(&a);
    fill(e, len);
    net_run(NULL, ty, &a, x, e);
    for (int64_t c = 0; c < len; c++) moved[c] = x[c] + h * e[c];
    net_run(hi, NULL, &a, moved, e);
    for (int64_t c = 0; c < len; c++) moved[c] = x[c] - h * e[c];
    net_run(lo, NULL, &a, moved, e);
    double size = 1;
    for (int64_t r = 0; r < len; r++) size = fmax(size, fabs(hi[r]) + fabs(ty[r]));
    for (int64_t r = 0; r < len; r++) CHECK_NEAR(ty[r], (hi[r] - lo[r]) / (2 * h), 2e-3 * size * (1 + size), "jvp");
}

static void plain(net *a, int64_t width, int64_t heads, int64_t tokens)
{
    memset(a, 0, sizeof *a);
    a->w = (taut_cosine_weights){ .width = width,
                                  .heads = heads,
                                  .dh = width / heads,
                                  .tau = 1,
                                  .eps = 1e-4,
                                  .out = 1,
                                  .tokens = tokens,
                                  .keys_min = tokens };
    a->length = tokens;
    double *const all[] = { a->wq, a->wk, a->wv, a->wo };
    for (int m = 0; m < 4; m++)
        for (int64_t i = 0; i < width; i++) all[m][i * width + i] = 1;
    for (int t = 0; t < MAX_T; t++) rotation(a->turn[t], a->w.dh, true);
    net_own(a);
}

/* One head with normalised values, l = 1/sqrt(eps): below what is printed (LipsFormer, Theorem 1),
 * 2 N (N-1) tau l ||W_K|| + 2 (N-1) tau l ||W_Q|| + 2 N l ||W_V||. */
static void check_published(void)
{
    for (int64_t n = 2; n <= MAX_T; n++) {
        net a;
        plain(&a, 3, 1, n);
        a.w.values = true, a.w.tau = 12, a.w.eps = 1e-6;
        const double m = (double)n, printed = 1e3 * (2 * m * (m - 1) * 12 + 2 * (m - 1) * 12 + 2 * m);
        CHECK_LE(up_cosine(&a.w, (taut_up){ 1 }, NULL).flat.v, printed / 2, "below the published constant");
    }
}

/* No logits: the mean, as in plain attention. */
static void check_mean(void)
{
    net a;
    plain(&a, 2, 1, 5);
    a.w.tau = 0;
    CHECK_STATED(up_cosine(&a.w, UP_NONE, NULL).tokens.v, 1, 2, 1e-9, "averaging is 1-Lipschitz, even far away");
    CHECK_STATED(up_cosine(&a.w, (taut_up){ 1 }, NULL).flat.v, 1, 2, 1e-9, "in both norms");
    a.w.causal = true;
    CHECK_STATED(up_cosine(&a.w, (taut_up){ 1 }, NULL).flat.v, sqrt(1 + 1 / 2. + 1 / 3. + 1 / 4. + 1 / 5.), 2, 1e-9,
                 "causal");
    a.w.causal = false, a.w.keys_min = 0;
    CHECK_STATED(up_cosine(&a.w, (taut_up){ 1 }, NULL).flat.v, sqrt(5), 2, 1e-9, "any padding");
    plain(&a, 4, 2, 3);
    CHECK_STATED(up_cosine(&a.w, (taut_up){ 1 }, NULL).growth.v, sqrt(2), 2, 1e-9, "growth is sqrt(H)");
    a.w.values = true;
    CHECK_LE(up_cosine(&a.w, UP_NONE, NULL).growth.v, stated_at_most(sqrt(2) * (1 + 1e-9), 1),
             "normalised values never grow beyond it");
    CHECK_LE(up_cosine(&a.w, (taut_up){ 1e-3 }, NULL).growth.v, 0.15, "and are short near 0");
}

/* Two heads of width 1, coordinates (v, a, b, w).  Head 1 reads a, head 2 reads b; the tokens (+-v, 0, small, 0) are at
 * the steep point of head 1 and out of head 2's sight, the tokens (+-v, small, 0, 0) the other way round, and the last
 * token asks both and is seen by neither.  So each head moves along its own keys, and their norms add. */
static void check_own_keys(void)
{
    net a;
    const double v = 0.99, small = 0.1;
    double x[MAX_X] = { v, 0, small, 0, -v, 0, small, 0, v, small, 0, 0, -v, small, 0, 0, 0, 0, 0, 1 };
    double e[MAX_X] = { 0, 1, 0, 0, 0, -1, 0, 0, 0, 0, 1, 0, 0, 0, -1, 0 }, y[MAX_X];
    plain(&a, 4, 4, 5);
    a.w.heads = 2, a.w.dh = 1, a.w.tau = 12, a.w.eps = 1e-6;
    const double key[] = { 0, 1, 0, 0.1, 0, 0, 1, 0.1 }, query[] = { 0, 0, 0, -0.1, 0, 0, 0, -0.1 },
                 value[] = { 1, 0, 0, 0, 1, 0, 0, 0 }, out[] = { 1, 0, 0, 1, 0, 0, 0, 0 };
    memcpy(a.wk, key, sizeof key), memcpy(a.wq, query, sizeof query);
    memcpy(a.wv, value, sizeof value), memcpy(a.wo, out, sizeof out);
    for (int t = 0; t < MAX_T; t++) a.turn[t][0] = 1;
    net_run(NULL, y, &a, x, e);
    const double found = norm(y + 16, 4), bound = up_cosine(&a.w, (taut_up){ 1 }, NULL).tokens.v;
    CHECK_LE(found, bound, "heads with keys of their own");
    CHECK_LE(0.95 * bound, found, "nearly attained");
    CHECK_LE(1.3 * 12e3, found, "and beyond what stacked keys would allow");
}

/* Only keys count (q is a constant): flat is sqrt(C) times tokens, C = n / (1 + (n-1) exp(-2 tau p_q p_k)). */
static void check_count(void)
{
    net a;
    plain(&a, 2, 1, 5);
    memset(a.wq, 0, sizeof a.wq);
    a.w.bq = a.bq, a.bq[0] = 0.3, a.w.tau = 0.7, a.w.eps = 0.16;
    const taut_attention_bound b = up_cosine(&a.w, (taut_up){ 0.3 }, NULL);
    const double c = b.flat.v / b.tokens.v * (b.flat.v / b.tokens.v);
    CHECK_STATED(c, 5 / (1 + 4 * exp(-2 * 0.7 * 0.6 * 0.6)), 1, 1e-9, "how much one key collects");
}

static void check_corners(void)
{
    net a;
    plain(&a, 4, 2, 3);
    taut_attention_bound b = up_cosine(&a.w, UP_NONE, NULL);
    CHECK(b.tokens.v == INFINITY && b.growth.v == INFINITY, "plain values, no region");
    a.w.values = true;
    b = up_cosine(&a.w, UP_NONE, NULL);
    CHECK(b.tokens.v < INFINITY && b.flat.v < INFINITY && b.growth.v < INFINITY, "normalised values need none");
    a.w.eps = 0;
    CHECK(up_cosine(&a.w, (taut_up){ 1 }, NULL).tokens.v == INFINITY, "eps = 0");
    CHECK(up_cosine_round(&a.w, (taut_up){ 1 }).v == INFINITY, "eps = 0");
    a.w.eps = -1;
    CHECK(up_cosine(&a.w, (taut_up){ 1 }, NULL).growth.v == INFINITY, "eps < 0");
    plain(&a, 4, 2, 3);
    a.w.tau = NAN;
    CHECK(up_cosine(&a.w, (taut_up){ 1 }, NULL).tokens.v == INFINITY, "NaN tau");
    plain(&a, 4, 2, 3);
    memset(a.wo, 0, sizeof a.wo);
    a.bo[0] = 4, a.w.bo = a.bo;
    b = up_cosine(&a.w, UP_NONE, NULL);
    CHECK(b.tokens.v == 0 && b.flat.v == 0, "no output matrix: constant");
    CHECK_STATED(b.growth.v, 4, 1, 1e-12, "but not zero");
    a.wk[2] = INFINITY;
    CHECK(up_cosine(&a.w, (taut_up){ 1 }, NULL).flat.v == INFINITY, "infinite weight");
}

static void check_memory(bool values)
{
    net a;
    double x[MAX_X], tokens, flat;
    plain(&a, 4, 2, 3);
    a.w.values = values, a.w.bq = a.bq, a.w.bv = a.bv, a.bq[1] = 1;
    random_input(x, &a, 1);
    for (int n = 1; n < 200; n += n < 40 ? 1 : 7) {
        taut_alloc_fail_at(n);
        const taut_attention_bound b = up_cosine(&a.w, (taut_up){ 1 }, NULL);
        taut_alloc_fail_at(0);
        judge(&a, x, b, 10, &tokens, &flat);
    }
}

int main(void)
{
    test_begin();
    const int cases = effort(1500), ascents = effort(25), climbs = effort(6);
    for (case_no = 0; case_no < 50; case_no++) check_oracle();
    for (case_no = 0; case_no < cases; case_no++) check_random();
    for (case_no = 0; case_no < ascents; case_no++) check_ascent(60);
    for (case_no = 0; case_no < climbs; case_no++) check_climb(60);
    check_published();
    check_mean();
    check_own_keys();
    check_count();
    check_corners();
    check_memory(false);
    check_memory(true);
    flint_cleanup();
    return test_end(
        "cosine",
        "%d nets x 3, %d ascents, %d climbs; found/bound tokens %.4f %.4f %.4f flat %.4f %.4f %.4f growth %.4f", cases,
        2 * ascents, climbs, worst[0], ascended[0], climbed[0], worst[1], ascended[1], climbed[1], worst[2]);
}
