/* ProbSparse attention (formulas: ref/sparse.c): `top` rows of scores a head, and one sum of values for all others.
 *
 * A head of an example is one thread's, queries in order: O(top tk + tq samples) products a head, one row of memory.
 * NaN: as in ref.  Aliasing: none.
 * Error     which queries look is as in ref but for scores closer than (dh + samples) u sum |q.k|, u = 2^-24.  For a given
 *           c: where i does not look (tk + 4) u times the sum of |v|; where it looks, with E = (dh + 8) u scale |q|.|k| the
 *           worst error of a logit, f = 6 E + (tk + 2 dh + 400) u times the sum of the sizes of what is added up; sums over
 *           queries tq u more. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vmath.h"

typedef struct {
    const taut_sparse *s;
    int64_t e, h;
    float *p, *t, *sum; /* (tk), (tk), (dh) */
} head;

static float *at(const head *g, const taut_real *x, int64_t t, int64_t i)
{
    return (float *)x + ((g->e * t + i) * g->s->heads + g->h) * g->s->dh;
}

static float dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void add(float *y, float a, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

static head head_of(const taut_sparse *s, float *room, int64_t index)
{
    return (head){ s, index / s->heads, index % s->heads, room, room + s->tk, room + 2 * s->tk };
}

static float *room_of(const taut_sparse *s)
{
    float *room = taut_malloc((size_t)(2 * s->tk + s->dh + s->tq + 1) * sizeof *room);
    TAUT_CHECK(room, "sparse: no memory for a row");
    return room;
}

static int64_t look(const head *g, int64_t i, const taut_real *q, const taut_real *k)
{
    const taut_sparse *s = g->s;
    const int64_t seen = s->causal ? i + 1 : s->tk;
    const float *qi = at(g, q, s->tq, i), scale = (float)s->scale;
    for (int64_t j = 0; j < seen; j++) g->p[j] = scale * dot(qi, at(g, k, s->tk, j), s->dh);
    const float max = vm_max(g->p, seen);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < seen; j++) {
        g->p[j] = vm_exp(g->p[j] - max);
        sum += g->p[j];
    }
    for (int64_t j = 0; j < seen; j++) g->p[j] /= sum;
    return seen;
}

/* How uneven the scores of query i are; NaN counts as even. */
static float measure(const head *g, int64_t i, const taut_real *q, const taut_real *k)
{
    const taut_sparse *s = g->s;
    float max = -INFINITY, sum = 0;
    for (int64_t r = 0; r < s->samples; r++) {
        const int64_t j = (int64_t)taut_rng_below(s->key, (uint64_t)(i * s->samples + r), (uint64_t)s->tk);
        const float score = dot(at(g, q, s->tq, i), at(g, k, s->tk, j), s->dh);
        max = score > max ? score : max;
        sum += score;
    }
    const float m = max - sum / (float)s->tk;
    return isnan(m) ? -INFINITY : m;
}

void CPU(sparse_pick)(taut_real *c_, const taut_real *q, const taut_real *k, const taut_sparse *s)
{
#pragma omp parallel for schedule(static)
    for (int64_t index = 0; index < s->n * s->heads; index++) {
        float *room = room_of(s), *m = room + 2 * s->tk + s->dh, *c = (float *)c_ + index * s->top;
        const head g = head_of(s, room, index);
        for (int64_t i = 0; i < s->tq; i++) m[i] = measure(&g, i, q, k);
        for (int64_t i = 0, n = 0; i < s->tq; i++) {
            int64_t rank = 0;
            for (int64_t j = 0; j < s->tq; j++) rank += m[j] > m[i] || (j < i && m[j] == m[i]);
            if (rank < s->top) c[n++] = (float)i;
        }
        free(room);
    }
}

static void spread(const head *g, taut_real *o, const taut_real *v)
{
    const taut_sparse *s = g->s;
    memset(g->sum, 0, (size_t)s->dh * sizeof *g->sum);
    for (int64_t j = 0; j < s->tk; j++) {
        add(g->sum, 1, at(g, v, s->tk, j), s->dh);
        if (s->causal) memcpy(at(g, o, s->tq, j), g->sum, (size_t)s->dh * sizeof *g->sum);
    }
    for (int64_t c = 0; c < s->dh; c++) g->sum[c] /= (float)s->tk;
    for (int64_t i = 0; i < s->tq && !s->causal; i++)
        memcpy(at(g, o, s->tq, i), g->sum, (size_t)s->dh * sizeof *g->sum);
}

