/* True certificates of small models, made without the prover and without the checker: dense eigenvalues by Jacobi,
 * every formula of docs/certificate.md in plain double, every number stated 1e-9 above its value. */
#ifndef MAKE_H
#define MAKE_H
#include <cjson/cJSON.h>

#include "base/sha256.h"
#include "harness.h"
#include "model/model.h"
#include "temp.h"

typedef struct {
    const taut_model *m;
    const taut_model_spec *s;
    bool flat;
    int64_t t;
    double keep, mix, scale;
} maker;

#define MAT(rows, cols) doubles((rows) * (cols))

static inline double as_f32(double x) { return (double)(float)x; }

static inline const double *weight_of(const maker *g, const char *path, const char *name)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", path, name);
    const taut_weight *w = taut_model_find(g->m, full);
    return w ? (const double *)g->m->values + w->offset : NULL;
}

/* The largest eigenvalue of a symmetric matrix, by Jacobi rotations; a is destroyed. */
static inline double top_eigenvalue(double *a, int64_t n)
{
    for (int sweep = 0; sweep < 30; sweep++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                if (a[p * n + q] == 0) continue;
                const double th = 0.5 * atan2(2 * a[p * n + q], a[q * n + q] - a[p * n + p]), c = cos(th), s = sin(th);
                for (int64_t k = 0; k < n; k++) {
                    const double x = a[k * n + p], y = a[k * n + q];
                    a[k * n + p] = c * x - s * y;
                    a[k * n + q] = s * x + c * y;
                }
                for (int64_t k = 0; k < n; k++) {
                    const double x = a[p * n + k], y = a[q * n + k];
                    a[p * n + k] = c * x - s * y;
                    a[q * n + k] = s * x + c * y;
                }
            }
    double top = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, a[i * n + i]);
    return top;
}

/* ||A||, A rows by cols */
static inline double spectral(const double *a, int64_t rows, int64_t cols)
{
    double *g = MAT(cols, cols);
    for (int64_t i = 0; i < cols; i++)
        for (int64_t j = 0; j < cols; j++)
            for (int64_t k = 0; k < rows; k++) g[i * cols + j] += a[k * cols + i] * a[k * cols + j];
    const double top = sqrt(top_eigenvalue(g, cols));
    free(g);
    return top;
}

/* C = A B, A m by k, B k by n; transposed inputs as flags. */
static inline double *times(const double *a, const double *b, int64_t m, int64_t k, int64_t n, bool ta)
{
    double *c = MAT(m, n);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < k; l++) c[i * n + j] += (ta ? a[l * m + i] : a[i * k + l]) * b[l * n + j];
    return c;
}

/* JSON numbers exactly: raw text, since cJSON itself prints with a tolerance. */
static inline cJSON *exact(double v)
{
    char text[40];
    snprintf(text, sizeof text, isinf(v) ? "\"inf\"" : "%.17g", v);
    return cJSON_CreateRaw(text);
}
static inline double put(cJSON *o, const char *key, double v)
{
    if (isfinite(v)) v *= 1 + 1e-9;
    cJSON_AddItemToObject(o, key, exact(v));
    return v;
}
static inline void put_exact(cJSON *o, const char *key, double v) { cJSON_AddItemToObject(o, key, exact(v)); }

static inline cJSON *node(cJSON *into, const char *rule, const char *name)
{
    cJSON *o = cJSON_CreateObject();
    if (*name) cJSON_AddStringToObject(o, "name", name);
    cJSON_AddStringToObject(o, "rule", rule);
    if (into) cJSON_AddItemToArray(into, o);
    return o;
}
/* What a node says of itself; x and lip of the chain go on with it. */
static inline void finish(cJSON *o, double lip, double out, double *x, double *chain)
{
    const double l = put(o, "lip", lip);
    *x = put(o, "out", out);
    *chain = isnan(*chain * l) ? INFINITY : *chain * l;
}

static inline void make_linear(const maker *g, cJSON *of, const char *path, const double *w, int64_t rows, double *x,
                               double *chain)
{
    cJSON *o = node(of, "linear", path);
    const double *b = weight_of(g, path, "bias");
    const double n = put(o, "norm", spectral(w, rows, g->s->width));
    const double bias = b ? put(o, "bias", norm(b, rows)) : 0;
    finish(o, n, n * *x + bias, x, chain);
}

