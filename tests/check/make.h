/* True certificates of small models, made without the prover and without the checker: see make_parts.h. */
#ifndef MAKE_H
#define MAKE_H
#include "base/float32.h"
#include "check/make_parts.h"

static inline void make_norm(const maker *g, cJSON *of, const char *path, const char *name, double *x, double *chain)
{
    const int64_t d = g->s->width;
    const double *w = weight_of(g, path, "weight"), *b = weight_of(g, path, "bias");
    const bool rms = g->s->norm == TAUT_NORM_RMS, center = g->s->norm == TAUT_NORM_CENTER;
    cJSON *o = node(of, center ? "centernorm" : "layernorm", name);
    double *m = MAT(d, d), bias = b ? norm(b, d) : 0;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++) m[i * d + j] = w[i] * ((i == j) - (rms ? 0 : 1 / (double)d));
    const double n = put(o, "norm", spectral(m, d, d)), eps = taut_float32(g->s->norm_eps);
    free(m);
    if (center) {
        const double r = taut_float32((double)d / (double)(d - 1));
        bias = put(o, "bias", bias);
        finish(o, r * n, r * n * *x + bias, x, chain);
        return;
    }
    const double z = isinf(*x) ? INFINITY : *x / sqrt(*x * *x / (double)d + eps);
    finish(o, n == 0 ? 0 : n / sqrt(eps), n * fmin(sqrt((double)d), isnan(z) ? INFINITY : z) + bias, x, chain);
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
        s->reach[c] = X;
        s->b[c] = put(o, "query_bias", norm(kb, d));
        s->most[c] = 2 * g->scale * X * (X * put(o, "query", spectral(s->a[c], d, d)) + s->b[c]);
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
    cJSON *o = node(parts, "family", ""), *t = cJSON_AddArrayToObject(o, "weights");
    for (int h = 0; h < n; h++) {
        const double th = ones ? 1 : exp(rng_pm()), rh = 1 / th;
        cJSON_AddItemToArray(t, exact(th));
        sigma += rh * rh;
        nb += rh * s->b[h] * rh * s->b[h];
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < d; j++) {
                side[i * n * d + h * d + j] = th * s->m[h][i * d + j];
                stack[(h * d + i) * d + j] = rh * s->key[h] * s->a[h][i * d + j];
                asks[(h * d + i) * d + j] = rh * s->reach[h] * s->a[h][i * d + j];
            }
    }
    const double to = put(o, "out_norm", spectral(side, d, n * d));
    const double logit = put(o, "logit_norm", spectral(stack, n * d, d));
    const double query = put(o, "query_norm", spectral(asks, n * d, d));
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
    const double X = *x, c = taut_float32(g->s->attention_out), *wo = weight_of(g, path, "o.weight");
    const double *bv = weight_of(g, path, "v.bias"), *bo = weight_of(g, path, "o.bias");
    head_set s = { .count = 0 };
    cJSON *o = node(of, "attention", "attn"), *parts = cJSON_AddArrayToObject(o, "of");
    for (int h = 0; h < g->s->heads; h++) make_head(g, parts, path, h, X, &s);
    s.mean = s.both = s.in_part = s.queries = s.count ? INFINITY : 0;
    for (int f = 0, families = s.count ? (int)rng_int(1, 3) : 0; f < families; f++)
        make_family(g, parts, f == 0, X, &s);
    const double keys = fmin(s.both, s.mean + s.in_part);
    const double n = put(o, "count", make_count(g, s.most, s.index, s.count));
    double *vb = bv ? times(wo, bv, d, d, 1, false) : MAT(d, 1);
    const double value = put(o, "value_bias", norm(vb, d)), bias = put(o, "bias", bo ? norm(bo, d) : 0);
    finish(o, c * ((g->flat ? sqrt(n) : 1) * keys + s.queries), c * (s.mean * X + value) + bias, x, chain);
    for (int h = 0; h < s.count; h++) free(s.m[h]), free(s.a[h]);
    free(vb);
}

