/* Softmax attention around an example, by the numbers of its proof: the formula of docs/certificate.md, whose proof is in
 * docs/modules/attention.md.
 *
 * Everything is computed to nearest.  A length of computed vectors has 1e-9 of all that was added up for it on top, far more than
 * such sums can round, and a share a millionth of itself, far more than logits do that come from less than 1e5; the answer is a
 * millionth larger. */
#include "certify/near.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/blas.h"
#include "bound/norm.h"

static const double SLACK = 1e-9, LARGER = 1 + 1e-6;

typedef struct {
    const double *q, *k, *v, *bq, *bk, *bv; /* of this head; biases may be NULL */
    double query, key;                      /* as stated; without RoPE key is 1 */
    int64_t index, number;                  /* of all heads; of those that count */
} head;

typedef struct {
    double out_norm, *r; /* r_h of the heads that count */
} family;

typedef struct {
    int64_t t, d, dh, heads, block, global, families;
    double scale, rope;
    const double *m; /* how far every token moves */
    bool causal, alibi;
    double *q, *k, *v, *w, *mean;    /* (t, dh) each; (t, d); d */
    double *u, *far, *o, *p, *to;    /* of a head: u_i, |w_j - d|; of a row: dh, the shares p_ij, |v_j - o_i| */
    double *best, *by_key, *by_mean; /* (t, t): the most of all heads; squares over heads, by_mean of each family */
    family *family;
    double *shares, *keys, *row_k, *row_q; /* sums over rows, one a key; squares over heads, one a row */
    double off_v, longest_v;               /* |computed - real| of values; the longest */
    bool wild;                             /* so large that rounding or overflow counts */
} work;