static inline void make_norm(const maker *g, cJSON *of, const char *path, const char *name, double *x, double *chain)
{
    const int64_t d = g->s->width;
    const double *w = weight_of(g, path, "weight"), *b = weight_of(g, path, "bias");
    const bool rms = g->s->norm == TAUT_NORM_RMS, center = g->s->norm == TAUT_NORM_CENTER;
    cJSON *o = node(of, center ? "centernorm" : "layernorm", name);
    double *m = MAT(d, d), bias = b ? norm(b, d) : 0;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++) m[i * d + j] = w[i] * ((i == j) - (rms ? 0 : 1 / (double)d));
    const double n = put(o, "norm", spectral(m, d, d)), eps = as_f32(g->s->norm_eps);
    free(m);
    if (center) {
        const double r = as_f32((double)d / (double)(d - 1));
        bias = put(o, "bias", bias);
        finish(o, r * n, r * n * *x + bias, x, chain);
        return;
    }
    const double z = isinf(*x) ? INFINITY : *x / sqrt(*x * *x / (double)d + eps);
    finish(o, n == 0 ? 0 : n / sqrt(eps), n * fmin(sqrt((double)d), isnan(z) ? INFINITY : z) + bias, x, chain);
}

static inline double make_count(const maker *g, const double *most, const int *index, int count)
{
    double total = 0;
    for (int64_t i = 0; i < g->t; i++) {
        const int64_t sees = g->s->arch == TAUT_ARCH_GPT ? i + 1 : g->t;
        double least = count ? INFINITY : 0;
        for (int h = 0; h < count; h++) {
            const double slope = pow(2, -8.0 * (index[h] + 1) / (double)g->s->heads);
            double sum = (double)(sees - 1);
            if (g->s->positions == TAUT_POS_ALIBI) {
                sum = 0;
                for (int64_t k = 1; k < sees; k++) sum += exp(-slope * (double)k);
            }
            least = fmin(least, exp(-most[h]) * sum);
        }
        total += 1 / (1 + least);
    }
    return total;
}

typedef struct {
    double *m[16], *a[16]; /* M_h; A_h, with rope W_Q^h and zeros below */
    double b[16], most[16], key[16], reach[16];
    int index[16], count;
    double mean, both, in_part, queries; /* of the families */
} head_set;

/* Head h, unless its M_h is 0. */
static inline void make_head(const maker *g, cJSON *parts, const char *path, int h, double X, head_set *s)
{
    const int64_t d = g->s->width, dh = d / g->s->heads;
    const double *wo = weight_of(g, path, "o.weight"), *wv = weight_of(g, path, "v.weight") + h * dh * d;
    const double *wq = weight_of(g, path, "q.weight") + h * dh * d, *wk = weight_of(g, path, "k.weight") + h * dh * d;
    const double *bq = weight_of(g, path, "q.bias"), *bk = weight_of(g, path, "k.bias");
    double *oh = MAT(d, dh);
    const int c = s->count;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < dh; j++) oh[i * dh + j] = wo[i * d + h * dh + j];
    if (norm(oh, d * dh) == 0 || norm(wv, dh * d) == 0) {
        free(oh);
        return;
    }
    s->m[c] = times(oh, wv, d, dh, d, false);
    cJSON *o = node(parts, "head", "");
    put_exact(o, "index", h);
    if (g->s->positions == TAUT_POS_ROPE) {
        const double query = put(o, "query", spectral(wq, dh, d)),
                     qb = put(o, "query_bias", bq ? norm(bq + h * dh, dh) : 0);
        s->key[c] = put(o, "key", spectral(wk, dh, d));
        s->reach[c] = s->key[c] * X + put(o, "key_bias", bk ? norm(bk + h * dh, dh) : 0);
        s->a[c] = MAT(d, d);
        memcpy(s->a[c], wq, (size_t)(dh * d) * sizeof(double));
        s->b[c] = s->key[c] * qb;
        s->most[c] = 2 * g->scale * s->reach[c] * (query * X + qb);
    } else {
        double *kb = bq ? times(wk, bq + h * dh, d, dh, 1, true) : MAT(d, 1);
        s->a[c] = times(wk, wq, d, dh, d, true);
        s->key[c] = 1;
        s->b[c] = put(o, "key_bias", norm(kb, d));
        s->most[c] = 2 * g->scale * X * (X * put(o, "logit", spectral(s->a[c], d, d)) + s->b[c]);
        free(kb);
    }
    s->index[s->count++] = h;
    free(oh);
}

