/* The Jacobian of softmax attention written out, block by block, in long double and doubly centred, so that saturated
 * rows do not cancel; shares no code with src/.  And random layers to write it out for. */
#ifndef LOCAL_ORACLE_H
#define LOCAL_ORACLE_H
#include "bound/local.h"
#include "harness.h"

typedef long double real;

typedef struct {
    taut_attention_weights w;
    taut_local_at at;
    double *xq, *xk;
    double *memory[10];
    int used;
} scene;

static inline double *scene_take(scene *s, int64_t len, double scale)
{
    double *p = s->memory[s->used++] = doubles(len);
    for (int64_t i = 0; i < len; i++) p[i] = scale * rng_pm();
    return p;
}

/* dh x width weights of `heads` heads; gain is the typical size of an entry of W x over that of x. */
static inline scene scene_new(int64_t width, int64_t heads, int64_t dh, int64_t tq, int64_t tk, double logit, double x)
{
    scene s = { .w = {
                    .width = width, .heads = heads, .dh = dh, .tq = tq, .tk = tk, .keys_min = tk, .rope_base = 100 } };
    const double g = 1.7 / sqrt((double)width), inner = (double)(heads * dh);
    s.w.wq = scene_take(&s, heads * dh * width, g * logit), s.w.wk = scene_take(&s, heads * dh * width, g);
    s.w.wv = scene_take(&s, heads * dh * width, g), s.w.wo = scene_take(&s, heads * dh * width, 1.7 / sqrt(inner));
    s.w.scale = 1 / sqrt((double)dh), s.w.out = 1;
    s.xk = scene_take(&s, tk * width, x), s.xq = scene_take(&s, tq * width, x);
    s.at = (taut_local_at){ .xq = s.xq, .xk = s.xk, .keys = tk };
    return s;
}

static inline void scene_biases(scene *s)
{
    const int64_t inner = s->w.heads * s->w.dh;
    s->w.bq = scene_take(s, inner, 1), s->w.bk = scene_take(s, inner, 1), s->w.bv = scene_take(s, inner, 1);
}

static inline void scene_free(scene *s)
{
    for (int i = 0; i < s->used; i++) free(s->memory[i]);
}

static inline void affine_token(real *y, const double *w, const double *b, const double *x, int64_t out, int64_t in)
{
    for (int64_t r = 0; r < out; r++) {
        y[r] = b ? b[r] : 0;
        for (int64_t c = 0; c < in; c++) y[r] += (real)w[r * in + c] * x[c];
    }
}

/* R (dh) applied to a vector: RoPE of position t, forwards or backwards. */
static inline void oracle_turn(real *y, int64_t dh, int64_t t, double base, int sign)
{
    for (int64_t c = 0; c < dh / 2; c++) {
        const real angle = sign * (real)t * powl(base, -2.0L * (real)c / (real)dh), a = y[c], b = y[c + dh / 2];
        y[c] = cosl(angle) * a - sinl(angle) * b;
        y[c + dh / 2] = sinl(angle) * a + cosl(angle) * b;
    }
}

enum { MOST = 16 }; /* tokens, features: everything here is small */
typedef struct {
    real q[MOST][MOST], k[MOST][MOST], v[MOST][MOST], p[MOST][MOST], o[MOST][MOST], kb[MOST][MOST];
} oracle_head;

static inline bool oracle_sees(const scene *s, int64_t i, int64_t j)
{
    return j < s->at.keys && !(s->w.causal && j > i + s->w.tk - s->w.tq);
}

static inline void oracle_read(oracle_head *h, const scene *s, int64_t head)
{
    const taut_attention_weights *w = &s->w;
    const int64_t dh = w->dh, d = w->width, at = head * dh;
    for (int64_t i = 0; i < w->tq; i++) {
        affine_token(h->q[i], w->wq + at * d, w->bq ? w->bq + at : NULL, (w->cross ? s->xq : s->xk) + i * d, dh, d);
        if (w->rope) oracle_turn(h->q[i], dh, i, w->rope_base, 1);
    }
    for (int64_t j = 0; j < w->tk; j++) {
        affine_token(h->k[j], w->wk + at * d, w->bk ? w->bk + at : NULL, s->xk + j * d, dh, d);
        affine_token(h->v[j], w->wv + at * d, w->bv ? w->bv + at : NULL, s->xk + j * d, dh, d);
        if (w->rope) oracle_turn(h->k[j], dh, j, w->rope_base, 1);
    }
    const real slope = w->alibi ? powl(2, -8.0L * (real)(head + 1) / (real)w->heads) : 0;
    for (int64_t i = 0; i < w->tq; i++) {
        real top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < w->tk; j++) {
            real dot = 0;
            for (int64_t c = 0; c < dh; c++) dot += h->q[i][c] * h->k[j][c];
            h->p[i][j] = oracle_sees(s, i, j) ? w->scale * dot - slope * fabsl((real)(i + w->tk - w->tq - j))
                                              : -INFINITY;
            top = fmaxl(top, h->p[i][j]);
        }
        for (int64_t j = 0; j < w->tk; j++) sum += h->p[i][j] = top > -INFINITY ? expl(h->p[i][j] - top) : 0;
        for (int64_t c = 0; c < dh; c++) h->o[i][c] = h->kb[i][c] = 0;
        for (int64_t j = 0; j < w->tk; j++) {
            h->p[i][j] = sum > 0 ? h->p[i][j] / sum : 0;
            for (int64_t c = 0; c < dh; c++)
                h->o[i][c] += h->p[i][j] * h->v[j][c], h->kb[i][c] += h->p[i][j] * h->k[j][c];
        }
    }
}

