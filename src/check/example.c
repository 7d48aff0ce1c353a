/* Predictions: the forward pass in double with a proved error, and from its margins the radius.
 *
 * forward answers rho >= |computed output - real output of the node at the computed input|, as the largest token (norm
 * tokens) or over all tokens (flat: sqrt(T) times that).  Along a sequence rho_{i+1} <= lip_i rho_i + own: the
 * confirmed lip holds since computed and real tokens are in the node's region (computed ones are looked at).
 *   affine      a row is a blocked sum: gamma (|W|_F |x| + |b|)                   u = 2^-53, gamma as in norm.c
 *   activation  |computed - f(z)| <= 16 u |z|: libm within 4 ulp (1e-15), a few roundings, |f(z)| <= |z|
 *   norm layer  c = C x is off by delta <= gamma |x|; c/sd moves by at most delta over the smallest sd on the way
 *   attention   logits are off by delta, so P is off by a factor within e^(+-2 delta), so the mean value by (e^(2 delta) - 1)
 *               times the longest value; RoPE's sines come from Arb and are right to u
 * Then with B = lip of the body, E = its rho, w_j the rows of the head:  (f_p - f_j)(x') / logit_scale >= (w_p - w_j).z + b_p -
 * b_j - |w_p - w_j| (E + B |x' - x|).  A claim that does not hold, a tie, NaN or infinity is never certified. */
#include <stdio.h>
#include <string.h>
#if __has_include(<flint/arb.h>)
#include <flint/arb.h>
#else
#include <arb.h>
#endif

#include "check/ck.h"

typedef struct {
    double *v, most; /* most: at least the longest token */
    int64_t t, d;
} tokens;

static ck_view view(const tokens *x) { return (ck_view){ NULL, x->v, x->t, x->d, x->d, 1 }; }

/* x W^T + b, and what it may be off for each token. */
static tokens affine(ck *c, const tokens *x, ck_view w, ck_view b, double *err)
{
    tokens y = { ck_room(c, x->t * w.rows, sizeof(double)), 0, x->t, w.rows };
    const double gamma = ck_product(c, y.v, ck_turn(view(x)), ck_turn(w));
    for (int64_t i = 0; i < y.t * y.d && b.f; i++) y.v[i] += ck_at(&b, 0, i % y.d);
    y.most = ck_longest(view(&y));
    *err = ck_mul(gamma + 4 * CK_U, ck_add(ck_mul(ck_length(w), x->most), ck_length(b)));
    return y;
}

static double curve(int kind, double x)
{
    if (kind == GELU) return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
    if (kind == GELU_TANH) return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    if (kind == SILU) return x / (1 + exp(-x));
    return kind == TANH ? tanh(x) : fmax(x, 0);
}

/* y = factor f(x); answers the error when x is off by err. */
static double activate(ck *c, tokens *x, double err)
{
    const double factor = ck_float(c->r.activation_factor);
    for (int64_t i = 0; i < x->t * x->d; i++) x->v[i] = factor * curve((int)c->r.activation, x->v[i]);
    const double own = ck_add(ck_mul(18 * CK_U, x->most), 1e-290), sum = ck_add(ck_mul(ck_slope(c), err), own);
    x->most = ck_longest(view(x));
    return ck_mul(factor, sum);
}

