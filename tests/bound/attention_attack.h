/* Random nets of every kind, random inputs in the ball, and gradient ascent from them. */
#ifndef ATTENTION_ATTACK_H
#define ATTENTION_ATTACK_H
#include "attention_oracle.h"

typedef struct {
    double tokens, flat, growth;
} found;

static inline double gauss(void) { return sqrt(-2 * log(1 - rng_unit())) * cos(6.283185307179586 * rng_unit()); }

/* Rows orthonormal as far as there are columns; rows beyond that repeat the game. */
static inline void orthogonal(double *w, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++) w[i] = gauss();
    for (int64_t i = 0; i < rows; i++) {
        for (int pass = 0; pass < 2; pass++)
            for (int64_t j = i / cols * cols; j < i; j++) {
                const double c = dot(w + i * cols, w + j * cols, cols);
                for (int64_t k = 0; k < cols; k++) w[i * cols + k] -= c * w[j * cols + k];
            }
        const double size = norm(w + i * cols, cols);
        for (int64_t k = 0; k < cols; k++) w[i * cols + k] /= size;
    }
}

/* One of several kinds of weight matrix (rows = heads*dh blocks of dh when `blocks`). */
static inline void fill_weight(double *w, int kind, int64_t rows, int64_t cols, int64_t dh, double size)
{
    double u[MAX_I], v[MAX_I];
    for (int i = 0; i < MAX_I; i++) u[i] = gauss(), v[i] = gauss();
    if (kind == 1) orthogonal(w, rows, cols);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double *x = w + i * cols + j;
            if (kind == 0) *x = gauss();
            if (kind == 2) *x = u[i] * v[j];
            if (kind == 3) *x = i < dh ? gauss() : w[(i - dh) * cols + j]; /* every head the same */
            if (kind == 4) *x = rng_int(0, 2) ? 0 : gauss();
            if (kind == 5) *x = gauss() * pow(10, (double)(i / dh % 3) - 1); /* unequal heads */
            if (kind == 6) *x = i / dh == 0 ? 0 : gauss();                   /* a dead head */
            *x *= size;
        }
}

static inline double size_of(void) { return pow(10, -2 + 3 * rng_unit()); }

static inline void make_biases(net *a, double size)
{
    const int64_t n = a->w.heads * a->w.dh;
    for (int64_t i = 0; i < n; i++) a->bq[i] = size * gauss(), a->bk[i] = size * gauss(), a->bv[i] = size * gauss();
    for (int64_t i = 0; i < a->w.width; i++) a->bo[i] = size * gauss();
    a->w.bq = rng_int(0, 2) ? a->bq : NULL, a->w.bk = rng_int(0, 2) ? a->bk : NULL;
    a->w.bv = rng_int(0, 2) ? a->bv : NULL, a->w.bo = rng_int(0, 2) ? a->bo : NULL;
}

static inline void make_shape(net *a, int64_t most)
{
    taut_attention_weights *w = &a->w;
    *w = (taut_attention_weights){ .wq = a->wq, .wk = a->wk, .wv = a->wv, .wo = a->wo };
    w->width = rng_int(1, most), w->heads = rng_int(1, 3), w->dh = rng_int(1, most < 4 ? most : 4);
    w->cross = rng_int(0, 2) == 0, w->rope = rng_int(0, 2) == 0, w->causal = rng_int(0, 2) == 0;
    w->alibi = rng_int(0, 3) == 0;
    w->tq = rng_int(1, most), w->tk = w->cross ? rng_int(1, most) : w->tq;
    a->length = rng_int(0, 1) ? w->tk : rng_int(0, w->tk);
    w->keys_min = rng_int(0, 1) ? a->length : rng_int(0, a->length);
}