static double size(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static double apart(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

static double longest(const double *x, int64_t rows, int64_t d)
{
    double most = 0;
    for (int64_t i = 0; i < rows; i++) most = fmax(most, size(x + i * d, d));
    return most;
}

/* y = x W^T + b; answers how far it may be off. */
static double project(const work *k, double *y, const double *x, const double *w, const double *b)
{
    blas_gemm(y, x, false, w, true, k->t, k->dh, k->d);
    for (int64_t i = 0; b && i < k->t * k->dh; i++) y[i] += b[i % k->dh];
    return SLACK * (size(w, k->dh * k->d) * longest(x, k->t, k->d) + (b ? size(b, k->dh) : 0));
}

static void turn(const work *k, double *y)
{
    for (int64_t t = 0; t < k->t && k->rope != 0; t++)
        for (int64_t i = 0; i < k->dh / 2; i++) {
            const double angle = (double)t * pow(k->rope, -2 * (double)i / (double)k->dh);
            double *a = y + t * k->dh + i, *b = a + k->dh / 2;
            const double x = *a;
            *a = cos(angle) * x - sin(angle) * *b;
            *b = sin(angle) * x + cos(angle) * *b;
        }
}

static bool sees(const work *k, int64_t i, int64_t j)
{
    if (k->causal && j > i) return false;
    return k->block == 0 || i < k->global || j < k->global ||
           llabs((i - k->global) / k->block - (j - k->global) / k->block) <= 1;
}

/* What does not depend on the row. */
static void begin_head(work *k, const head *h, const double *x)
{
    const double off_q = project(k, k->q, x, h->q, h->bq), off_k = project(k, k->k, x, h->k, h->bk);
    k->off_v = project(k, k->v, x, h->v, h->bv), k->longest_v = longest(k->v, k->t, k->dh);
    turn(k, k->q), turn(k, k->k);
    const double wk = size(h->k, k->dh * k->d), wq = size(h->q, k->dh * k->d);
    const double add_u = wk * (off_q + SLACK * longest(k->q, k->t, k->dh)),
                 add_w = wq * (off_k + SLACK * longest(k->k, k->t, k->dh));
    k->wild = k->wild || !(fabs(k->scale) * off_q * off_k < 1e5 * SLACK * SLACK);
    const int64_t d = k->rope != 0 ? k->dh : k->d;
    const double *u = k->q, *w = k->k;
    if (k->rope == 0) blas_gemm(k->w, k->q, false, h->k, false, k->t, k->d, k->dh), u = k->w;
    for (int64_t i = 0; i < k->t; i++) k->u[i] = h->key * size(u + i * d, d) + add_u;
    if (k->rope == 0) blas_gemm(k->w, k->k, false, h->q, false, k->t, k->d, k->dh), w = k->w;
    memset(k->mean, 0, (size_t)d * sizeof *k->mean);
    for (int64_t i = 0; i < k->t * d; i++) k->mean[i % d] += w[i] / (double)k->t;
    for (int64_t j = 0; j < k->t; j++) k->far[j] = (k->rope != 0 ? h->query : 1) * apart(w + j * d, k->mean, d) + add_w;
}

/* The shares of row i in p, and their mean of values in o. */
static void attend(work *k, const head *h, int64_t i)
{
    const double slope = k->alibi ? exp2(-8 * (double)(h->index + 1) / (double)k->heads) : 0;
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < k->t; j++) {
        double dot = 0;
        for (int64_t d = 0; d < k->dh; d++) dot += k->q[i * k->dh + d] * k->k[j * k->dh + d];
        k->p[j] = sees(k, i, j) ? k->scale * dot - slope * fabs((double)(i - j)) : -INFINITY;
        top = fmax(top, k->p[j]);
    }
    for (int64_t j = 0; j < k->t; j++) sum += k->p[j] = exp(k->p[j] - top);
    memset(k->o, 0, (size_t)k->dh * sizeof *k->o);
    for (int64_t j = 0; j < k->t; j++) {
        k->p[j] /= sum;
        for (int64_t d = 0; d < k->dh; d++) k->o[d] += k->p[j] * k->v[j * k->dh + d];
    }
}

/* What row i of a head adds to G: its shares, at most g times as large, times `by`, V_ij and how far o_i wanders. */
static void to_keys(work *k, const head *h, int64_t i, double g, double by, double from)
{
    for (int64_t j = 0; j < k->t; j++) {
        const double share = k->p[j] * (1 + 1e-6) + 1e-280,
                     p = sees(k, i, j) ? fmin(1, g * share / (1 + (g - 1) * share)) : 0;
        const int64_t at = i * k->t + j;
        const double reach = p > 0 ? by * p * (k->to[j] + from) : 0;
        k->p[j] = p;
        k->best[at] = fmax(k->best[at], p);
        k->by_key[at] += reach * reach;
        for (int64_t f = 0; f < k->families; f++) {
            const double mean = k->family[f].r[h->number] * p;
            k->by_mean[f * k->t * k->t + at] += mean * mean;
        }
    }
}

/* Row i of a head: U_i V_i and s V_i K_i into the squares of the row. */
static void one_row(work *k, const head *h, int64_t i)
{
    const double s = fabs(k->scale), n = h->query * h->key, nv = size(h->v, k->dh * k->d), *m = k->m;
    double e = 0, v_most = 0, v_sum = 0, v_mean = 0, v_moved = 0, k_most = 0, k_sum = 0;
    attend(k, h, i);
    for (int64_t j = 0; j < k->t; j++) {
        if (!sees(k, i, j)) continue;
        const double value = apart(k->v + j * k->dh, k->o, k->dh) + k->off_v + nv * m[j], key = k->far[j] + n * m[j];
        const double p = k->p[j] * (1 + 1e-6) + 1e-280;
        e = fmax(e, s * (m[i] * k->far[j] + k->u[i] * m[j] + n * m[i] * m[j]));
        v_most = fmax(v_most, value), k_most = fmax(k_most, key), v_moved = fmax(v_moved, nv * m[j]);
        v_sum += p * value * value, k_sum += p * key * key, v_mean += p * value;
        k->to[j] = value;
    }
    const double grow = e < 300 ? exp(e) : INFINITY, g = grow * grow;
    const double value = fmin(v_most, grow * sqrt(v_sum)), key = fmin(k_most, grow * sqrt(k_sum));
    const double by = s * (k->u[i] + n * m[i]), keys = by * value, query = s * value * key;
    const double from = fmin(value, (g - 1) * v_mean + v_moved + k->off_v + SLACK * k->longest_v);
    k->wild = k->wild || !(keys < 1e150 && query < 1e150);
    k->row_k[i] += keys * keys, k->row_q[i] += query * query;
    to_keys(k, h, i, g, by, from);
    for (int64_t j = 0; j < k->t; j++) k->keys[j] += k->p[j] * keys * keys;
}

/* out_norm and 1/t_h of every family of the proof.  false: no memory. */
static bool read_families(work *k, const cJSON *proof)
{
    const cJSON *part, *t, *of = cJSON_GetObjectItemCaseSensitive(proof, "of");
    const int most = cJSON_GetArraySize(of);
    k->family = taut_calloc((size_t)most + 1, sizeof *k->family + (size_t)k->heads * sizeof(double));
    if (!k->family) return false;
    double *r = (double *)(void *)(k->family + most + 1);
    cJSON_ArrayForEach(part, of)
    {
        const cJSON *weights = cJSON_GetObjectItemCaseSensitive(part, "weights");
        if (!weights) continue;
        k->family[k->families++] = (family){ taut_near_number(part, "out_norm"), r };
        cJSON_ArrayForEach(t, weights) *r++ = 1 / t->valuedouble;
    }
    return true;
}

/* The least of out_norm sqrt(sum_h r_h^2). */
static double mean_of(const work *k, int64_t heads)
{
    double mean = INFINITY;
    for (int64_t f = 0; f < k->families; f++) mean = fmin(mean, k->family[f].out_norm * size(k->family[f].r, heads));
    return mean;
}

/* N becomes G N. */
static bool reach(const taut_near_node *at, work *k, taut_near_shape *s)
{
    const int64_t t = k->t;
    const double out = taut_near_number(at->proof, "o_norm"), c = fabs(taut_near_number(at->tree, "out")) * LARGER;
    double *to = taut_calloc((size_t)(t * s->cols), sizeof *to);
    if (!to) return false;
    for (int64_t i = 0; i < t * t; i++) {
        double mean = INFINITY;
        for (int64_t f = 0; f < k->families; f++)
            mean = fmin(mean, k->family[f].out_norm * sqrt(k->by_mean[f * t * t + i]));
        const double query = i / t == i % t ? sqrt(k->row_q[i / t]) : 0;
        k->best[i] = k->best[i] > 0 ? c * (mean + out * (sqrt(k->by_key[i]) + query)) : 0;
    }
    bool small = true;
    for (int64_t i = 0; i < t * s->cols; i++) small = small && s->n[i] < 1e150;
    for (int64_t i = 0; i < t * t; i++) small = small && k->best[i] < 1e150;
    if (small) blas_gemm(to, k->best, false, s->n, false, t, s->cols, t);
    for (int64_t i = 0; i < t * s->cols && !small; i++) to[i] = INFINITY;
    free(s->n);
    s->n = to;
    return true;
}

static double joined(const taut_near_node *at, const work *k, int64_t heads)
{
    const double out = taut_near_number(at->proof, "o_norm"), mean = mean_of(k, heads);
    double both = 0, query = 0, share = 0, key = 0;
    for (int64_t i = 0; i < k->t; i++) {
        both = fmax(both, sqrt(k->row_k[i]) + sqrt(k->row_q[i])), query = fmax(query, sqrt(k->row_q[i]));
        for (int64_t j = 0; j < k->t; j++) k->shares[j] += k->best[i * k->t + j];
    }
    for (int64_t j = 0; j < k->t; j++) share = fmax(share, k->shares[j]), key = fmax(key, k->keys[j]);
    share = fmin(share, taut_near_number(at->proof, "count"));
    if (at->c->norm == TAUT_NORM_TOKENS) return mean + out * both;
    return sqrt(share) * mean + out * (sqrt(key) + query);
}

static const double *weight(const taut_near_node *at, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "%s.%s", at->path, name);
    const taut_weight *w = taut_model_find(at->c->model, path);
    return w ? (const double *)w->param->value : NULL;
}