static inline void make_mlp(const maker *g, cJSON *of, const char *path, bool mixed, double *x, double *chain)
{
    const int64_t d = g->s->width, hidden = g->s->mlp;
    const double *in = weight_of(g, path, "in.weight"), *out = weight_of(g, path, "out.weight");
    const double *bi = weight_of(g, path, "in.bias"), *bo = weight_of(g, path, "out.bias");
    const double keep = mixed ? g->keep : 0, mix = mixed ? g->mix : 1, c = taut_float32(g->s->activation_factor);
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
    const double middle = g->s->activation == TAUT_ABS ? 0 : 0.5;
    for (int64_t i = 0; i < d * d; i++) p[i] = mix * c * middle * p[i] + (i % (d + 1) == 0 ? keep : 0);
    const double norm_out = put(o, "norm_out", spectral(out, d, hidden)), hi = top_slope(g);
    const double prod = mix * c * put(o, "scaled_in", spectral(ti, hidden, d)) *
                        put(o, "scaled_out", spectral(to, d, hidden));
    const double joint = put(o, "joint", spectral(p, d, d)), half = put(o, "joint_half", spectral(p, d, d));
    const double shift = c * norm_out * put(o, "bias_in", bi ? norm(bi, hidden) : 0) +
                         put(o, "bias_out", bo ? norm(bo, d) : 0);
    finish(o, fmin(joint + (hi - middle) * prod, keep + hi * prod),
           *x * fmin(half + (1 - middle) * prod, keep + prod) + mix * shift, x, chain);
    free(ti), free(to), free(p);
}

/* in, sorted pairs, out */
static inline void make_sorted_mlp(const maker *g, cJSON *of, const char *path, double *x, double *chain)
{
    cJSON *o = node(of, "sequence", "mlp"), *parts = cJSON_AddArrayToObject(o, "of");
    char sub[80];
    double lip = 1;
    snprintf(sub, sizeof sub, "%s.in", path);
    make_linear(g, parts, sub, "in", weight_of(g, path, "in.weight"), g->s->mlp, g->s->width, x, &lip);
    make_sorted(g, parts, "act", x, &lip);
    snprintf(sub, sizeof sub, "%s.out", path);
    make_linear(g, parts, sub, "out", weight_of(g, path, "out.weight"), g->s->width, g->s->mlp, x, &lip);
    finish(o, lip, *x, x, chain);
}

/* c with c e^(c+1) = n - 1, by halving */
static inline double make_lambert(int64_t n)
{
    double lo = 0, hi = 40;
    for (int i = 0; i < 200; i++) {
        const double c = (lo + hi) / 2;
        if (c * exp(c + 1) < (double)(n - 1))
            lo = c;
        else
            hi = c;
    }
    return hi;
}

static inline void make_l2(const maker *g, cJSON *of, const char *path, double *x, double *chain)
{
    const int64_t d = g->s->width, dh = d / g->s->heads;
    cJSON *o = node(of, "l2attention", "attn");
    const double *q = weight_of(g, path, "q.weight"), *v = weight_of(g, path, "v.weight"), t = (double)g->t;
    if (attends(g->s, "l2_free")) {
        finish(o, INFINITY, INFINITY, x, chain);
        return;
    }
    cJSON *parts = cJSON_AddArrayToObject(o, "of");
    const double c = put(o, "lambert", make_lambert(g->t));
    double sum = 0;
    for (int64_t h = 0; h < g->s->heads; h++) {
        cJSON *one = node(parts, "head", "");
        const double nq = put(one, "query", spectral(q + h * dh * d, dh, d));
        sum += pow(nq * nq * put(one, "value", spectral(v + h * dh * d, dh, d)), 2);
    }
    const double all = sqrt(sum / (double)dh) * put(o, "out_norm", spectral(weight_of(g, path, "o.weight"), d, d));
    finish(o, all * (g->flat ? sqrt(t) + 2 * c + 2 * sqrt(c * t * 0.27846454276107383) : 1 + 4 * c), all * *x, x,
           chain);
}

