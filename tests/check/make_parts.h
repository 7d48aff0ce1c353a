/* Parts of true certificates of small models, made without the prover and without the checker: dense eigenvalues by Jacobi,
 * every formula of docs/certificate.md in plain double, every number stated 1e-9 above its value. */
#ifndef MAKE_PARTS_H
#define MAKE_PARTS_H
#include <cjson/cJSON.h>

#include "base/float32.h"
#include "base/sha256.h"
#include "harness.h"
#include "keys.h"
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
    for (int64_t i = 0; i < n; i++) top = isnan(a[i * n + i]) ? INFINITY : fmax(top, a[i * n + i]);
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
    v = isnan(v) ? INFINITY : v * (1 + 1e-9); /* 0 times infinity: nothing is known */
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

static inline double top_slope(const maker *g)
{
    static const double his[] = { 1.1289041451851548, 1.1289930686587718, 1, 1.0998393201288670, 1, 1, 1 };
    return his[g->s->activation];
}

static inline void make_linear(const maker *g, cJSON *of, const char *path, const char *name, const double *w,
                               int64_t rows, int64_t cols, double *x, double *chain)
{
    cJSON *o = node(of, "linear", name);
    const double *b = weight_of(g, path, "bias");
    const double n = put(o, "norm", spectral(w, rows, cols));
    const double bias = b ? put(o, "bias", norm(b, rows)) : 0;
    finish(o, n, n * *x + bias, x, chain);
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
            least = fmin(least, isnan(most[h]) ? 0 : exp(-most[h]) * sum); /* 0 times infinity: nothing is known */
        }
        total += 1 / (1 + least);
    }
    return total;
}

typedef struct {
    double norm[3], reach[3]; /* of W_Q, W_K, W_V of a head */
    const double *w[3];
    double *out; /* F_h, d by `wide` */
    int index;
} angle;

/* ||[by_h W^h]|| of one side; -1: [by_h F_h] side by side. */
static inline double angles_norm(const maker *g, const angle *a, int count, int side, const double *by, int64_t wide)
{
    const int64_t d = g->s->width, dh = d / g->s->heads, rows = side < 0 ? wide : dh;
    double *m = MAT(count * rows, d);
    for (int h = 0; h < count; h++)
        for (int64_t i = 0; i < rows * d; i++)
            m[h * rows * d + i] = by[h] * (side < 0 ? a[h].out[i % d * wide + i / d] : a[h].w[side][i]);
    const double n = spectral(m, count * rows, d);
    free(m);
    return n;
}

typedef struct {
    double mean, logits, grown; /* the least of the families */
} cosine_parts;

static inline void make_cosine_family(const maker *g, cJSON *parts, bool ones, double X, const angle *a, int count,
                                      double root, int64_t wide, cosine_parts *least)
{
    const bool values = key_of(g->s, "cosine_values");
    const double slope = 1 / sqrt(taut_float32(key_of(g->s, "cosine_eps"))), far = values ? 1 : X;
    cJSON *o = node(parts, "family", ""), *list = cJSON_AddArrayToObject(o, "weights");
    double t[16], r[16], by[4][16], sigma = 0, value = 0, both = 0, key = 0, near = 0, grown = 0;
    for (int h = 0; h < count; h++) {
        t[h] = ones ? 1 : exp(rng_pm()), r[h] = 1 / t[h];
        cJSON_AddItemToArray(list, exact(t[h]));
        const double span = r[h] * (values ? a[h].reach[2] : 1);
        by[0][h] = span * a[h].reach[1], by[1][h] = span, by[2][h] = span * a[h].reach[0], by[3][h] = r[h];
        sigma += r[h] * r[h], grown += span * span, value += pow(r[h] * a[h].norm[2], 2);
        both += pow(span * fmax(a[h].norm[0], a[h].norm[1]), 2), key += pow(span * a[h].norm[1], 2);
        near += pow(span * a[h].reach[0] * a[h].norm[1], 2);
    }
    const double to = put(o, "out_norm", angles_norm(g, a, count, -1, t, wide));
    const double query = put(o, "query_norm", angles_norm(g, a, count, 0, by[0], 0));
    const double keys = put(o, "key_norm", angles_norm(g, a, count, 1, by[1], 0));
    const double nears = put(o, "key_norm_near", angles_norm(g, a, count, 1, by[2], 0));
    const double vals = values ? put(o, "value_norm", angles_norm(g, a, count, 2, by[3], 0)) : 0;
    const double A = g->flat ? root * keys : sqrt(key), near_a = g->flat ? root * nears : sqrt(near);
    const double logits = fmin(g->flat ? INFINITY : sqrt(both), fmin(sqrt(A * A + query * query), near_a + query));
    const double mean = values ? slope * (g->flat ? vals : sqrt(value)) : sqrt(sigma);
    least->mean = fmin(least->mean, to * root * mean);
    least->logits = fmin(least->logits, to * logits * taut_float32(key_of(g->s, "cosine_tau")) * slope * far);
    least->grown = fmin(least->grown, to * sqrt(grown) * far);
}

