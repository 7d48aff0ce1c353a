/* Soft routing to prototypes (formulas: ref/route.c) in tiles of keys: of the t x m weights only a tile lives.
 *
 * The keys of a head are cut into at most CHUNKS pieces, borders from t alone; a piece is one thread's, and
 * pieces are added up in order.  A tile's sums are float, tiles are added in double.
 * NaN       in a key: all of its head.  Aliasing: none.
 * Error     with u = 2^-24 and E = (dh + 4) u scale max|k|.|p| the worst error of a logit, f = 6 E + (m + dh +
 *           400) u times the sum of the sizes of what is added up. */
#include "kernels/cpu/group.h"

enum { CHUNKS = 8 };

typedef struct {
    int64_t len, count; /* keys of a piece, pieces of a head */
} cut;

static cut cut_of(int64_t t)
{
    const int64_t len = (t + CHUNKS - 1) / CHUNKS, tiles = (len + GROUP_TILE - 1) / GROUP_TILE;
    const int64_t piece = (tiles > 0 ? tiles : 1) * GROUP_TILE;
    return (cut){ piece, (t + piece - 1) / piece };
}

static void add_to(double *sum, const float *x, int64_t len)
{
#pragma omp simd
    for (int64_t i = 0; i < len; i++) sum[i] += (double)x[i];
}

/* y_j (n, m, heads*dh) = or += the pieces of a head, added up in order */
static void gather_pieces(float *y, const double *sum, int64_t pieces, int64_t step, bool more, const taut_group *g)
{
    for (int64_t j = 0; j < g->m; j++)
        for (int64_t c = 0; c < g->dh; c++) {
            double all = more ? (double)y[j * group_width(g) + c] : 0;
            for (int64_t p = 0; p < pieces; p++) all += sum[p * step + j * g->dh + c];
            y[j * group_width(g) + c] = (float)all;
        }
}

typedef struct {
    float *a, *t, *part; /* (tile, m) twice, (m, dh) */
} tile;

static tile tile_new(const taut_group *g)
{
    float *room = group_room(2 * GROUP_TILE * g->m + g->m * g->dh, sizeof *room);
    return (tile){ room, room + GROUP_TILE * g->m, room + 2 * GROUP_TILE * g->m };
}

/* sum (m, dh) += a^T x, and with t also t^T z */
static void collect(double *sum, const tile *w, const float *x, const float *z, int64_t rows, const taut_group *g)
{
    group_collect(w->part, g->dh, w->a, x, rows, 1, 0, g);
    if (z) group_collect(w->part, g->dh, w->t, z, rows, 1, 1, g);
    add_to(sum, w->part, g->m * g->dh);
}

/* route and its jvp (where tk is given) */
static void route_all(taut_real *kt, taut_real *vt, const taut_real *tk, const taut_real *tv, const taut_real *k,
                      const taut_real *v, const taut_real *p, const taut_group *g)
{
    const cut by = cut_of(g->t);
    const int64_t size = g->m * g->dh, tasks = g->n * g->heads * by.count;
    double *sum = group_room(2 * tasks * size, sizeof *sum);
#pragma omp parallel if (tasks > 1)
    {
        const tile w = tile_new(g);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const int64_t h = task / by.count % g->heads, e = task / by.count / g->heads;
            const int64_t from = task % by.count * by.len, end = cpu_min(from + by.len, g->t);
            const float *proto = group_at(p, g, g->m, 0, h, 0);
            for (int64_t i = from; i < end; i += GROUP_TILE) {
                const int64_t rows = cpu_min(GROUP_TILE, end - i);
                const float *ki = group_at(k, g, g->t, e, h, i), *vi = group_at(v, g, g->t, e, h, i);
                const float *tki = tk ? group_at(tk, g, g->t, e, h, i) : NULL;
                group_scores(w.a, ki, proto, rows, g->scale, 0, g);
                group_softmax(w.a, rows, g->m);
                if (tk) group_scores(w.t, tki, proto, rows, g->scale, 0, g);
                if (tk) group_softmax_slope(w.t, w.a, rows, g->m);
                collect(sum + 2 * task * size, &w, tk ? tki : ki, tk ? ki : NULL, rows, g);
                collect(sum + (2 * task + 1) * size, &w, tk ? group_at(tv, g, g->t, e, h, i) : vi, tk ? vi : NULL, rows,
                        g);
            }
        }
        free(w.a);
    }
    for (int64_t head = 0; head < g->n * g->heads; head++) {
        const int64_t e = head / g->heads, h = head % g->heads;
        const double *from = sum + 2 * head * by.count * size;
        gather_pieces(group_at(kt, g, g->m, e, h, 0), from, by.count, 2 * size, false, g);
        gather_pieces(group_at(vt, g, g->m, e, h, 0), from + size, by.count, 2 * size, false, g);
    }
    free(sum);
}

