/* Predictions: the forward pass in double with a proved error, and from its margins the radius.
 *
 * forward answers rho >= |computed output - real output of the node at the computed input|: of the largest token (norm
 * tokens), or over all tokens (flat: at most sqrt(T) times that).  Along a sequence rho_{i+1} <= lip_i rho_i + own: the
 * confirmed lip holds, as real and computed tokens are in the node's region (computed ones are looked at; else inf).
 *   affine      a blocked sum: gamma (|W|_F |x| + |b|), gamma as in norm.c
 *   activation  |computed - f(z)| <= 18 u |z|: libm within 4 ulp (1e-15), a few roundings, |f(z)| <= |z|
 *   norm layer  c = C x is off by delta <= gamma |x|; c/sd moves by at most delta over the smallest sd on the way
 *   attention   logits off by delta put P off by a factor within e^(+-2 delta), the mean value by (e^(2 delta) - 1)
 *               times the longest value; RoPE's angles are off by (16 + ln base) u T at most (pow, its exponent)
 * Then with B = lip of the body, E = its rho, w_j the rows of the head and z the last token:  (f_p - f_j)(x') /
 * logit_scale >= (w_p - w_j).z + b_p - b_j - |w_p - w_j| (E + B |x' - x|).  Ties, NaN, infinity: never certified. */
#include <stdio.h>
#include <string.h>

#include "check/ck.h"

typedef struct {
    double *v, most, err; /* at least the longest token; at least how far a token is off */
    int64_t t, d;
} tokens;

static double longest(const tokens *x) { return ck_longest(ck_of(x->v, x->t, x->d)); }
static double bias_at(const ck_view *b, int64_t i) { return b->f ? (double)b->f[i] : 0; }

/* factor x W^T + b. */
static tokens affine(ck *c, const tokens *x, double factor, ck_view w, ck_view b)
{
    tokens y = { ck_room(c, x->t * w.rows, sizeof(double)), 0, 0, x->t, w.rows };
    const double gamma = ck_product(c, y.v, ck_turn(ck_of(x->v, x->t, x->d)), ck_turn(w)) + 4 * CK_U;
    for (int64_t i = 0; i < y.t * y.d; i++) y.v[i] = factor * y.v[i] + bias_at(&b, i % y.d);
    y.most = longest(&y);
    y.err = ck_mul(gamma, ck_add(ck_mul(factor, ck_mul(ck_length(w), x->most)), ck_length(b)));
    return y;
}

static double curve(int kind, double x)
{
    if (kind == GELU) return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
    if (kind == GELU_TANH) return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    if (kind == SILU) return x / (1 + exp(-x));
    return kind == TANH ? tanh(x) : x < 0 ? 0 : x;
}

static void activate(ck *c, tokens *x)
{
    for (int64_t i = 0; i < x->t * x->d; i++) x->v[i] = c->factor * curve((int)c->r.activation, x->v[i]);
    x->err = ck_mul(c->factor, ck_add(ck_mul(ck_slope(c), x->err), ck_mul(18 * CK_U, x->most)));
    x->most = longest(x);
}

static void normalise(ck *c, const ck_node *n, tokens *x)
{
    const bool centred = c->r.norm != RMSNORM, center = n->kind == CENTER;
    const double d = c->r.width, eps = c->r.norm_eps, delta = centred ? ck_mul(ck_gamma(d + 4), x->most) : 0;
    double by = (float)(d / (d - 1)), worst = center ? by : 0; /* by: what C x is multiplied with, r or 1/sd */
    for (int64_t t = 0; t < x->t; t++) {
        double *v = x->v + t * x->d, mean = 0, square = 0;
        for (int64_t i = 0; i < x->d && centred; i++) mean += v[i];
        for (int64_t i = 0; i < x->d; i++) v[i] -= mean / d, square += v[i] * v[i];
        const double low = fmax(sqrt(square) * (1 - ck_gamma(d + 4)) - delta, 0) * (1 - 4 * CK_U);
        if (!center) by = 1 / sqrt(square / d + eps);
        if (!center) worst = fmax(worst, ck_div(1, sqrt(low * low / d + eps) * (1 - 8 * CK_U)));
        for (int64_t i = 0; i < x->d; i++) v[i] = v[i] * by * n->w[0].f[i] + bias_at(&n->b[0], i);
    }
    const double size = center ? ck_mul(worst, 2 * x->most) : ck_sqrt(d); /* of what is multiplied by g */
    x->err = ck_mul(ck_longest(n->w[0]), ck_add(ck_mul(worst, delta), ck_mul(ck_gamma(d + 16), size)));
    x->err = ck_add(x->err, ck_mul(ck_gamma(4), ck_length(n->b[0])));
}