static inline void make_cosine(const maker *g, cJSON *of, const char *path, double *x, double *chain)
{
    static const char *const w[] = { "q.weight", "k.weight", "v.weight" }, *const b[] = { "q.bias", "k.bias",
                                                                                          "v.bias" };
    static const char *const names[][2] = { { "query", "query_bias" },
                                            { "key", "key_bias" },
                                            { "value", "value_bias" } };
    const int64_t d = g->s->width, dh = d / g->s->heads;
    const bool values = key_of(g->s, "cosine_values");
    const double X = *x, c = taut_float32(key_of(g->s, "cosine_nu")), eps = taut_float32(key_of(g->s, "cosine_eps")),
                 *wo = weight_of(g, path, "o.weight");
    const double *bv = weight_of(g, path, "v.bias"), *bo = weight_of(g, path, "o.bias");
    angle a[16];
    double most[16];
    int index[16], count = 0;
    cJSON *o = node(of, "cosattention", "attn"), *parts = cJSON_AddArrayToObject(o, "of");
    for (int h = 0; h < g->s->heads; h++) {
        double *oh = MAT(d, dh);
        const double *wv = weight_of(g, path, w[2]) + h * dh * d;
        for (int64_t i = 0; i < d * dh; i++) oh[i] = wo[i / dh * d + h * dh + i % dh];
        if (norm(oh, d * dh) == 0 || (!values && norm(wv, dh * d) == 0)) {
            free(oh);
            continue;
        }
        angle *n = &a[count];
        n->out = values ? oh : times(oh, wv, d, dh, d, false);
        if (!values) free(oh);
        cJSON *head = node(parts, "head", "");
        put_exact(head, "index", h);
        for (int s = 0; s < (values ? 3 : 2); s++) {
            n->w[s] = weight_of(g, path, w[s]) + h * dh * d;
            const double *bias = weight_of(g, path, b[s]);
            n->norm[s] = put(head, names[s][0], spectral(n->w[s], dh, d));
            const double z = n->norm[s] * X + put(head, names[s][1], bias ? norm(bias + h * dh, dh) : 0);
            n->reach[s] = isinf(z) ? 1 : z / sqrt(z * z + eps);
        }
        most[count] = 2 * taut_float32(key_of(g->s, "cosine_tau")) * n->reach[0] * n->reach[1];
        index[count++] = h;
    }
    const double all = put(o, "count", make_count(g, most, index, count)), root = g->flat ? sqrt(all) : 1;
    const double none = count ? INFINITY : 0;
    cosine_parts least = { none, none, none };
    for (int f = 0, families = count ? (int)rng_int(1, 3) : 0; f < families; f++)
        make_cosine_family(g, parts, f == 0, X, a, count, root, values ? dh : d, &least);
    double *vb = bv && !values ? times(wo, bv, d, d, 1, false) : MAT(d, 1);
    const double value = put(o, "value_bias", norm(vb, d)), bias = put(o, "bias", bo ? norm(bo, d) : 0);
    finish(o, c * (least.mean + least.logits), c * (least.grown + value) + bias, x, chain);
    for (int h = 0; h < count; h++) free(a[h].out);
    free(vb);
}