static inline void make_family(const maker *g, cJSON *parts, bool ones, double X, head_set *s)
{
    const int64_t d = g->s->width, n = s->count;
    const bool rope = g->s->positions == TAUT_POS_ROPE;
    double *side = MAT(d, n * d), *stack = MAT(n * d, d), *asks = MAT(n * d, d), sigma = 0, nb = 0;
    cJSON *o = node(parts, "family", ""), *t = cJSON_AddArrayToObject(o, "weights"),
          *r = cJSON_AddArrayToObject(o, "shares");
    for (int h = 0; h < n; h++) {
        const double th = ones ? 1 : exp(rng_pm()), rh = ones ? 1 : nextafter(1 / th, 9) * (1 + 0x1p-52);
        cJSON_AddItemToArray(t, exact(th));
        cJSON_AddItemToArray(r, exact(rh));
        sigma += rh * rh;
        nb += rh * s->b[h] * rh * s->b[h];
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < d; j++) {
                side[i * n * d + h * d + j] = th * s->m[h][i * d + j];
                stack[(h * d + i) * d + j] = rh * s->key[h] * s->a[h][i * d + j];
                asks[(h * d + i) * d + j] = rope ? rh * s->reach[h] * s->a[h][i * d + j] : 0;
            }
    }
    const double to = put(o, "out_norm", spectral(side, d, n * d));
    const double logit = put(o, "logit_norm", spectral(stack, n * d, d));
    const double query = rope ? put(o, "query_norm", spectral(asks, n * d, d)) : X * logit;
    const double in = g->scale * X * (X * logit + sqrt(nb));
    s->mean = fmin(s->mean, to * sqrt(sigma));
    if (!rope) s->both = fmin(s->both, to * sqrt(sigma + in * in));
    s->in_part = fmin(s->in_part, to * in);
    s->queries = fmin(s->queries, to * g->scale * X * query);
    free(side), free(stack), free(asks);
}

static inline void make_attention(const maker *g, cJSON *of, const char *path, double *x, double *chain)
{
    const int64_t d = g->s->width;
    const double X = *x, c = as_f32(g->s->attention_out), *wo = weight_of(g, path, "o.weight");
    const double *bv = weight_of(g, path, "v.bias"), *bo = weight_of(g, path, "o.bias");
    head_set s = { .count = 0 };
    cJSON *o = node(of, "attention", "attn"), *parts = cJSON_AddArrayToObject(o, "of");
    for (int h = 0; h < g->s->heads; h++) make_head(g, parts, path, h, X, &s);
    s.mean = s.both = s.in_part = s.queries = s.count ? INFINITY : 0;
    for (int f = 0, families = s.count ? (int)rng_int(1, 3) : 0; f < families; f++)
        make_family(g, parts, f == 0, X, &s);
    const double keys = fmin(s.both, s.mean + s.in_part);
    const double n = g->flat || rng_int(0, 1) ? put(o, "count", make_count(g, s.most, s.index, s.count)) : 0;
    double *vb = bv ? times(wo, bv, d, d, 1, false) : MAT(d, 1);
    const double value = put(o, "value_bias", norm(vb, d)), bias = put(o, "bias", bo ? norm(bo, d) : 0);
    finish(o, c * ((g->flat ? sqrt(n) : 1) * keys + s.queries), c * (s.mean * X + value) + bias, x, chain);
    for (int h = 0; h < s.count; h++) free(s.m[h]), free(s.a[h]);
    free(vb);
}

static inline void make_mlp(const maker *g, cJSON *of, const char *path, bool mixed, double *x, double *chain)
{
    static const double his[] = { 1.1289041451851548, 1.1289930686587718, 1, 1.0998393201288670, 1 };
    const int64_t d = g->s->width, hidden = g->s->mlp;
    const double *in = weight_of(g, path, "in.weight"), *out = weight_of(g, path, "out.weight");
    const double *bi = weight_of(g, path, "in.bias"), *bo = weight_of(g, path, "out.bias");
    const double keep = mixed ? g->keep : 0, mix = mixed ? g->mix : 1, c = as_f32(g->s->activation_factor);
    cJSON *o = node(of, "mlp", "mlp");
    if (mixed) cJSON_AddStringToObject(o, "scope", "mix");
    cJSON *units = rng_int(0, 1) ? cJSON_AddArrayToObject(o, "units") : NULL;
    double *ti = MAT(hidden, d), *to = MAT(d, hidden), *p = times(out, in, d, hidden, d, false);
    for (int64_t k = 0; k < hidden; k++) {
        const int e = units ? (int)rng_int(-3, 3) : 0;
        if (units) cJSON_AddItemToArray(units, exact(e));
        for (int64_t i = 0; i < d; i++) {
            ti[k * d + i] = ldexp(in[k * d + i], e);
            to[i * hidden + k] = ldexp(out[i * hidden + k], -e);
        }
    }
    for (int64_t i = 0; i < d * d; i++) p[i] = mix * c / 2 * p[i] + (i % (d + 1) == 0 ? keep : 0);
    const double norm_out = put(o, "norm_out", spectral(out, d, hidden)), hi = his[g->s->activation];
    const double prod = mix * c * put(o, "scaled_in", spectral(ti, hidden, d)) *
                        put(o, "scaled_out", spectral(to, d, hidden));
    const double joint = put(o, "joint", spectral(p, d, d)), half = put(o, "joint_half", spectral(p, d, d));
    const double shift = c * norm_out * put(o, "bias_in", bi ? norm(bi, hidden) : 0) +
                         put(o, "bias_out", bo ? norm(bo, d) : 0);
    finish(o, fmin(joint + (hi - 0.5) * prod, keep + hi * prod), *x * fmin(half + prod / 2, keep + prod) + mix * shift,
           x, chain);
    free(ti), free(to), free(p);
}