/* d o_i / d x_j of one head: (dh, width).  key: the part through keys and values; query: through the query. */
static inline void oracle_block(real b[MOST][MOST], const oracle_head *h, const scene *s, int64_t head, int64_t i,
                                int64_t j, bool key, bool query)
{
    const taut_attention_weights *w = &s->w;
    const int64_t dh = w->dh, d = w->width, at = head * dh;
    real u[MOST], back[MOST];
    memset(b, 0, sizeof(real[MOST][MOST]));
    for (int64_t c = 0; c < dh; c++) back[c] = h->q[i][c];
    if (w->rope) oracle_turn(back, dh, j, w->rope_base, -1);
    for (int64_t e = 0; key && e < d; e++) {
        u[e] = 0;
        for (int64_t c = 0; c < dh; c++) u[e] += w->scale * back[c] * w->wk[(at + c) * d + e];
        for (int64_t c = 0; c < dh; c++)
            b[c][e] += h->p[i][j] * (w->wv[(at + c) * d + e] + (h->v[j][c] - h->o[i][c]) * u[e]);
    }
    for (int64_t t = 0; query && t < w->tk; t++) {
        real z[MOST];
        for (int64_t c = 0; c < dh; c++) z[c] = h->k[t][c] - h->kb[i][c];
        if (w->rope) oracle_turn(z, dh, i, w->rope_base, -1);
        for (int64_t e = 0; e < d; e++) {
            real r = 0;
            for (int64_t c = 0; c < dh; c++) r += z[c] * w->wq[(at + c) * d + e];
            for (int64_t c = 0; c < dh; c++) b[c][e] += w->scale * h->p[i][t] * (h->v[t][c] - h->o[i][c]) * r;
        }
    }
}

/* The dense Jacobian of one head (head >= 0, without W_O) or of the layer (head -1): rows tq * out, cols tokens *
 * width; the queries' columns first in cross-attention.  *rows, *cols are set. */
static inline double *oracle_jacobian(const scene *s, int64_t head, int64_t *rows, int64_t *cols)
{
    const taut_attention_weights *w = &s->w;
    const int64_t dh = w->dh, d = w->width, inner = w->heads * dh, first = w->cross ? w->tq : 0;
    const int64_t out = head >= 0 ? dh : w->wo ? d : inner, tokens = first + w->tk;
    real *sum = calloc((size_t)(w->tq * out * tokens * d), sizeof *sum);
    *rows = w->tq * out, *cols = tokens * d;
    for (int64_t h = head >= 0 ? head : 0; h <= (head >= 0 ? head : w->heads - 1); h++) {
        static oracle_head o;
        real b[MOST][MOST];
        oracle_read(&o, s, h);
        for (int64_t i = 0; i < w->tq; i++)
            for (int64_t t = 0; t < tokens; t++) {
                const bool key = t >= first, query = w->cross ? t == i && t < first : t == i;
                oracle_block(b, &o, s, h, i, key ? t - first : 0, key, query);
                for (int64_t r = 0; r < out; r++)
                    for (int64_t c = 0; c < dh; c++) {
                        const real f = head >= 0 ? r == c
                                       : w->wo   ? (real)w->wo[r * inner + h * dh + c] * w->out
                                                 : r == h * dh + c;
                        for (int64_t e = 0; e < d; e++) sum[(i * out + r) * *cols + t * d + e] += f * b[c][e];
                    }
            }
    }
    double *j = doubles(*rows * *cols);
    for (int64_t i = 0; i < *rows * *cols; i++) j[i] = (double)sum[i];
    free(sum);
    return j;
}
#endif