static inline void make_net(net *a, int64_t most)
{
    make_shape(a, most);
    const int64_t n = a->w.heads * a->w.dh, d = a->w.width, dh = a->w.dh;
    double t[MAX_I * MAX_D];
    fill_weight(a->wq, (int)rng_int(0, 6), n, d, dh, size_of());
    fill_weight(a->wk, (int)rng_int(0, 6), n, d, dh, size_of());
    fill_weight(a->wv, (int)rng_int(0, 6), n, d, dh, size_of());
    fill_weight(t, (int)rng_int(0, 6), n, d, dh, size_of());
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) a->wo[j * n + i] = t[i * d + j];
    for (int64_t i = 0; i < 2 * MAX_T; i++) orthogonal(a->turn[i], dh, dh);
    if (rng_int(0, 1)) make_biases(a, size_of());
    a->w.scale = rng_int(0, 5) ? 1 / sqrt((double)dh) : -size_of(), a->w.out = rng_int(0, 1) ? 1 : rng_pm();
}

static inline void random_input(double *x, const net *a, double xq, double xk)
{
    const int kind = (int)rng_int(0, 3);
    for (int64_t t = 0; t < input_tokens(a); t++, x += a->w.width) {
        const double radius = (t < a->w.tq || !a->w.cross ? xq : xk) * (kind == 0 ? rng_unit() : 1) * (1 - 1e-14);
        for (int64_t c = 0; c < a->w.width; c++) x[c] = gauss();
        if (kind == 1 && t > 0) memcpy(x, x - a->w.width, (size_t)a->w.width * sizeof *x); /* clusters */
        const double size = norm(x, a->w.width) * (kind == 1 && t > 0 && rng_int(0, 1) ? -1 : 1);
        for (int64_t c = 0; c < a->w.width; c++) x[c] *= radius / size;
    }
}

/* The exact norms at x, checked against the bound. */
static inline found judge(const net *a, const double *x, taut_attention_bound b, int steps)
{
    static double jac[MAX_X * MAX_T * MAX_D];
    double e[MAX_X], g[MAX_T * MAX_D], y[MAX_T * MAX_D];
    const int64_t rows = a->w.tq * a->w.width, cols = input_tokens(a) * a->w.width;
    found f = { 0 };
    net_jacobian(jac, a, x);
    net_forward(y, a, x);
    f.flat = flat_norm(jac, rows, cols, e, g, steps);
    f.tokens = token_norm(a, jac, e, g, steps);
    for (int64_t i = 0; i < a->w.tq; i++) f.growth = fmax(f.growth, norm(y + i * a->w.width, a->w.width));
    CHECK_LE(f.flat, b.flat.v * (1 + 1e-12), "flat");
    CHECK_LE(f.tokens, b.tokens.v * (1 + 1e-12), "tokens");
    CHECK_LE(f.growth, b.growth.v * (1 + 1e-12), "growth");
    return f;
}

static inline void keep(found *best, found f, taut_attention_bound b)
{
    if (b.flat.v > 0) best->flat = fmax(best->flat, f.flat / b.flat.v);
    if (b.tokens.v > 0) best->tokens = fmax(best->tokens, f.tokens / b.tokens.v);
    if (b.growth.v > 0) best->growth = fmax(best->growth, f.growth / b.growth.v);
}

static inline void project_in(double *x, const net *a, double xq, double xk)
{
    for (int64_t t = 0; t < input_tokens(a); t++, x += a->w.width) {
        const double size = norm(x, a->w.width), radius = (t < a->w.tq || !a->w.cross ? xq : xk) * (1 - 1e-14);
        for (int64_t c = 0; size > radius && c < a->w.width; c++) x[c] *= radius / size;
    }
}

/* Ascent of g . J(x) e over x from best_x, e and g renewed at every step; returns the best norm seen. */
static inline double ascend_from(const net *a, double xq, double xk, bool tokens, int steps, double first,
                                 double *best_x)
{
    static double jac[MAX_X * MAX_T * MAX_D];
    double x[MAX_X], up[MAX_X], e[MAX_X], g[MAX_T * MAX_D], y[MAX_T * MAX_D], best = -1;
    const int64_t rows = a->w.tq * a->w.width, cols = input_tokens(a) * a->w.width;
    memcpy(x, best_x, sizeof x);
    for (int step = 0; step < steps; step++) {
        net_jacobian(jac, a, x);
        const double value = tokens ? token_norm(a, jac, e, g, 20) : flat_norm(jac, rows, cols, e, g, 20);
        if (value > best) best = value, memcpy(best_x, x, sizeof x);
        for (int64_t c = 0; c < cols; c++) { /* central differences in x */
            const double at = x[c], h = 1e-5 * fmax(xq, xk);
            x[c] = at + h, net_jvp(y, a, x, e), up[c] = dot(g, y, rows);
            x[c] = at - h, net_jvp(y, a, x, e), up[c] -= dot(g, y, rows);
            x[c] = at;
        }
        const double size = norm(up, cols),
                     move = pow(0.02, (double)step / steps) * first * sqrt((double)input_tokens(a));
        for (int64_t c = 0; size > 0 && c < cols; c++) x[c] += move * fmax(xq, xk) * up[c] / size;
        project_in(x, a, xq, xk);
    }
    return best;
}

