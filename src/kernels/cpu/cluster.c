/* Nearest centres and means over clusters (formulas: ref/cluster.c).
 *
 * Distances in tiles of keys, as k.centre - |centre|^2/2 in float; sums over a cluster in double, a head is
 * one thread's.
 * NaN       a key that holds one belongs to centre 0.  Aliasing: none.
 * Error     nearest: the one chosen has |k - centre|^2 within 4 (dh + 4) u (|k| + max|centre|)^2 of the
 *           least, u = 2^-24; means, cross and their slopes: 2 u of the result plus (t + 8) 2^-52 of the sizes
 *           of what is added up, slopes of keys and values dh of these; logn: 2 u. */
#include "kernels/cpu/group.h"

/* |centre|^2/2 of a head's groups */
static void halves(float *half, const taut_real *centre, const taut_group *g, int64_t e, int64_t h)
{
    for (int64_t j = 0; j < g->m; j++) {
        const float *x = group_at(centre, g, g->m, e, h, j);
        double sum = 0;
        for (int64_t d = 0; d < g->dh; d++) sum += (double)x[d] * (double)x[d];
        half[j] = (float)(sum / 2);
    }
}

/* The first of the largest s - half; 0 where none is above -inf.  s is spoilt. */
static int64_t first_largest(float *restrict s, const float *restrict half, int64_t m)
{
    float best = -INFINITY;
    int32_t at = INT32_MAX;
#pragma omp simd reduction(max : best)
    for (int64_t j = 0; j < m; j++) {
        s[j] -= half[j];
        best = s[j] > best ? s[j] : best;
    }
#pragma omp simd reduction(min : at)
    for (int32_t j = 0; j < (int32_t)m; j++) {
        const int32_t here = s[j] == best ? j : INT32_MAX;
        at = here < at ? here : at;
    }
    return best > -INFINITY ? at : 0;
}

void CPU(nearest)(taut_real *c_, const taut_real *k, const taut_real *centre, const taut_group *g)
{
    const int64_t tiles = (g->t + GROUP_TILE - 1) / GROUP_TILE, tasks = g->n * g->heads * tiles;
#pragma omp parallel if (tasks > 1)
    {
        float *s = group_room((GROUP_TILE + 1) * g->m, sizeof *s), *half = s + GROUP_TILE * g->m;
        int64_t known = -1; /* the head that half belongs to */
#pragma omp for schedule(static)
        for (int64_t task = 0; task < tasks; task++) {
            const int64_t head = task / tiles, e = head / g->heads, h = head % g->heads, i = task % tiles * GROUP_TILE;
            const int64_t rows = cpu_min(GROUP_TILE, g->t - i);
            float *c = (float *)c_ + head * g->t + i;
            if (head != known) halves(half, centre, g, e, h);
            known = head;
            group_scores(s, group_at(k, g, g->t, e, h, i), group_at(centre, g, g->m, e, h, 0), rows, 1, 0, g);
            for (int64_t r = 0; r < rows; r++) c[r] = (float)first_largest(s + r * g->m, half, g->m);
        }
        free(s);
    }
}

typedef struct {
    const float *c;
    double *count, *kbar, *vbar, *more, *cross; /* m, (m, dh) three times, (m, dh, dh) */
    int64_t e, h;
} head;

static head head_of(const taut_group *g, const taut_real *c, double *room, int64_t index)
{
    const int64_t size = g->m * g->dh;
    head s = { (const float *)c + index * g->t,
               room,
               room + g->m,
               room + g->m + size,
               room + g->m + 2 * size,
               room + g->m + 4 * size,
               index / g->heads,
               index % g->heads };
    memset(s.count, 0, (size_t)g->m * sizeof(double));
    for (int64_t i = 0; i < g->t; i++) s.count[(int64_t)s.c[i]]++;
    return s;
}

static double *head_room(const taut_group *g)
{
    return group_room(g->m + 4 * g->m * g->dh + g->m * g->dh * g->dh, sizeof(double));
}

/* mean (m, dh) in double, and rounded into y (may be NULL) */
static void mean_of(double *mean, taut_real *y, const taut_real *x, const head *s, const taut_group *g)
{
    memset(mean, 0, (size_t)(g->m * g->dh) * sizeof *mean);
    for (int64_t i = 0; i < g->t; i++) {
        const float *xi = group_at(x, g, g->t, s->e, s->h, i);
        double *to = mean + (int64_t)s->c[i] * g->dh;
#pragma omp simd
        for (int64_t d = 0; d < g->dh; d++) to[d] += (double)xi[d];
    }
    for (int64_t j = 0; j < g->m; j++)
        for (int64_t d = 0; d < g->dh; d++) {
            if (s->count[j] > 0) mean[j * g->dh + d] /= s->count[j];
            if (y) group_at(y, g, g->m, s->e, s->h, j)[d] = (float)mean[j * g->dh + d];
        }
}