void CPU(route)(taut_real *kt, taut_real *vt, const taut_real *k, const taut_real *v, const taut_real *p,
                const taut_group *g)
{
    route_all(kt, vt, NULL, NULL, k, v, p, g);
}

void CPU(route_jvp)(taut_real *tkt, taut_real *tvt, const taut_real *tk, const taut_real *tv, const taut_real *k,
                    const taut_real *v, const taut_real *p, const taut_group *g)
{
    route_all(tkt, tvt, tk, tv, k, v, p, g);
}

void CPU(route_vjp)(taut_real *gk, taut_real *gv, taut_real *gp, const taut_real *gkt, const taut_real *gvt,
                    const taut_real *k, const taut_real *v, const taut_real *p, const taut_group *g)
{
    const cut by = cut_of(g->t);
    const int64_t size = g->m * g->dh, tasks = g->n * g->heads * by.count, width = group_width(g);
    double *sum = gp ? group_room(tasks * size, sizeof *sum) : NULL;
    memset((void *)gk, 0, (size_t)(g->n * g->t * width) * sizeof(float));
    memset((void *)gv, 0, (size_t)(g->n * g->t * width) * sizeof(float));
#pragma omp parallel if (tasks > 1)
    {
        const tile w = tile_new(g);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) { /* pieces of one head first, then heads, then examples */
            const int64_t h = task / by.count % g->heads, e = task / by.count / g->heads;
            const int64_t from = task % by.count * by.len, end = cpu_min(from + by.len, g->t);
            const float *proto = group_at(p, g, g->m, 0, h, 0);
            const float *gkj = group_at(gkt, g, g->m, e, h, 0), *gvj = group_at(gvt, g, g->m, e, h, 0);
            for (int64_t i = from; i < end; i += GROUP_TILE) {
                const int64_t rows = cpu_min(GROUP_TILE, end - i);
                const float *ki = group_at(k, g, g->t, e, h, i), *vi = group_at(v, g, g->t, e, h, i);
                group_scores(w.a, ki, proto, rows, g->scale, 0, g);
                group_softmax(w.a, rows, g->m);
                group_scores(w.t, ki, gkj, rows, 1, 0, g);
                group_scores(w.t, vi, gvj, rows, 1, 1, g);
                group_softmax_slope(w.t, w.a, rows, g->m);
                group_gather(group_at(gk, g, g->t, e, h, i), width, w.a, gkj, rows, 1, 0, g);
                group_gather(group_at(gk, g, g->t, e, h, i), width, w.t, proto, rows, g->scale, 1, g);
                group_gather(group_at(gv, g, g->t, e, h, i), width, w.a, gvj, rows, 1, 0, g);
                if (!gp) continue;
                group_collect(w.part, g->dh, w.t, ki, rows, g->scale, 0, g);
                add_to(sum + task * size, w.part, size);
            }
        }
        free(w.a);
    }
    for (int64_t e = 0; gp && e < g->n; e++)
        for (int64_t h = 0; h < g->heads; h++)
            gather_pieces(group_at(gp, g, g->m, 0, h, 0), sum + (e * g->heads + h) * by.count * size, by.count, size,
                          true, g);
    free(sum);
}
