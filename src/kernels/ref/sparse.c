/* ProbSparse attention of Informer: queries whose scores are uneven look, the others take the values' mean.
 *     m_i = max_r s_r - (sum_r s_r)/tk,   s_r = q_i.k_{j(i,r)},  r = 0 .. samples-1;   c = the `top` queries of largest m_i
 *     i in c       o_i = sum_j P_ij v_j,  P = softmax over the keys that i sees of scale q_i.k_j
 *     i not in c   o_i = (1/tk) sum_j v_j;  causal: o_i = v_0 + ... + v_i, as in Informer's decoder
 * j(i,r) = taut_rng_below(key, i samples + r, tk): with replacement, the same for all heads and examples.
 * jvp, vjp  with c held fixed:  tP = P (ts - sum P ts),  gs = P (go.v - sum P go.v);  q_i of i not in c has no part.
 * NaN: a score that is NaN is not larger than any; once picked or not, it propagates from v, and from q and k of c.
 * Aliasing: none. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kernels/ref/ref.h"

typedef struct {
    const taut_sparse *s;
    int64_t e, h;
    double *p, *t; /* one row of weights, and of their slopes */
} head;

static double *at(const head *g, const taut_real *x, int64_t t, int64_t i)
{
    return (double *)x + ((g->e * t + i) * g->s->heads + g->h) * g->s->dh;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void add(double *y, double a, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

static head head_of(const taut_sparse *s, double *room, int64_t index)
{
    return (head){ s, index / s->heads, index % s->heads, room, room + s->tk };
}

static double *room_of(const taut_sparse *s)
{
    double *room = taut_malloc((size_t)(2 * s->tk + s->tq + 1) * sizeof *room);
    TAUT_CHECK(room, "sparse: no memory for a row");
    return room;
}

/* p = the weights of query i; returns how many keys it sees */
static int64_t look(const head *g, int64_t i, const taut_real *q, const taut_real *k)
{
    const int64_t seen = g->s->causal ? i + 1 : g->s->tk;
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < seen; j++) {
        g->p[j] = g->s->scale * dot(at(g, q, g->s->tq, i), at(g, k, g->s->tk, j), g->s->dh);
        max = isnan(g->p[j]) || g->p[j] > max ? g->p[j] : max;
    }
    for (int64_t j = 0; j < seen; j++) sum += g->p[j] = exp(g->p[j] - max);
    for (int64_t j = 0; j < seen; j++) g->p[j] /= sum;
    return seen;
}

void taut_ref_sparse_pick(taut_real *c_, const taut_real *q, const taut_real *k, const taut_sparse *s)
{
    double *room = room_of(s), *m = room + 2 * s->tk;
    for (int64_t index = 0; index < s->n * s->heads; index++) {
        const head g = head_of(s, room, index);
        double *c = (double *)c_ + index * s->top;
        for (int64_t i = 0; i < s->tq; i++) {
            double max = -INFINITY, sum = 0;
            for (int64_t r = 0; r < s->samples; r++) {
                const int64_t j = (int64_t)taut_rng_below(s->key, (uint64_t)(i * s->samples + r), (uint64_t)s->tk);
                const double score = dot(at(&g, q, s->tq, i), at(&g, k, s->tk, j), s->dh);
                max = score > max ? score : max;
                sum += score;
            }
            m[i] = max - sum / (double)s->tk;
            if (isnan(m[i])) m[i] = -INFINITY;
        }
        for (int64_t i = 0, n = 0; i < s->tq; i++) {
            int64_t rank = 0;
            for (int64_t j = 0; j < s->tq; j++) rank += m[j] > m[i] || (j < i && m[j] == m[i]);
            if (rank < s->top) c[n++] = (double)i;
        }
    }
    free(room);
}

/* o_i of all queries that do not look: the mean of v, or its running sum; also of tangents */
static void spread(const head *g, taut_real *o, const taut_real *v)
{
    const taut_sparse *s = g->s;
    for (int64_t i = 0; i < s->tq; i++) {
        double *oi = at(g, o, s->tq, i);
        memset(oi, 0, (size_t)s->dh * sizeof *oi);
        for (int64_t j = 0; j < (s->causal ? i + 1 : s->tk); j++)
            add(oi, s->causal ? 1 : 1 / (double)s->tk, at(g, v, s->tk, j), s->dh);
    }
}

void taut_ref_sparse(taut_real *o, const taut_real *c, const taut_real *q, const taut_real *k, const taut_real *v,
                     const taut_sparse *s)
{
    double *room = room_of(s);
    for (int64_t index = 0; index < s->n * s->heads; index++) {
        const head g = head_of(s, room, index);
        spread(&g, o, v);
        for (int64_t r = 0; r < s->top; r++) {
            const int64_t i = (int64_t)((const double *)c)[index * s->top + r], seen = look(&g, i, q, k);
            double *oi = at(&g, o, s->tq, i);
            memset(oi, 0, (size_t)s->dh * sizeof *oi);
            for (int64_t j = 0; j < seen; j++) add(oi, g.p[j], at(&g, v, s->tk, j), s->dh);
        }
    }
    free(room);
}

/* t_j = P_j (t_j - sum P t) */
static void softmax_slope(const head *g, int64_t seen)
{
    const double mean = dot(g->p, g->t, seen);
    for (int64_t j = 0; j < seen; j++) g->t[j] = g->p[j] * (g->t[j] - mean);
}

void taut_ref_sparse_jvp(taut_real *to, const taut_real *tq, const taut_real *tk, const taut_real *tv,
                         const taut_real *c, const taut_real *q, const taut_real *k, const taut_real *v,
                         const taut_sparse *s)
{
    double *room = room_of(s);
    for (int64_t index = 0; index < s->n * s->heads; index++) {
        const head g = head_of(s, room, index);
        spread(&g, to, tv);
        for (int64_t r = 0; r < s->top; r++) {
            const int64_t i = (int64_t)((const double *)c)[index * s->top + r], seen = look(&g, i, q, k);
            double *oi = at(&g, to, s->tq, i);
            for (int64_t j = 0; j < seen; j++)
                g.t[j] = s->scale * (dot(at(&g, tq, s->tq, i), at(&g, k, s->tk, j), s->dh) +
                                     dot(at(&g, q, s->tq, i), at(&g, tk, s->tk, j), s->dh));
            softmax_slope(&g, seen);
            memset(oi, 0, (size_t)s->dh * sizeof *oi);
            for (int64_t j = 0; j < seen; j++) {
                add(oi, g.p[j], at(&g, tv, s->tk, j), s->dh);
                add(oi, g.t[j], at(&g, v, s->tk, j), s->dh);
            }
        }
    }
    free(room);
}

/* gv += what the queries that do not look send back */
static void spread_back(const head *g, taut_real *gv, const taut_real *go, const double *c)
{
    const taut_sparse *s = g->s;
    for (int64_t i = 0, r = 0; i < s->tq; i++) {
        if (r < s->top && (int64_t)c[r] == i) {
            r++;
            continue;
        }
        for (int64_t j = 0; j < (s->causal ? i + 1 : s->tk); j++)
            add(at(g, gv, s->tk, j), s->causal ? 1 : 1 / (double)s->tk, at(g, go, s->tq, i), s->dh);
    }
}

void taut_ref_sparse_vjp(taut_real *gq, taut_real *gk, taut_real *gv, const taut_real *go, const taut_real *c,
                         const taut_real *q, const taut_real *k, const taut_real *v, const taut_sparse *s)
{
    const size_t width = (size_t)(s->n * s->heads * s->dh) * sizeof(double);
    double *room = room_of(s);
    memset((void *)gq, 0, width * (size_t)s->tq);
    memset((void *)gk, 0, width * (size_t)s->tk);
    memset((void *)gv, 0, width * (size_t)s->tk);
    for (int64_t index = 0; index < s->n * s->heads; index++) {
        const head g = head_of(s, room, index);
        const double *mine = (const double *)c + index * s->top;
        spread_back(&g, gv, go, mine);
        for (int64_t r = 0; r < s->top; r++) {
            const int64_t i = (int64_t)mine[r], seen = look(&g, i, q, k);
            const double *goi = at(&g, go, s->tq, i);
            for (int64_t j = 0; j < seen; j++) g.t[j] = dot(goi, at(&g, v, s->tk, j), s->dh);
            softmax_slope(&g, seen);
            for (int64_t j = 0; j < seen; j++) {
                add(at(&g, gv, s->tk, j), g.p[j], goi, s->dh);
                add(at(&g, gq, s->tq, i), s->scale * g.t[j], at(&g, k, s->tk, j), s->dh);
                add(at(&g, gk, s->tk, j), s->scale * g.t[j], at(&g, q, s->tq, i), s->dh);
            }
        }
    }
    free(room);
}