/* Every head that counts; answers how many. */
static int64_t all_heads(work *k, const taut_near_node *at, const double *const *w)
{
    const cJSON *part;
    int64_t count = 0;
    cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(at->proof, "of"))
    {
        if (!cJSON_GetObjectItemCaseSensitive(part, "index")) break;
        head h = { .index = (int64_t)taut_near_number(part, "index"), .query = taut_near_number(part, "query") };
        const int64_t row = h.index * k->dh;
        h.number = count++;
        h.key = k->rope != 0 ? taut_near_number(part, "key") : 1;
        h.q = w[0] + row * k->d, h.k = w[1] + row * k->d, h.v = w[2] + row * k->d;
        h.bq = w[3] ? w[3] + row : NULL, h.bk = w[4] ? w[4] + row : NULL, h.bv = w[5] ? w[5] + row : NULL;
        begin_head(k, &h, (const double *)at->x.data);
        for (int64_t i = 0; i < k->t; i++) one_row(k, &h, i);
    }
    return count;
}

/* Room for all of it, zeroed. */
static double *divide(work *k)
{
    const int64_t t = k->t, squares = 2 + k->families;
    double *memory = taut_calloc((size_t)(3 * t * k->dh + t * k->d + squares * t * t + 8 * t + k->dh + k->d),
                                 sizeof *memory);
    if (!memory) return NULL;
    k->q = memory, k->k = k->q + t * k->dh, k->v = k->k + t * k->dh, k->w = k->v + t * k->dh, k->best = k->w + t * k->d;
    k->by_key = k->best + t * t, k->by_mean = k->by_key + t * t, k->u = k->best + squares * t * t;
    k->far = k->u + t, k->p = k->far + t, k->to = k->p + t, k->shares = k->to + t, k->keys = k->shares + t;
    k->row_k = k->keys + t, k->row_q = k->row_k + t, k->o = k->row_q + t, k->mean = k->o + k->dh;
    return memory;
}

