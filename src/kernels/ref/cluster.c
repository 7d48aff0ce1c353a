/* Clusters of keys: which centre is nearest, and the means over a cluster.
 *     c_i    = the j with the least |k_i - centre_j|, the first of equals
 *     kbar_j = mean of k, vbar_j = mean of v, logn_j = ln count, cross_j = mean of (k - kbar)(v - vbar)^T
 *     jvp    means of tk and tv;  tcross = mean of (tk - tkbar)(v - vbar)^T + (k - kbar)(tv - tvbar)^T
 *     vjp    gk_i = (gkbar + gcross (v_i - vbar)) / count,  gv_i = (gvbar + gcross^T (k_i - kbar)) / count
 * The assignment c is a constant in both.  An empty cluster has means 0 and logn -inf; when there is no key at
 * all, cluster 0 has logn 0.  NaN: a key that holds one is nearest to centre 0.  Aliasing: none. */
#include "kernels/ref/group.h"

void taut_ref_nearest(taut_real *c, const taut_real *k, const taut_real *centre, const taut_group *g)
{
    for (int64_t e = 0; e < g->n; e++)
        for (int64_t h = 0; h < g->heads; h++)
            for (int64_t i = 0; i < g->t; i++) {
                double best = INFINITY, at = 0;
                for (int64_t j = 0; j < g->m; j++) {
                    const double *a = group_at(k, g, g->t, e, h, i), *b = group_at(centre, g, g->m, e, h, j);
                    double far = 0;
                    for (int64_t d = 0; d < g->dh; d++) far += (a[d] - b[d]) * (a[d] - b[d]);
                    if (far < best) best = far, at = (double)j;
                }
                ((double *)c)[(e * g->heads + h) * g->t + i] = at;
            }
}

typedef struct {
    const double *c;
    double *count; /* m */
    int64_t e, h;
} head;

static head head_of(const taut_group *g, const taut_real *c, double *count, int64_t e, int64_t h)
{
    head s = { (const double *)c + (e * g->heads + h) * g->t, count, e, h };
    for (int64_t j = 0; j < g->m; j++) count[j] = 0;
    for (int64_t i = 0; i < g->t; i++) count[(int64_t)s.c[i]]++;
    return s;
}

/* mean (n, m, heads*dh) of x over the clusters of one head */
static void mean_of(taut_real *mean, const taut_real *x, const head *s, const taut_group *g)
{
    for (int64_t j = 0; j < g->m; j++)
        memset(group_at(mean, g, g->m, s->e, s->h, j), 0, (size_t)g->dh * sizeof(double));
    for (int64_t i = 0; i < g->t; i++)
        if (s->c[i] >= 0)
            group_add(group_at(mean, g, g->m, s->e, s->h, (int64_t)s->c[i]), 1, group_at(x, g, g->t, s->e, s->h, i),
                      g->dh);
    for (int64_t j = 0; j < g->m; j++)
        for (int64_t d = 0; d < g->dh; d++)
            if (s->count[j] > 0) group_at(mean, g, g->m, s->e, s->h, j)[d] /= s->count[j];
}

/* cross_j += mean of (x - xbar)(y - ybar)^T */
static void cross_add(double *cross, const taut_real *x, const taut_real *xbar, const taut_real *y,
                      const taut_real *ybar, const head *s, const taut_group *g)
{
    for (int64_t i = 0; i < g->t; i++) {
        const int64_t j = (int64_t)s->c[i];
        const double *xi = group_at(x, g, g->t, s->e, s->h, i), *xb = group_at(xbar, g, g->m, s->e, s->h, j);
        const double *yi = group_at(y, g, g->t, s->e, s->h, i), *yb = group_at(ybar, g, g->m, s->e, s->h, j);
        for (int64_t a = 0; a < g->dh; a++)
            for (int64_t b = 0; b < g->dh; b++)
                cross[(j * g->dh + a) * g->dh + b] += (xi[a] - xb[a]) * (yi[b] - yb[b]) / s->count[j];
    }
}

static double *cross_at(const taut_real *cross, const taut_group *g, int64_t e, int64_t h)
{
    return (double *)cross + (e * g->heads + h) * g->m * g->dh * g->dh;
}