/* cross_j += mean of (x - xbar)(y - ybar)^T */
static void cross_add(const head *s, const taut_real *x, const double *xbar, const taut_real *y, const double *ybar,
                      const taut_group *g)
{
    const int64_t dh = g->dh;
    for (int64_t i = 0; i < g->t; i++) {
        const int64_t j = (int64_t)s->c[i];
        const float *xi = group_at(x, g, g->t, s->e, s->h, i), *yi = group_at(y, g, g->t, s->e, s->h, i);
        for (int64_t a = 0; a < dh; a++) {
            const double left = ((double)xi[a] - xbar[j * dh + a]) / s->count[j];
            double *to = s->cross + (j * dh + a) * dh;
#pragma omp simd
            for (int64_t b = 0; b < dh; b++) to[b] += left * ((double)yi[b] - ybar[j * dh + b]);
        }
    }
}

static void cross_put(taut_real *cross, const head *s, const taut_group *g)
{
    const int64_t len = g->m * g->dh * g->dh;
    float *to = (float *)cross + (s->e * g->heads + s->h) * len;
    for (int64_t i = 0; i < len; i++) to[i] = (float)s->cross[i];
}

void CPU(cluster_means)(taut_real *kbar, taut_real *vbar, taut_real *logn, taut_real *cross, const taut_real *c,
                        const taut_real *k, const taut_real *v, const taut_group *g)
{
#pragma omp parallel for schedule(static)
    for (int64_t index = 0; index < g->n * g->heads; index++) {
        double *room = head_room(g), all = 0;
        const head s = head_of(g, c, room, index);
        float *ln = (float *)logn + index * g->m;
        mean_of(s.kbar, kbar, k, &s, g);
        mean_of(s.vbar, vbar, v, &s, g);
        for (int64_t j = 0; j < g->m; j++) ln[j] = (float)log(s.count[j]), all += s.count[j];
        if (all == 0) ln[0] = 0;
        if (cross) {
            cross_add(&s, k, s.kbar, v, s.vbar, g);
            cross_put(cross, &s, g);
        }
        free(room);
    }
}

void CPU(cluster_means_jvp)(taut_real *tkbar, taut_real *tvbar, taut_real *tcross, const taut_real *tk,
                            const taut_real *tv, const taut_real *c, const taut_real *k, const taut_real *v,
                            const taut_group *g)
{
#pragma omp parallel for schedule(static)
    for (int64_t index = 0; index < g->n * g->heads; index++) {
        double *room = head_room(g);
        const head s = head_of(g, c, room, index);
        double *tkb = s.more, *tvb = s.more + g->m * g->dh;
        mean_of(tkb, tkbar, tk, &s, g);
        mean_of(tvb, tvbar, tv, &s, g);
        if (tcross) {
            mean_of(s.kbar, NULL, k, &s, g);
            mean_of(s.vbar, NULL, v, &s, g);
            cross_add(&s, tk, tkb, v, s.vbar, g);
            cross_add(&s, k, s.kbar, tv, tvb, g);
            cross_put(tcross, &s, g);
        }
        free(room);
    }
}

/* gk_i, gv_i of one key, the cluster's cotangents at hand */
static void key_back(float *gk, float *gv, const float *gkbar, const float *gvbar, const float *gcross, const float *k,
                     const float *v, const double *kbar, const double *vbar, double count, int64_t dh)
{
    for (int64_t a = 0; a < dh; a++) {
        double gka = gkbar[a], gva = gvbar[a];
        for (int64_t b = 0; b < dh && gcross; b++) {
            gka += (double)gcross[a * dh + b] * ((double)v[b] - vbar[b]);
            gva += (double)gcross[b * dh + a] * ((double)k[b] - kbar[b]);
        }
        gk[a] = (float)(gka / count);
        gv[a] = (float)(gva / count);
    }
}

void CPU(cluster_means_vjp)(taut_real *gk, taut_real *gv, const taut_real *gkbar, const taut_real *gvbar,
                            const taut_real *gcross, const taut_real *c, const taut_real *k, const taut_real *v,
                            const taut_group *g)
{
    const int64_t dh = g->dh;
    memset((void *)gk, 0, (size_t)(g->n * g->t * g->heads * dh) * sizeof(float));
    memset((void *)gv, 0, (size_t)(g->n * g->t * g->heads * dh) * sizeof(float));
#pragma omp parallel for schedule(static)
    for (int64_t index = 0; index < g->n * g->heads; index++) {
        double *room = head_room(g);
        const head s = head_of(g, c, room, index);
        mean_of(s.kbar, NULL, k, &s, g);
        mean_of(s.vbar, NULL, v, &s, g);
        for (int64_t i = 0; i < g->t; i++) {
            const int64_t j = (int64_t)s.c[i];
            key_back(group_at(gk, g, g->t, s.e, s.h, i), group_at(gv, g, g->t, s.e, s.h, i),
                     group_at(gkbar, g, g->m, s.e, s.h, j), group_at(gvbar, g, g->m, s.e, s.h, j),
                     gcross ? (const float *)gcross + (index * g->m + j) * dh * dh : NULL,
                     group_at(k, g, g->t, s.e, s.h, i), group_at(v, g, g->t, s.e, s.h, i), s.kbar + j * dh,
                     s.vbar + j * dh, s.count[j], dh);
        }
        free(room);
    }
}