/* RoPE: the pairs (i, i + dh/2) of every head turn by t base^(-2i/dh). */
static void rotate(const ck *c, tokens *x, int64_t dh)
{
    for (int64_t t = 0; t < x->t; t++)
        for (int64_t i = 0; i < dh / 2; i++) {
            const double angle = (double)t * pow(c->r.rope_base, -2 * (double)i / (double)dh), co = cos(angle),
                         si = sin(angle);
            for (double *v = x->v + t * x->d + i, *w = v + dh / 2; v < x->v + (t + 1) * x->d; v += dh, w += dh) {
                const double a = *v, b = *w;
                *v = co * a - si * b;
                *w = si * a + co * b;
            }
        }
    x->err = ck_add(x->err, ck_mul(((16 + log(c->r.rope_base)) * (double)x->t + 32) * CK_U, x->most));
}

/* One row of one head: o = sum_j P_j v_j; s is room for the logits. */
static void attend(const ck *c, double *o, double *s, const tokens *qkv, int64_t row, int64_t at, int64_t dh,
                   double slope)
{
    const int64_t d = qkv->d, sees = c->r.arch == 0 ? row + 1 : qkv->t;
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < sees; j++) {
        s[j] = 0;
        for (int64_t i = at; i < at + dh; i++) s[j] += qkv[0].v[row * d + i] * qkv[1].v[j * d + i];
        s[j] = c->scale * s[j] - slope * fabs((double)(row - j));
        top = fmax(top, s[j]);
    }
    for (int64_t j = 0; j < sees; j++) sum += s[j] = exp(s[j] - top);
    for (int64_t j = 0; j < sees; j++)
        for (int64_t i = 0; i < dh; i++) o[i] += s[j] / sum * qkv[2].v[j * d + at + i];
}

static void attention(ck *c, const ck_node *n, tokens *x)
{
    const int64_t heads = (int64_t)c->r.heads, dh = x->d / heads, t = x->t, d = x->d;
    const bool alibi = c->r.positions == ALIBI;
    tokens m[3], o = { ck_room(c, t * d, sizeof(double)), 0, 0, t, d };
    double big[3], *s = ck_room(c, t * heads, sizeof *s);
    for (int i = 0; i < 3; i++) {
        m[i] = affine(c, x, 1, n->w[i], n->b[i]);
        if (i < 2 && c->r.positions == ROPE) rotate(c, &m[i], dh);
        big[i] = ck_longest(ck_of(m[i].v, t * heads, dh)); /* of one head */
    }
#pragma omp parallel for schedule(dynamic, 1) if (t * t * d > 100000)
    for (int64_t h = 0; h < heads; h++)
        for (int64_t row = 0; row < t; row++)
            attend(c, o.v + row * d + h * dh, s + h * t, m, row, h * dh, dh,
                   alibi ? exp2(-8 * (double)(h + 1) / (double)heads) : 0);
    o.most = longest(&o);
    const double logits = ck_add(ck_mul(c->scale, ck_mul(big[0], big[1])), alibi ? (double)t : 0);
    double off = ck_add(ck_mul(ck_add(big[0], m[0].err), m[1].err), ck_mul(big[1], m[0].err));
    off = ck_add(ck_mul(c->scale, off), ck_mul(ck_gamma((double)dh + 24), logits));
    off = ck_add(2 * off, ck_gamma(2 * (double)t + 32));
    off = ck_mul(off < 0.01 ? 1.01 * off : INFINITY, big[2]);
    o.err = ck_mul(ck_sqrt((double)heads), ck_add(off, m[2].err));
    *x = affine(c, &o, c->r.attention_out, n->w[3], n->b[3]);
    x->err = ck_add(x->err, ck_mul(c->r.attention_out, ck_mul(ck_length(n->w[3]), o.err)));
}