static inline double ascend(const net *a, double xq, double xk, bool tokens, int steps, double *best_x)
{
    memset(best_x, 0, MAX_X * sizeof *best_x);
    random_input(best_x, a, xq, xk);
    return ascend_from(a, xq, xk, tokens, steps, 0.7, best_x);
}

static inline void nudge(double *w, int64_t len, double step)
{
    const double size = norm(w, len) / sqrt((double)len);
    for (int64_t i = 0; i < len; i++) w[i] += step * size * gauss();
}

/* Logits strong enough that they make most of the bound: it is 2.5 times what it would be without. */
static inline void harden(net *a, double xq, double xk)
{
    double lo = 0, hi = 1;
    a->w.scale = 0;
    const double still = up_attention(&a->w, (taut_up){ xq }, (taut_up){ xk }, NULL).tokens.v;
    for (int k = 0; k < 24; k++) {
        a->w.scale = lo > 0 || k > 8 ? (lo + hi) / 2 : hi;
        if (up_attention(&a->w, (taut_up){ xq }, (taut_up){ xk }, NULL).tokens.v < 2.5 * still)
            lo = a->w.scale, hi = fmax(hi, 4 * lo);
        else
            hi = a->w.scale;
    }
}

/* Climbs over the weights too: found / bound of tokens or flat, never to exceed 1. */
static inline double climb(net *a, double xq, double xk, bool tokens, int rounds)
{
    double x[MAX_X], tx[MAX_X], best = -1, step = 0.5;
    memset(x, 0, sizeof x);
    random_input(x, a, xq, xk);
    for (int k = 0; k < rounds; k++) {
        net t = *a;
        const int64_t len = a->w.heads * a->w.dh * a->w.width;
        double *const all[] = { t.wq, t.wk, t.wv, t.wo };
        for (int m = 0; k > 0 && m < 4; m++)
            if (rng_int(0, 1)) nudge(all[m], len, step);
        t.w.wq = t.wq, t.w.wk = t.wk, t.w.wv = t.wv, t.w.wo = t.wo;
        t.w.bq = a->w.bq ? t.bq : NULL, t.w.bk = a->w.bk ? t.bk : NULL;
        t.w.bv = a->w.bv ? t.bv : NULL, t.w.bo = a->w.bo ? t.bo : NULL;
        harden(&t, xq, xk);
        memcpy(tx, x, sizeof x);
        const double value = ascend_from(&t, xq, xk, tokens, k ? 4 : 40, k ? 0.1 : 0.7, tx);
        const taut_attention_bound b = up_attention(&t.w, (taut_up){ xq }, (taut_up){ xk }, NULL);
        const double ratio = value / (tokens ? b.tokens.v : b.flat.v);
        CHECK_LE(ratio, 1 + 1e-12, "climbing over the weights");
        step = fmax(ratio > best ? step * 1.3 : step * 0.93, 1e-4);
        if (!(ratio > best)) continue;
        best = ratio;
        memcpy(x, tx, sizeof x);
        *a = t;
        a->w.wq = a->wq, a->w.wk = a->wk, a->w.wv = a->wv, a->w.wo = a->wo;
        a->w.bq = t.w.bq ? a->bq : NULL, a->w.bk = t.w.bk ? a->bk : NULL;
        a->w.bv = t.w.bv ? a->bv : NULL, a->w.bo = t.w.bo ? a->bo : NULL;
    }
    return best;
}
#endif