/* The constant of a node that has been found to be one that can be looked at, and N behind it. */
static taut_up looked_at(const taut_near_node *at, work *k, const double *const *w, taut_near_shape *s)
{
    double *memory = read_families(k, at->proof) ? divide(k) : NULL, lip = INFINITY;
    if (memory) {
        const int64_t count = all_heads(k, at, w);
        lip = fabs(taut_near_number(at->tree, "out")) * joined(at, k, count) * LARGER;
        if (!reach(at, k, s)) k->wild = true;
    }
    free(memory), free(k->family);
    return !memory || k->wild || !isfinite(lip) ? UP_NONE : (taut_up){ lip };
}

taut_up up_near_attention(const taut_near_node *at, const double *m, taut_near_shape *s)
{
    static const char *const names[] = { "q.weight", "k.weight", "v.weight", "q.bias", "k.bias", "v.bias" };
    const int64_t t = taut_rows(at->x.shape), d = at->x.shape.d;
    const double *w[6], *x = (const double *)at->x.data;
    work k = { .t = t, .d = d, .m = m, .heads = (int64_t)taut_near_number(at->tree, "heads") };
    bool known = cJSON_GetObjectItemCaseSensitive(at->proof, "o_norm") != NULL;
    for (int i = 0; i < 6; i++) w[i] = weight(at, names[i]), known = known && (w[i] || i > 2);
    for (int64_t i = 0; i < t * d; i++) known = known && fabs(x[i]) < 1e100;
    for (int64_t i = 0; i < t; i++) known = known && m[i] < 1e100;
    k.dh = d / k.heads, k.block = (int64_t)taut_near_number(at->tree, "size"),
    k.global = (int64_t)taut_near_number(at->tree, "global");
    k.scale = taut_near_number(at->tree, "scale"), k.rope = taut_near_number(at->tree, "rope");
    k.causal = taut_near_number(at->tree, "causal") != 0, k.alibi = taut_near_number(at->tree, "alibi") != 0;
    const taut_up lip = known ? looked_at(at, &k, w, s) : UP_NONE;
    for (int64_t i = 0; i < s->rows * s->cols && !(lip.v < INFINITY); i++) s->n[i] = INFINITY;
    return lip;
}