void CPU(sparse)(taut_real *o, const taut_real *c, const taut_real *q, const taut_real *k, const taut_real *v,
                 const taut_sparse *s)
{
#pragma omp parallel for schedule(static)
    for (int64_t index = 0; index < s->n * s->heads; index++) {
        float *room = room_of(s);
        const head g = head_of(s, room, index);
        spread(&g, o, v);
        for (int64_t r = 0; r < s->top; r++) {
            const int64_t i = (int64_t)((const float *)c)[index * s->top + r], seen = look(&g, i, q, k);
            float *oi = at(&g, o, s->tq, i);
            memset(oi, 0, (size_t)s->dh * sizeof *oi);
            for (int64_t j = 0; j < seen; j++) add(oi, g.p[j], at(&g, v, s->tk, j), s->dh);
        }
        free(room);
    }
}

static void softmax_slope(const head *g, int64_t seen)
{
    const float mean = dot(g->p, g->t, seen);
#pragma omp simd
    for (int64_t j = 0; j < seen; j++) g->t[j] = g->p[j] * (g->t[j] - mean);
}

void CPU(sparse_jvp)(taut_real *to, const taut_real *tq, const taut_real *tk, const taut_real *tv, const taut_real *c,
                     const taut_real *q, const taut_real *k, const taut_real *v, const taut_sparse *s)
{
    const float scale = (float)s->scale;
#pragma omp parallel for schedule(static)
    for (int64_t index = 0; index < s->n * s->heads; index++) {
        float *room = room_of(s);
        const head g = head_of(s, room, index);
        spread(&g, to, tv);
        for (int64_t r = 0; r < s->top; r++) {
            const int64_t i = (int64_t)((const float *)c)[index * s->top + r], seen = look(&g, i, q, k);
            const float *qi = at(&g, q, s->tq, i), *tqi = at(&g, tq, s->tq, i);
            float *oi = at(&g, to, s->tq, i);
            for (int64_t j = 0; j < seen; j++)
                g.t[j] = scale * (dot(tqi, at(&g, k, s->tk, j), s->dh) + dot(qi, at(&g, tk, s->tk, j), s->dh));
            softmax_slope(&g, seen);
            memset(oi, 0, (size_t)s->dh * sizeof *oi);
            for (int64_t j = 0; j < seen; j++) {
                add(oi, g.p[j], at(&g, tv, s->tk, j), s->dh);
                add(oi, g.t[j], at(&g, v, s->tk, j), s->dh);
            }
        }
        free(room);
    }
}

/* gv = what the queries that do not look send back: their sum, or where causal the sum of those from j on */
static void spread_back(const head *g, taut_real *gv, const taut_real *go, const float *c)
{
    const taut_sparse *s = g->s;
    memset(g->sum, 0, (size_t)s->dh * sizeof *g->sum);
    for (int64_t i = s->tq - 1, r = s->top - 1; i >= 0; i--) {
        if (r >= 0 && (int64_t)c[r] == i)
            r--;
        else
            add(g->sum, 1, at(g, go, s->tq, i), s->dh);
        if (s->causal) memcpy(at(g, gv, s->tk, i), g->sum, (size_t)s->dh * sizeof *g->sum);
    }
    for (int64_t i = 0; i < s->dh; i++) g->sum[i] /= (float)s->tk;
    for (int64_t j = 0; j < s->tk && !s->causal; j++)
        memcpy(at(g, gv, s->tk, j), g->sum, (size_t)s->dh * sizeof *g->sum);
}

void CPU(sparse_vjp)(taut_real *gq, taut_real *gk, taut_real *gv, const taut_real *go, const taut_real *c,
                     const taut_real *q, const taut_real *k, const taut_real *v, const taut_sparse *s)
{
    const size_t width = (size_t)(s->n * s->heads * s->dh) * sizeof(float);
    const float scale = (float)s->scale;
    memset((void *)gq, 0, width * (size_t)s->tq);
    memset((void *)gk, 0, width * (size_t)s->tk);
#pragma omp parallel for schedule(static)
    for (int64_t index = 0; index < s->n * s->heads; index++) {
        float *room = room_of(s);
        const head g = head_of(s, room, index);
        const float *mine = (const float *)c + index * s->top;
        spread_back(&g, gv, go, mine);
        for (int64_t r = 0; r < s->top; r++) {
            const int64_t i = (int64_t)mine[r], seen = look(&g, i, q, k);
            const float *goi = at(&g, go, s->tq, i), *qi = at(&g, q, s->tq, i);
            float *gqi = at(&g, gq, s->tq, i);
            for (int64_t j = 0; j < seen; j++) g.t[j] = dot(goi, at(&g, v, s->tk, j), s->dh);
            softmax_slope(&g, seen);
            for (int64_t j = 0; j < seen; j++) {
                add(at(&g, gv, s->tk, j), g.p[j], goi, s->dh);
                add(gqi, scale * g.t[j], at(&g, k, s->tk, j), s->dh);
                add(at(&g, gk, s->tk, j), scale * g.t[j], qi, s->dh);
            }
        }
        free(room);
    }
}