/* See the top; x becomes the output. */
static double forward(ck *c, const ck_node *n, tokens *x)
{
    const bool inside = x->most <= n->in || n->kind == DROP;
    double rho = 0, all = c->out->flat ? ck_sqrt((double)x->t) : 1;
    tokens in = *x;
    if (n->kind == MIX)
        in.v = memcpy(ck_room(c, x->t * x->d, sizeof(double)), x->v, (size_t)(x->t * x->d) * sizeof(double));
    for (const ck_node *k = n->first; k; k = k->next) {
        const double own = forward(c, k, x);
        rho = rho == 0 ? own : ck_add(ck_mul(k->lip, rho), own);
    }
    x->err = 0;
    if (n->kind == MIX) {
        for (int64_t i = 0; i < x->t * x->d; i++) x->v[i] = c->keep * in.v[i] + c->mix * x->v[i];
        x->err = ck_mul(ck_gamma(4), ck_add(ck_mul(c->keep, in.most), ck_mul(c->mix, x->most)));
        rho = ck_mul(c->mix, rho);
    }
    for (int64_t i = 0; i < x->t * x->d && n->kind == POSITION; i++) x->v[i] += n->w[0].f[i];
    if (n->kind == POSITION) x->err = ck_mul(2 * CK_U, longest(x));
    if (n->kind == LINEAR || n->kind == MLP) *x = affine(c, x, 1, n->w[0], n->b[0]);
    if (n->kind == POINTWISE || n->kind == MLP) activate(c, x);
    if (n->kind == MLP) {
        const double err = ck_mul(n->norm_out, x->err);
        *x = affine(c, x, 1, n->w[1], n->b[1]);
        x->err = ck_add(x->err, err);
    }
    if (n->kind == NORM || n->kind == CENTER) normalise(c, n, x);
    if (n->kind == ATTENTION) attention(c, n, x);
    x->most = longest(x);
    return inside ? ck_add(rho, ck_mul(ck_add(x->err, n->kind == DROP ? 0 : 1e-280), all)) : INFINITY; /* + underflow */
}

/* Is token p proved to stay ahead of all others within the radius?  With no radius, and of the margin, nothing is proved:
 * they must be what a double forward pass gives, to 1e-8. */
static void margins(ck *c, const double *z, double rho, int64_t p, double radius, double margin)
{
    const ck_view w = c->head->w[0], b = c->head->b[0];
    const double gamma = ck_gamma((double)w.cols + 8);
    for (int64_t j = 0; j < w.rows; j++) {
        double gap = bias_at(&b, p) - bias_at(&b, j), size = fabs(gap), apart = 0;
        for (int64_t i = 0; i < w.cols; i++) {
            const double diff = ck_at(&w, p, i) - ck_at(&w, j, i);
            gap += diff * z[i], size += fabs(diff * z[i]), apart += diff * diff;
        }
        apart = ck_mul(ck_sqrt(apart), 1 + gamma);
        const double off = ck_add(ck_mul(gamma, size), ck_mul(apart, rho)), least = ck_sub_down(gap, off);
        const double needs = ck_mul(apart, ck_mul(radius, c->body->lip)), ahead = ck_add(gap, fmin(off, 1e-8 * size));
        const bool holds = radius > 0 ? least > 0 && needs <= least : ahead >= 0;
        if (j != p && (!holds || margin * (1 - 1e-9) > (float)c->r.logit_scale * ahead))
            ck_fail(c, "example %lld: radius %.17g, but token %lld is ahead of %lld by %.9g only, which allows %.9g",
                    (long long)c->out->examples, radius, (long long)p, (long long)j, least,
                    least / (apart * c->body->lip));
    }
}

void ck_example(ck *c, const cJSON *json)
{
    const struct ck_block *mark = c->blocks;
    ck_fields f = { c, "example", "certified or unknown", json, 0 };
    const cJSON *ids = ck_take(&f, "ids"), *id = cJSON_IsArray(ids) ? ids->child : NULL;
    const double radius = ck_stated(&f, "radius"), margin = ck_stated(&f, "margin"), target = ck_stated(&f, "target");
    const double predicted = ck_stated(&f, "predicted"), vocab = (double)c->embed.rows;
    tokens x = { ck_room(c, c->out->tokens * c->embed.cols, sizeof(double)), 0, 0, c->out->tokens, c->embed.cols };
    bool sound = cJSON_GetArraySize(ids) == x.t && target < vocab && target == floor(target) && predicted < vocab &&
                 predicted == floor(predicted) && radius <= c->out->room &&
                 strcmp(ck_word(&f, "verdict"), radius > 0 ? "certified" : "unknown") == 0;
    for (int64_t t = 0; t < x.t && sound; t++, id = id->next) {
        const double token = cJSON_GetNumberValue(id);
        sound = token >= 0 && token < vocab && token == floor(token);
        for (int64_t i = 0; i < x.d && sound; i++) x.v[t * x.d + i] = ck_at(&c->embed, (int64_t)token, i);
    }
    if (!sound) ck_fail(c, "example %lld: its ids, radius, room or verdict do not fit", (long long)c->out->examples);
    ck_close(&f);
    x.most = longest(&x);
    const double rho = forward(c, c->body, &x);
    margins(c, x.v + (x.t - 1) * x.d, rho, (int64_t)predicted, radius, margin);
    c->out->examples++;
    c->out->certified += radius > 0;
    ck_give_back(c, mark);
}