static double normalise(ck *c, const ck_node *n, tokens *x)
{
    const bool centred = c->r.norm != RMSNORM, center = n->kind == CENTER;
    const double d = c->r.width, eps = ck_float(c->r.norm_eps), g = ck_longest(ck_turn(n->w[0]));
    const double delta = centred ? ck_mul(ck_gamma(d + 4), x->most) : 0;
    double worst = center ? ck_float(d / (d - 1)) : 0; /* of 1/sd */
    for (int64_t t = 0; t < x->t; t++) {
        double *v = x->v + t * x->d, mean = 0, square = 0;
        for (int64_t i = 0; i < x->d && centred; i++) mean += v[i];
        for (int64_t i = 0; i < x->d; i++) v[i] -= mean / d;
        for (int64_t i = 0; i < x->d; i++) square += v[i] * v[i];
        const double low = fmax(ck_below(sqrt(square) * (1 - ck_gamma(d + 4))) - delta, 0) * (1 - 4 * CK_U);
        const double by = center ? worst : 1 / sqrt(square / d + eps);
        if (!center) worst = fmax(worst, ck_div(1, ck_below(sqrt(ck_below(low * low / d * (1 - 4 * CK_U)) + eps))));
        for (int64_t i = 0; i < x->d; i++)
            v[i] = v[i] * by * ck_at(&n->w[0], 0, i) + (n->b[0].f ? ck_at(&n->b[0], 0, i) : 0);
    }
    const double size = center ? ck_mul(worst, 2 * x->most) : ck_sqrt(d); /* of what is multiplied by g */
    x->most = ck_longest(view(x));
    return ck_add(ck_mul(g, ck_add(ck_mul(worst, delta), ck_mul(ck_gamma(d + 16), size))),
                  ck_mul(ck_gamma(4), ck_length(n->b[0])));
}

/* Turns the pairs (i, i + dh/2) of every head by t base^(-2i/dh); the sines are right to u. */
static void rotate(ck *c, tokens *x, int64_t heads)
{
    const int64_t dh = x->d / heads, half = dh / 2;
    arb_t angle, sine, cosine;
    arb_init(angle), arb_init(sine), arb_init(cosine);
    for (int64_t i = 0; i < half; i++)
        for (int64_t t = 0; t < x->t; t++) {
            arb_set_d(angle, c->r.rope_base);
            arb_log(angle, angle, 160);
            arb_mul_si(angle, angle, (slong)(-2 * i), 160);
            arb_div_si(angle, angle, (slong)dh, 160);
            arb_exp(angle, angle, 160);
            arb_mul_si(angle, angle, (slong)t, 160);
            arb_sin_cos(sine, cosine, angle, 160);
            const double si = arf_get_d(arb_midref(sine), ARF_RND_NEAR),
                         co = arf_get_d(arb_midref(cosine), ARF_RND_NEAR);
            for (double *v = x->v + t * x->d + i, *end = v + heads * dh; v < end; v += dh) {
                const double a = v[0], b = v[half];
                v[0] = co * a - si * b;
                v[half] = si * a + co * b;
            }
        }
    arb_clear(angle), arb_clear(sine), arb_clear(cosine);
}

/* One row of one head: o = sum_j P_j v_j; s is room for the logits. */
static void attend(const ck *c, double *o, double *s, const tokens *qkv, int64_t row, int64_t h, int64_t dh)
{
    const int64_t d = qkv->d, sees = c->r.arch == 0 ? row + 1 : qkv->t;
    const double *q = qkv[0].v + row * d + h * dh, slope = exp2(-8 * (double)(h + 1) / c->r.heads);
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < sees; j++) {
        const double *k = qkv[1].v + j * d + h * dh;
        s[j] = 0;
        for (int64_t i = 0; i < dh; i++) s[j] += q[i] * k[i];
        s[j] = c->scale * s[j] - (c->r.positions == ALIBI ? slope * fabs((double)(row - j)) : 0);
        top = fmax(top, s[j]);
    }
    for (int64_t j = 0; j < sees; j++) sum += s[j] = exp(s[j] - top);
    for (int64_t j = 0; j < sees; j++)
        for (int64_t i = 0; i < dh; i++) o[i] += s[j] / sum * qkv[2].v[j * d + h * dh + i];
}

