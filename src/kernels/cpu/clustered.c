/* Softmax attention to clusters (formulas: ref/clustered.c) in tiles of queries: of the tq x m weights only a
 * tile lives.  The first-order term is m products of a tile with a dh x dh matrix.
 *
 * forward and jvp: a tile is one thread's; vjp: a head is, tiles in order.
 * NaN: in a query stays in its row, in a mean reaches its head.  Aliasing: none.
 * Error     with u = 2^-24 and E = (dh + 8) u (scale |q|.|kbar| + |logn|) the worst error of a logit: f = 6 E +
 *           (m + 2 dh + 400) u times the sum of the sizes of what is added up; sums over queries tq/128 u more. */
#include "kernels/cpu/group.h"

typedef struct {
    const taut_group *g;
    int64_t e, h;
    const float *kbar, *vbar, *logn, *cross; /* of this head */
    float *w, *t, *part;                     /* (tile, m) twice, (tile, dh) */
} head;

static head head_of(const taut_group *g, const taut_real *kbar, const taut_real *vbar, const taut_real *logn,
                    const taut_real *cross, float *room, int64_t index)
{
    const int64_t e = index / g->heads, h = index % g->heads;
    return (head){ .g = g,
                   .e = e,
                   .h = h,
                   .kbar = group_at(kbar, g, g->m, e, h, 0),
                   .vbar = group_at(vbar, g, g->m, e, h, 0),
                   .logn = (const float *)logn + index * g->m,
                   .cross = cross ? (const float *)cross + index * g->m * g->dh * g->dh : NULL,
                   .w = room,
                   .t = room + GROUP_TILE * g->m,
                   .part = room + 2 * GROUP_TILE * g->m };
}

static float *head_room(const taut_group *g)
{
    return group_room(2 * GROUP_TILE * g->m + 2 * GROUP_TILE * g->dh, sizeof(float));
}

/* w (rows, m) of a tile of queries */
static void look(const head *s, const float *q, int64_t rows)
{
    const int64_t m = s->g->m;
    group_scores(s->w, q, s->kbar, rows, s->g->scale, 0, s->g);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < m; j++) s->w[r * m + j] += s->logn[j];
    group_softmax(s->w, rows, m);
}

/* part (rows, dh) = x cross_j, or with `back` x cross_j^T, times scale */
static void times_cross(const head *s, const float *x, const float *cross, int64_t j, int64_t rows, bool back)
{
    const int dh = (int)s->g->dh, width = (int)group_width(s->g);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, back ? CblasTrans : CblasNoTrans, (int)rows, dh, dh, (float)s->g->scale, x,
                width, cross + j * dh * dh, dh, 0, s->part, dh);
}

/* y += sum over j of w_j (x cross_j) */
static void add_cross(const head *s, float *y, const float *x, const float *cross, int64_t rows, bool back)
{
    const int64_t dh = s->g->dh, m = s->g->m, width = group_width(s->g);
    for (int64_t j = 0; j < m && cross; j++) {
        times_cross(s, x, cross, j, rows, back);
        for (int64_t r = 0; r < rows; r++) {
            const float w = s->w[r * m + j];
#pragma omp simd
            for (int64_t c = 0; c < dh; c++) y[r * width + c] += w * s->part[r * dh + c];
        }
    }
}

/* t_rj += go_r.(x cross_j)_r */
static void dot_cross(const head *s, const float *go, const float *x, int64_t rows)
{
    const int64_t dh = s->g->dh, m = s->g->m, width = group_width(s->g);
    for (int64_t j = 0; j < m && s->cross; j++) {
        times_cross(s, x, s->cross, j, rows, false);
        for (int64_t r = 0; r < rows; r++) {
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t c = 0; c < dh; c++) sum += s->part[r * dh + c] * go[r * width + c];
            s->t[r * m + j] += sum;
        }
    }
}

void CPU(clustered)(taut_real *o, const taut_real *q, const taut_real *kbar, const taut_real *vbar,
                    const taut_real *logn, const taut_real *cross, const taut_group *g)
{
    const int64_t tiles = (g->tq + GROUP_TILE - 1) / GROUP_TILE, tasks = g->n * g->heads * tiles;
#pragma omp parallel if (tasks > 1)
    {
        float *room = head_room(g);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const head s = head_of(g, kbar, vbar, logn, cross, room, task / tiles);
            const int64_t i = task % tiles * GROUP_TILE, rows = cpu_min(GROUP_TILE, g->tq - i);
            const float *qi = group_at(q, g, g->tq, s.e, s.h, i);
            float *oi = group_at(o, g, g->tq, s.e, s.h, i);
            look(&s, qi, rows);
            group_gather(oi, group_width(g), s.w, s.vbar, rows, 1, 0, g);
            add_cross(&s, oi, qi, s.cross, rows, false);
        }
        free(room);
    }
}