/* attn, perhaps the map behind it */
static inline void make_attlip(const maker *g, cJSON *of, const char *block, double *x, double *chain)
{
    char path[64];
    snprintf(path, sizeof path, "%s.attn", block);
    const double *root = weight_of(g, path, "root"), spread = sqrt((double)g->t);
    cJSON *o = node(of, "attlip", "attn");
    const double eta = put(o, "eta", root ? *root * *root : taut_float32(key_of(g->s, "attlip_eta")));
    const bool sound = key_of(g->s, "attlip_steps") == 0 && eta > 0;
    const double defect = put(
        o, "defect",
        sound ? (key_of(g->s, "attlip_reflected") ? 4 : 2) * eta * taut_float32(key_of(g->s, "attlip_tol")) : INFINITY);
    finish(o, !sound ? INFINITY : g->flat ? 1 : spread, sound ? spread * *x + defect : INFINITY, x, chain);
    snprintf(path, sizeof path, "%s.turn", block);
    if (key_of(g->s, "attlip_turn"))
        make_linear(g, of, path, "turn", weight_of(g, path, "weight"), g->s->width, g->s->width, x, chain);
}

/* What the defects inside a node come to at its end. */
static inline double make_defect(const maker *g, const cJSON *o)
{
    const cJSON *own = cJSON_GetObjectItem(o, "defect"), *of = cJSON_GetObjectItem(o, "of");
    double sum = own ? strtod(own->valuestring, NULL) : 0;
    if (own && own->valuestring[0] == '"') sum = INFINITY;
    for (const cJSON *k = of ? of->child : NULL; k; k = k->next) {
        const cJSON *lip = cJSON_GetObjectItem(k, "lip");
        if (sum > 0 && lip) sum *= lip->valuestring[0] == '"' ? INFINITY : strtod(lip->valuestring, NULL);
        sum += make_defect(g, k);
    }
    return strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(o, "rule")), "mix") == 0 ? g->mix * sum : sum;
}

/* A mix and what is inside it; lone perceptrons sometimes answer for the mix themselves. */
static inline void make_branch(const maker *g, cJSON *of, const char *block, bool mlp, double *x, double *chain)
{
    char path[64], norm_path[64];
    const bool layer = mlp && g->s->mlp_block != TAUT_BLOCK_MLP, sorted = mlp && g->s->maxmin && !layer;
    const bool pre = g->s->norm != TAUT_NORM_NONE && g->s->place == TAUT_PLACE_PRE;
    const bool lone = mlp && !pre && !layer && !sorted && !g->s->channel && rng_int(0, 1);
    snprintf(path, sizeof path, "%s.%s", block, mlp ? "mlp" : "attn");
    snprintf(norm_path, sizeof norm_path, "%s.norm%d", block, 1 + mlp);
    if (layer)
        make_layer(g, of, path, x, chain);
    else if (!mlp && attends(g->s, "attlip"))
        make_attlip(g, of, block, x, chain);
    else {
        cJSON *o = node(of, "mix", ""), *parts = cJSON_AddArrayToObject(o, "of");
        double out = *x, lip = 1;
        if (pre) make_norm(g, parts, norm_path, norm_path + strlen(block) + 1, &out, &lip);
        if (sorted)
            make_sorted_mlp(g, parts, path, &out, &lip);
        else if (mlp)
            make_mlp(g, parts, path, lone, &out, &lip);
        else if (attends(g->s, "cosine"))
            make_cosine(g, parts, path, &out, &lip);
        else if (attends(g->s, "position"))
            make_position(g, parts, path, &out, &lip);
        else if (attends(g->s, "l2") || attends(g->s, "l2_free"))
            make_l2(g, parts, path, &out, &lip);
        else
            make_attention(g, parts, path, &out, &lip);
        if (g->s->channel) make_channel(g, parts, block, mlp ? "scale2" : "scale1", &out, &lip);
        if (!lone) lip = g->keep + g->mix * lip, out = g->keep * *x + g->mix * out;
        finish(o, lip, out, x, chain);
    }
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
        const double c = taut_float32(s->activation_factor);
        make_linear(g, parts, "transform", "transform", weight_of(g, "transform", "weight"), s->width, s->width, x,
                    &inner);
        if (s->maxmin)
            make_sorted(g, parts, "transform_act", x, &inner);
        else
            finish(node(parts, "pointwise", "transform_act"), c * top_slope(g), c * *x, x, &inner);
        if (s->norm != TAUT_NORM_NONE) make_norm(g, parts, "transform_norm", "transform_norm", x, &inner);
    }
    finish(body, inner, *x, x, chain);
    return body;
}
#endif