static double attention(ck *c, const ck_node *n, tokens *x)
{
    const int64_t heads = (int64_t)c->r.heads, dh = x->d / heads, t = x->t, d = x->d;
    tokens m[3], o = { ck_room(c, t * d, sizeof(double)), 0, t, d };
    double e[3], big[3], *s = ck_room(c, t * heads, sizeof *s), err;
    for (int i = 0; i < 3; i++) {
        m[i] = affine(c, x, n->w[i], n->b[i], &e[i]);
        if (i < 2 && c->r.positions == ROPE) {
            rotate(c, &m[i], heads);
            e[i] = ck_add(e[i], ck_mul(16 * CK_U, m[i].most));
        }
        big[i] = ck_longest((ck_view){ NULL, m[i].v, t * heads, dh, dh, 1 }); /* of one head */
    }
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t h = 0; h < heads; h++)
        for (int64_t row = 0; row < t; row++) attend(c, o.v + row * d + h * dh, s + h * t, m, row, h, dh);
    o.most = ck_longest(view(&o));
    const double logits = ck_add(ck_mul(c->scale, ck_mul(big[0], big[1])), c->r.positions == ALIBI ? (double)t : 0);
    double delta = ck_add(ck_add(ck_mul(big[0], e[1]), ck_mul(big[1], e[0])), ck_mul(e[0], e[1]));
    delta = ck_add(ck_mul(c->scale, delta), ck_mul(ck_gamma((double)dh + 24), logits));
    const double off = ck_add(2 * delta, ck_gamma(2 * (double)t + 32)), grown = off < 0.01 ? 1.01 * off : INFINITY;
    const double value = ck_mul(ck_sqrt((double)heads), ck_add(ck_mul(grown, big[2]), ck_add(e[2], 1e-290)));
    const double factor = ck_float(c->r.attention_out);
    *x = affine(c, &o, n->w[3], (ck_view){ 0 }, &err);
    for (int64_t i = 0; i < t * d; i++) x->v[i] = factor * x->v[i] + (n->b[3].f ? ck_at(&n->b[3], 0, i % d) : 0);
    err = ck_add(ck_add(err, ck_mul(4 * CK_U, x->most)), ck_mul(ck_length(n->w[3]), value));
    x->most = ck_longest(view(x));
    return ck_add(ck_mul(factor, err), ck_mul(4 * CK_U, ck_length(n->b[3])));
}

static double forward(ck *c, const ck_node *n, tokens *x);

/* A node that is made of others. */
static double compose(ck *c, const ck_node *n, tokens *x)
{
    double rho = 0;
    tokens in = *x;
    if (n->kind == MIX)
        in.v = memcpy(ck_room(c, x->t * x->d, sizeof(double)), x->v, (size_t)(x->t * x->d) * sizeof(double));
    for (const ck_node *k = n->first; k; k = k->next) {
        const double own = forward(c, k, x);
        rho = rho == 0 ? own : ck_add(ck_mul(k->lip, rho), own);
    }
    if (n->kind == SEQUENCE) return rho;
    const double size = ck_add(ck_mul(c->keep, in.most), ck_mul(c->mix, x->most)), root = sqrt((double)x->t);
    for (int64_t i = 0; i < x->t * x->d; i++) x->v[i] = c->keep * in.v[i] + c->mix * x->v[i];
    x->most = ck_longest(view(x));
    return ck_add(ck_mul(c->mix, rho), ck_mul(ck_mul(ck_gamma(4), size), c->out->flat ? ck_next(root) : 1));
}

static double forward(ck *c, const ck_node *n, tokens *x)
{
    const bool inside = x->most <= n->in;
    double err = 0;
    if (n->kind == SEQUENCE || n->kind == MIX) return inside ? compose(c, n, x) : (compose(c, n, x), INFINITY);
    if (n->kind == LINEAR) *x = affine(c, x, n->w[0], n->b[0], &err);
    if (n->kind == POINTWISE) err = activate(c, x, 0);
    if (n->kind == NORM || n->kind == CENTER) err = normalise(c, n, x);
    if (n->kind == ATTENTION) err = attention(c, n, x);
    if (n->kind == POSITION) {
        for (int64_t i = 0; i < x->t * x->d; i++) x->v[i] += n->w[0].f[i];
        x->most = ck_longest(view(x));
        err = ck_mul(2 * CK_U, x->most);
    }
    if (n->kind == MLP) {
        double own;
        *x = affine(c, x, n->w[0], n->b[0], &err);
        err = activate(c, x, err);
        *x = affine(c, x, n->w[1], n->b[1], &own);
        err = ck_add(ck_mul(n->norm_out, err), own);
    }
    return inside ? ck_mul(err, c->out->flat ? ck_next(sqrt((double)x->t)) : 1) : INFINITY;
}