/* to += sum_j w_j tl_j (y_j - o): y_j - o has the mean 0, so tl may be centred first, and then sum_j of
 * w_j (tl_j - mean) y_j needs no o */
void CPU(clustered_jvp)(taut_real *to, const taut_real *tq, const taut_real *tkbar, const taut_real *tvbar,
                        const taut_real *tcross, const taut_real *q, const taut_real *kbar, const taut_real *vbar,
                        const taut_real *logn, const taut_real *cross, const taut_group *g)
{
    const int64_t tiles = (g->tq + GROUP_TILE - 1) / GROUP_TILE, tasks = g->n * g->heads * tiles,
                  width = group_width(g);
#pragma omp parallel if (tasks > 1)
    {
        float *room = head_room(g);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            head s = head_of(g, kbar, vbar, logn, cross, room, task / tiles);
            const int64_t i = task % tiles * GROUP_TILE, rows = cpu_min(GROUP_TILE, g->tq - i);
            const float *qi = group_at(q, g, g->tq, s.e, s.h, i), *tqi = group_at(tq, g, g->tq, s.e, s.h, i);
            float *toi = group_at(to, g, g->tq, s.e, s.h, i);
            look(&s, qi, rows);
            group_scores(s.t, tqi, s.kbar, rows, g->scale, 0, g);
            group_scores(s.t, qi, group_at(tkbar, g, g->m, s.e, s.h, 0), rows, g->scale, 1, g);
            group_softmax_slope(s.t, s.w, rows, g->m);
            group_gather(toi, width, s.w, group_at(tvbar, g, g->m, s.e, s.h, 0), rows, 1, 0, g);
            group_gather(toi, width, s.t, s.vbar, rows, 1, 1, g);
            if (!cross) continue;
            add_cross(&s, toi, qi, (const float *)tcross + task / tiles * g->m * g->dh * g->dh, rows, false);
            add_cross(&s, toi, tqi, s.cross, rows, false);
            float *w = s.w;
            s.w = s.t; /* sum_j w_j (tl_j - mean) cross_j^T q */
            add_cross(&s, toi, qi, s.cross, rows, false);
            s.w = w;
        }
        free(room);
    }
}

/* gcross_j += scale (w_j q)^T go over a tile */
static void cross_back(const head *s, float *gcross, const float *q, const float *go, int64_t rows)
{
    const int64_t dh = s->g->dh, m = s->g->m, width = group_width(s->g);
    for (int64_t j = 0; j < m; j++) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < dh; c++) s->part[r * dh + c] = s->w[r * m + j] * q[r * width + c];
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)dh, (int)dh, (int)rows, (float)s->g->scale, s->part,
                    (int)dh, go, (int)width, 1, gcross + j * dh * dh, (int)dh);
    }
}

void CPU(clustered_vjp)(taut_real *gq, taut_real *gkbar, taut_real *gvbar, taut_real *gcross, const taut_real *go,
                        const taut_real *q, const taut_real *kbar, const taut_real *vbar, const taut_real *logn,
                        const taut_real *cross, const taut_group *g)
{
    const int64_t width = group_width(g), square = g->m * g->dh * g->dh;
    memset((void *)gkbar, 0, (size_t)(g->n * g->m * width) * sizeof(float));
    memset((void *)gvbar, 0, (size_t)(g->n * g->m * width) * sizeof(float));
    if (cross) memset((void *)gcross, 0, (size_t)(g->n * g->heads * square) * sizeof(float));
#pragma omp parallel for schedule(static)
    for (int64_t index = 0; index < g->n * g->heads; index++) {
        float *room = head_room(g);
        const head s = head_of(g, kbar, vbar, logn, cross, room, index);
        for (int64_t i = 0; i < g->tq; i += GROUP_TILE) {
            const int64_t rows = cpu_min(GROUP_TILE, g->tq - i);
            const float *qi = group_at(q, g, g->tq, s.e, s.h, i), *goi = group_at(go, g, g->tq, s.e, s.h, i);
            float *gqi = group_at(gq, g, g->tq, s.e, s.h, i);
            look(&s, qi, rows);
            group_scores(s.t, goi, s.vbar, rows, 1, 0, g);
            dot_cross(&s, goi, qi, rows);
            group_softmax_slope(s.t, s.w, rows, g->m);
            group_gather(gqi, width, s.t, s.kbar, rows, g->scale, 0, g);
            add_cross(&s, gqi, goi, s.cross, rows, true);
            group_collect(group_at(gkbar, g, g->m, s.e, s.h, 0), width, s.t, qi, rows, g->scale, 1, g);
            group_collect(group_at(gvbar, g, g->m, s.e, s.h, 0), width, s.w, goi, rows, 1, 1, g);
            if (cross) cross_back(&s, (float *)gcross + index * square, qi, goi, rows);
        }
        free(room);
    }
}