static inline void make_drop(const maker *g, cJSON *of, double *x, double *chain)
{
    if (g->s->dropout > 0) finish(node(of, "dropout", "drop"), 1, *x, x, chain);
}

/* A mix and what is inside it; inner sequences and lone perceptrons sometimes answer for the mix themselves. */
static inline void make_branch(const maker *g, cJSON *of, const char *block, bool mlp, double *x, double *chain)
{
    char path[64], norm_path[64];
    const bool pre = g->s->norm != TAUT_NORM_NONE && g->s->place == TAUT_PLACE_PRE;
    const bool lone = mlp && !pre && rng_int(0, 1), mixed = lone || rng_int(0, 1);
    snprintf(path, sizeof path, "%s.%s", block, mlp ? "mlp" : "attn");
    snprintf(norm_path, sizeof norm_path, "%s.norm%d", block, 1 + mlp);
    cJSON *o = node(of, "mix", ""), *seq = node(cJSON_AddArrayToObject(o, "of"), "sequence", "");
    cJSON *parts = cJSON_AddArrayToObject(seq, "of");
    put_exact(o, "keep", g->keep);
    put_exact(o, "mix", g->mix);
    if (mixed) cJSON_AddStringToObject(seq, "scope", "mix");
    double X = *x, in = *x, lip = 1;
    if (pre) make_norm(g, parts, norm_path, norm_path + strlen(block) + 1, &in, &lip);
    if (mlp)
        make_mlp(g, parts, path, lone, &in, &lip);
    else
        make_attention(g, parts, path, &in, &lip);
    make_drop(g, parts, &in, &lip);
    double out = in;
    if (mixed && !lone) lip = g->keep + g->mix * lip, out = g->keep * X + g->mix * out;
    double l = 1;
    finish(seq, lip, out, &out, &l);
    if (!mixed) l = g->keep + g->mix * l, out = g->keep * X + g->mix * out;
    finish(o, l, out, x, chain);
    if (g->s->norm != TAUT_NORM_NONE && !pre) make_norm(g, of, norm_path, norm_path + strlen(block) + 1, x, chain);
}

static inline cJSON *make_body(const maker *g, cJSON *of, double *x, double *chain)
{
    const taut_model_spec *s = g->s;
    double inner = 1, blocks = 1;
    cJSON *body = node(of, "sequence", ""), *parts = cJSON_AddArrayToObject(body, "of");
    if (s->positions == TAUT_POS_LEARNED) {
        cJSON *o = node(parts, "position", "pos");
        const double *p = weight_of(g, "pos", "weight");
        double most = 0;
        for (int64_t i = 0; i < s->context; i++) most = fmax(most, norm(p + i * s->width, s->width));
        finish(o, 1, *x + put(o, "longest", most), x, &inner);
    }
    if (s->embed_norm && s->norm != TAUT_NORM_NONE) make_norm(g, parts, "embed_norm", "embed_norm", x, &inner);
    make_drop(g, parts, x, &inner);
    cJSON *stack = node(parts, "sequence", "block"), *each = cJSON_AddArrayToObject(stack, "of");
    for (int i = 0; i < s->depth; i++) {
        char path[32];
        double lip = 1;
        snprintf(path, sizeof path, "block.%d", i);
        cJSON *b = node(each, "sequence", path + 6), *two = cJSON_AddArrayToObject(b, "of");
        make_branch(g, two, path, false, x, &lip);
        make_branch(g, two, path, true, x, &lip);
        finish(b, lip, *x, x, &blocks);
    }
    finish(stack, blocks, *x, x, &inner);
    if (s->norm != TAUT_NORM_NONE && s->place == TAUT_PLACE_PRE) make_norm(g, parts, "norm", "norm", x, &inner);
    if (s->arch == TAUT_ARCH_ENCODER) {
        static const double his[] = { 1.1289041451851548, 1.1289930686587718, 1, 1.0998393201288670, 1 };
        make_linear(g, parts, "transform", weight_of(g, "transform", "weight"), s->width, x, &inner);
        const double c = as_f32(s->activation_factor);
        finish(node(parts, "pointwise", "transform_act"), c * his[s->activation], c * *x, x, &inner);
        if (s->norm != TAUT_NORM_NONE) make_norm(g, parts, "transform_norm", "transform_norm", x, &inner);
    }
    finish(body, inner, *x, x, chain);
    return body;
}
#endif