/* x - 2 W^T T^-1 f(W x + b) */
static inline void make_layer(const maker *g, cJSON *of, const char *path, double *x, double *chain)
{
    const int64_t d = g->s->width, hidden = g->s->mlp;
    const bool sll = g->s->mlp_block == TAUT_BLOCK_SLL;
    const double *w = weight_of(g, path, "weight"), *b = weight_of(g, path, "bias");
    const double *k = weight_of(g, path, sll ? "log_q" : "scale"), hi = top_slope(g);
    const double lo = g->s->activation == TAUT_ABS ? -1 : 1 - hi, least = g->s->activation == TAUT_ABS ? -1 : 0;
    cJSON *o = node(of, sll ? "sll" : "potential", "mlp");
    double square = 0;
    for (int64_t i = 0; i < hidden; i++) {
        double t = sll ? 0x1p-40 : fabs(k[0]);
        for (int64_t j = 0; sll && j < hidden; j++) {
            double dot = 0;
            for (int64_t l = 0; l < d; l++) dot += w[i * d + l] * w[j * d + l];
            t += fabs(dot) * exp(k[j] - k[i]);
        }
        if (b && b[i] != 0) square += b[i] * b[i] / t;
    }
    const double n = sll ? 1 : put(o, "norm", spectral(w, hidden, d)), bias = put(o, "bias", sqrt(square));
    const double q = sll ? 1 : k[0] == 0 ? INFINITY : n * n / k[0]; /* its sign is that of T */
    const double lip = fmax(1, fmax(fabs(1 - 2 * q * hi), fabs(1 - 2 * q * lo)));
    finish(o, lip,
           isinf(q) ? INFINITY
                    : fmax(1, fmax(fabs(1 - 2 * q), fabs(1 - 2 * q * least))) * *x + 2 * sqrt(fabs(q)) * bias,
           x, chain);
}

static inline void make_sorted(const maker *g, cJSON *of, const char *name, double *x, double *chain)
{
    cJSON *o = node(of, "sequence", name), *parts = cJSON_AddArrayToObject(o, "of");
    double lip = 1, c = taut_float32(g->s->activation_factor);
    finish(node(parts, "maxmin", "sort"), 1, *x, x, &lip);
    finish(node(parts, "scale", "factor"), c, c * *x, x, &lip);
    finish(o, lip, *x, x, chain);
}

static inline void make_channel(const maker *g, cJSON *of, const char *block, const char *name, double *x,
                                double *chain)
{
    char path[64];
    snprintf(path, sizeof path, "%s.%s", block, name);
    const double *a = weight_of(g, path, "weight");
    double most = 0;
    for (int64_t i = 0; i < g->s->width; i++) most = fmax(most, fabs(a[i]));
    cJSON *o = node(of, "channel", name);
    most = put(o, "norm", most);
    finish(o, most, most * *x, x, chain);
}

/* The heaviest column of what head h gives to every key, of every length, all of them added up. */
static inline double heaviest_column(const maker *g, const double *w)
{
    const bool causal = g->s->arch == TAUT_ARCH_GPT;
    double most = 0;
    for (int64_t t = 1; t <= g->t; t++)
        for (int64_t j = 0; j < t; j++) {
            double sum = 0;
            for (int64_t i = causal ? j : 0; i < t; i++) {
                double z = 0;
                for (int64_t k = 0; k < (causal ? i + 1 : t); k++) z += exp(w[i - k] - w[i - j]);
                sum += 1 / z;
            }
            most = fmax(most, sum);
        }
    return most;
}

static inline void make_position(const maker *g, cJSON *of, const char *path, double *x, double *chain)
{
    const int64_t d = g->s->width, heads = g->s->heads, dh = d / heads, c = g->s->context;
    const int64_t zero = g->s->arch == TAUT_ARCH_GPT ? 0 : c - 1;
    const double *wv = weight_of(g, path, "v.weight"), *b = weight_of(g, path, "o.bias");
    const double *table = weight_of(g, path, "distance.weight");
    const bool first = strncmp(path, "block.0.", 8) == 0;
    cJSON *o = node(of, "posattention", "attn"), *parts = cJSON_AddArrayToObject(o, "of");
    double mean = 0, *stack = doubles(d * d);
    for (int64_t h = 0; h < heads; h++) {
        cJSON *part = node(parts, "head", "");
        const double away = fmin(first || h == 0 ? (double)h : exp2((double)h), (double)(c - 1));
        const double gain = taut_float32(1 / sqrt(1 + away));
        put_exact(part, "index", (double)h);
        const double n = gain * put(part, "norm", spectral(wv + h * dh * d, dh, d));
        mean += n * n;
        const double by = gain *
                          (g->flat ? sqrt(put(part, "column", heaviest_column(g, table + h * (zero + c) + zero))) : 0);
        for (int64_t i = h * dh * d; i < (h + 1) * dh * d; i++) stack[i] = by * wv[i];
    }
    const double joint = g->flat ? put(o, "joint", spectral(stack, d, d)) : sqrt(mean);
    free(stack);
    const double out = put(o, "out_norm", spectral(weight_of(g, path, "o.weight"), d, d));
    const double bias = put(o, "bias", b ? norm(b, d) : 0);
    finish(o, out * joint, out * sqrt(mean) * *x + bias, x, chain);
}
#endif