void taut_ref_cluster_means(taut_real *kbar, taut_real *vbar, taut_real *logn, taut_real *cross, const taut_real *c,
                            const taut_real *k, const taut_real *v, const taut_group *g)
{
    double *count = group_room(g->m);
    if (cross) group_clear(cross, g->n * g->heads * g->m * g->dh * g->dh);
    for (int64_t e = 0; e < g->n; e++)
        for (int64_t h = 0; h < g->heads; h++) {
            const head s = head_of(g, c, count, e, h);
            double *ln = (double *)logn + (e * g->heads + h) * g->m, all = 0;
            mean_of(kbar, k, &s, g);
            mean_of(vbar, v, &s, g);
            for (int64_t j = 0; j < g->m; j++) ln[j] = log(count[j]), all += count[j];
            if (all == 0) ln[0] = 0;
            if (cross) cross_add(cross_at(cross, g, e, h), k, kbar, v, vbar, &s, g);
        }
    free(count);
}

void taut_ref_cluster_means_jvp(taut_real *tkbar, taut_real *tvbar, taut_real *tcross, const taut_real *tk,
                                const taut_real *tv, const taut_real *c, const taut_real *k, const taut_real *v,
                                const taut_group *g)
{
    const int64_t means = g->n * g->m * g->heads * g->dh;
    double *count = group_room(g->m + 2 * means);
    taut_real *kbar = (taut_real *)(count + g->m), *vbar = (taut_real *)(count + g->m + means);
    if (tcross) group_clear(tcross, g->n * g->heads * g->m * g->dh * g->dh);
    for (int64_t e = 0; e < g->n; e++)
        for (int64_t h = 0; h < g->heads; h++) {
            const head s = head_of(g, c, count, e, h);
            mean_of(tkbar, tk, &s, g);
            mean_of(tvbar, tv, &s, g);
            if (!tcross) continue;
            mean_of(kbar, k, &s, g);
            mean_of(vbar, v, &s, g);
            cross_add(cross_at(tcross, g, e, h), tk, tkbar, v, vbar, &s, g);
            cross_add(cross_at(tcross, g, e, h), k, kbar, tv, tvbar, &s, g);
        }
    free(count);
}

void taut_ref_cluster_means_vjp(taut_real *gk, taut_real *gv, const taut_real *gkbar, const taut_real *gvbar,
                                const taut_real *gcross, const taut_real *c, const taut_real *k, const taut_real *v,
                                const taut_group *g)
{
    const int64_t means = g->n * g->m * g->heads * g->dh;
    double *count = group_room(g->m + 2 * means);
    taut_real *kbar = (taut_real *)(count + g->m), *vbar = (taut_real *)(count + g->m + means);
    group_clear(gk, g->n * g->t * g->heads * g->dh);
    group_clear(gv, g->n * g->t * g->heads * g->dh);
    for (int64_t e = 0; e < g->n; e++)
        for (int64_t h = 0; h < g->heads; h++) {
            const head s = head_of(g, c, count, e, h);
            mean_of(kbar, k, &s, g);
            mean_of(vbar, v, &s, g);
            for (int64_t i = 0; i < g->t; i++) {
                const int64_t j = (int64_t)s.c[i], dh = g->dh;
                double *gki = group_at(gk, g, g->t, e, h, i), *gvi = group_at(gv, g, g->t, e, h, i);
                group_add(gki, 1 / count[j], group_at(gkbar, g, g->m, e, h, j), dh);
                group_add(gvi, 1 / count[j], group_at(gvbar, g, g->m, e, h, j), dh);
                for (int64_t a = 0; a < dh && gcross; a++)
                    for (int64_t b = 0; b < dh; b++) {
                        const double x = cross_at(gcross, g, e, h)[(j * dh + a) * dh + b] / count[j];
                        gki[a] += x * (group_at(v, g, g->t, e, h, i)[b] - group_at(vbar, g, g->m, e, h, j)[b]);
                        gvi[b] += x * (group_at(k, g, g->t, e, h, i)[a] - group_at(kbar, g, g->m, e, h, j)[a]);
                    }
            }
        }
    free(count);
}