/* Is token p proved to stay ahead of all others within the radius?  If not certified: is it at least not refuted? */
static void confirm_margins(ck *c, const ck_view *z, double rho, int64_t p, double radius, const char *what)
{
    const ck_view w = c->head->w[0], b = c->head->b[0];
    const double gamma = ck_gamma((double)w.cols + 8);
    for (int64_t j = 0; j < w.rows; j++) {
        double gap = (b.f ? ck_at(&b, 0, p) - ck_at(&b, 0, j) : 0), sum = fabs(gap), apart = 0;
        for (int64_t i = 0; i < w.cols; i++) {
            const double diff = ck_at(&w, p, i) - ck_at(&w, j, i);
            gap += diff * ck_at(z, 0, i);
            sum += fabs(diff * ck_at(z, 0, i));
            apart += diff * diff;
        }
        apart = ck_mul(ck_sqrt(apart), 1 + gamma);
        const double off = ck_add(ck_mul(2 * gamma, sum), ck_mul(apart, rho));
        if (j == p) continue;
        const double least = ck_sub_down(gap, off), needs = ck_mul(apart, ck_mul(radius, c->body->lip));
        if (radius > 0 ? !(least > 0 && needs <= least) : gap < -off)
            ck_fail(c, "%s: that token %lld stays above %lld %s (margin %.9g, at most %.3g off, needed %.9g)", what,
                    (long long)p, (long long)j, radius > 0 ? "is not proved" : "is false", gap, off, needs);
    }
}

void ck_example(ck *c, const cJSON *json)
{
    char what[40];
    const struct ck_block *mark = c->blocks;
    const ck_node outside = { .path = "example" };
    snprintf(what, sizeof what, "example %lld", (long long)c->out->examples);
    ck_fields f = { c, &outside, json, what + 8, 0 };
    const cJSON *ids = ck_take(&f, "ids"), *id = cJSON_IsArray(ids) ? ids->child : NULL;
    const char *verdict = cJSON_GetStringValue(ck_take(&f, "verdict"));
    const double target = ck_stated(&f, "target"), predicted = ck_stated(&f, "predicted"),
                 vocab = (double)c->embed.rows;
    const double radius = ck_stated(&f, "radius");
    ck_take(&f, "margin");
    tokens x = { ck_room(c, c->out->tokens * c->embed.cols, sizeof(double)), 0, c->out->tokens, c->embed.cols };
    for (int64_t t = 0; t < x.t; t++, id = id->next) {
        const double token = cJSON_GetNumberValue(id);
        if (!(token >= 0 && token < vocab) || token != floor(token)) ck_fail(c, "%s: id %lld", what, (long long)t);
        for (int64_t i = 0; i < x.d; i++) x.v[t * x.d + i] = ck_at(&c->embed, (int64_t)token, i);
    }
    x.most = ck_longest(view(&x));
    if (id || !(target < vocab && predicted < vocab) || target != floor(target) || predicted != floor(predicted))
        ck_fail(c, "%s: too many ids, or target or predicted are no tokens", what);
    if (!verdict || strcmp(verdict, radius > 0 ? "certified" : "unknown") != 0 || !(radius <= c->out->room))
        ck_fail(c, "%s: radius %.9g does not fit its verdict or the room", what, radius);
    const double rho = forward(c, c->body, &x);
    const ck_view last = { NULL, x.v + (x.t - 1) * x.d, 1, x.d, x.d, 1 };
    confirm_margins(c, &last, rho, (int64_t)predicted, radius, what);
    c->out->examples++;
    c->out->certified += radius > 0;
    ck_close(&f);
    ck_give_back(c, mark);
}
