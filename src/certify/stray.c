/* Per head, q, k, v and the output o before W_O are read where forward left them, on whatever kernels the model has; floats are
 * doubles exactly.  Ours compares with clusters: those of clustered attention itself, and for PLASH the nearest of M centres by
 * k-center and eight steps of Lloyd (any choice holds).  Truth: softmax in long double.  A NaN anywhere makes bounds +inf and
 * the truth NaN, which beats nothing. */
#include "certify/stray.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/centres.h"
#include "bound/deviation.h"

enum { DEEP = 32, LLOYD = 8 };

typedef struct {
    const taut_pass *pass;
    double eta;
    const char *name[DEEP]; /* from the root down */
    taut_stray *list;
    int count;
    taut_status status;
} tour;

/* One layer's numbers, (tokens, width) each. */
typedef struct {
    taut_gathered g;
    double *q, *k, *v, *o, *cluster;
    double *centre, *keys, *far, *bound; /* of one head: (groups, dh), (keys, dh); of each query */
    int32_t *c;
} layer;

static void layer_free(layer *l)
{
    free(l->q);
    free(l->c);
}

static taut_status layer_read(layer *l, const taut_kernels *k)
{
    const taut_gathered *g = &l->g;
    const int64_t nq = g->q.shape.t, nk = g->k.shape.t, d = g->q.shape.d, dh = d / g->heads;
    const int64_t size[] = { nq * d, nk * d, nk * d, nq * d, g->heads * nk, g->groups * dh, nk * dh, nq, nq };
    double **const each[] = { &l->q, &l->k, &l->v, &l->o, &l->cluster, &l->centre, &l->keys, &l->far, &l->bound };
    int64_t all = 1;
    for (int i = 0; i < 9; i++) all += size[i];
    double *at = taut_malloc((size_t)all * sizeof *at);
    l->c = taut_malloc((size_t)(nk + 1) * sizeof *l->c);
    for (int i = 0; i < 9 && at; at += size[i++]) *each[i] = at;
    if (!at || !l->c) return taut_no_memory("a layer's queries, keys and values");
    k->get(l->q, g->q.data, nq * d);
    k->get(l->k, g->k.data, nk * d);
    k->get(l->v, g->v.data, nk * d);
    k->get(l->o, g->o.data, nq * d);
    if (g->cluster) k->get(l->cluster, g->cluster, g->heads * nk);
    return k->read(NULL, NULL, 0);
}

/* |Y_soft - o| of query i of the head whose columns start at `at`; |Y_soft|^2 is added to *soft. */
static double stray_of(const layer *l, int64_t i, int64_t at, long double *p, double *soft)
{
    const int64_t nk = l->g.k.shape.t, d = l->g.q.shape.d, dh = d / l->g.heads;
    long double most = -INFINITY, sum = 0, far = 0, size = 0;
    for (int64_t j = 0; j < nk; j++) {
        p[j] = 0;
        for (int64_t c = at; c < at + dh; c++) p[j] += (long double)l->q[i * d + c] * (long double)l->k[j * d + c];
        p[j] *= (long double)l->g.scale;
        if (p[j] > most) most = p[j];
    }
    for (int64_t j = 0; j < nk; j++) sum += p[j] = expl(p[j] - most);
    for (int64_t c = at; c < at + dh; c++) {
        long double y = 0;
        for (int64_t j = 0; j < nk; j++) y += p[j] * (long double)l->v[j * d + c];
        y /= sum;
        size += y * y;
        far += (y - (long double)l->o[i * d + c]) * (y - (long double)l->o[i * d + c]);
    }
    *soft = (double)size;
    return (double)sqrtl(far);
}

/* l->far, and the Frobenius norms over all queries. */
static taut_status truth_of(taut_stray *r, const layer *l, int64_t at)
{
    const int64_t nq = r->queries;
    double *soft = l->bound; /* free until a bound is asked for */
    bool whole = true;
#pragma omp parallel for schedule(static) reduction(&& : whole)
    for (int64_t i = 0; i < nq; i++) {
        long double *p = taut_malloc((size_t)(r->keys + 1) * sizeof *p);
        if (p) l->far[i] = stray_of(l, i, at, p, &soft[i]);
        whole = p != NULL && whole;
        free(p);
    }
    double far2 = 0, soft2 = 0;
    for (int64_t i = 0; whole && i < nq; i++) far2 += l->far[i] * l->far[i], soft2 += soft[i];
    r->truth = sqrt(far2);
    r->soft = sqrt(soft2);
    return whole ? TAUT_OK : taut_no_memory("softmax attention");
}

/* l->c: which cluster each key is compared in. */
static taut_status choose(const layer *l, int64_t h)
{
    const int64_t nk = l->g.k.shape.t, d = l->g.q.shape.d, dh = d / l->g.heads, m = l->g.groups;
    for (int64_t i = 0; l->g.cluster && i < nk; i++) l->c[i] = (int32_t)l->cluster[h * nk + i];
    if (l->g.cluster) return TAUT_OK;
    for (int64_t i = 0; i < nk; i++) memcpy(l->keys + i * dh, l->k + i * d + h * dh, (size_t)dh * sizeof *l->keys);
    const taut_status s = est_centres(l->centre, l->keys, nk, dh, m, LLOYD);
    for (int64_t i = 0; !s && i < nk; i++) {
        double best = INFINITY;
        l->c[i] = 0;
        for (int64_t j = 0; j < m; j++) {
            double far = 0;
            for (int64_t c = 0; c < dh; c++) {
                const double e = l->keys[i * dh + c] - l->centre[j * dh + c];
                far += e * e;
            }
            if (far < best) best = far, l->c[i] = (int32_t)j;
        }
    }
    return s;
}

static taut_status prove(taut_stray *r, const layer *l, int64_t at, taut_deviation_mode mode)
{
    const int64_t d = l->g.q.shape.d, dh = d / l->g.heads;
    const bool audit = mode == TAUT_DEVIATION_AUDIT;
    const taut_deviation ask = { .nq = r->queries,
                                 .nk = r->keys,
                                 .dk = dh,
                                 .dv = dh,
                                 .groups = l->g.groups,
                                 .scale = l->g.scale,
                                 .q = { l->q + at, 8, d },
                                 .k = { l->k + at, 8, d },
                                 .v = { l->v + at, 8, d },
                                 .y = { l->o + at, 8, d },
                                 .cluster = l->c,
                                 .mode = mode,
                                 .first = audit && l->g.first };
    taut_deviation_sum sum = { 0 };
    const taut_status s = up_deviation(&ask, l->bound, NULL, &sum);
    if (s) return s;
    if (audit)
        r->audit = sum.all;
    else
        r->fast = sum.all;
    r->hull = sum.hull;
    for (int64_t i = 0; i < r->queries; i++) r->beaten += l->far[i] > l->bound[i];
    r->beaten += r->truth > sum.all.v * (1 + 1e-12) || r->truth > sum.hull.v * (1 + 1e-12);
    return TAUT_OK;
}

static taut_status papers(taut_stray *r, const tour *t, const taut_module *m, const layer *l)
{
    const taut_gathered *g = &l->g;
    taut_plash_head *head = NULL;
    taut_plash_paper *paper = taut_calloc((size_t)g->heads, sizeof *paper);
    taut_status s = paper ? taut_plash_head_of(&head, m, g->plash, t->pass->m->k, r->queries, r->keys, t->eta)
                          : taut_no_memory("the paper's certificate");
    if (!s) s = taut_plash_papers(paper, head, l->q, l->k, l->v);
    for (int64_t h = 0; !s && h < g->heads; h++) r[h].papers = true, r[h].paper = paper[h];
    taut_plash_head_free(head);
    free(paper);
    return s;
}

static taut_status judge(taut_stray *r, const tour *t, const taut_module *m, layer *l)
{
    const int64_t dh = l->g.q.shape.d / l->g.heads;
    taut_status s = layer_read(l, t->pass->m->k);
    for (int64_t h = 0; !s && h < l->g.heads; h++) {
        r[h].plash = l->g.plash != NULL;
        r[h].head = h;
        r[h].queries = l->g.q.shape.t;
        r[h].keys = l->g.k.shape.t;
        r[h].groups = l->g.groups;
        s = truth_of(&r[h], l, h * dh);
        if (!s) s = choose(l, h);
        if (!s) s = prove(&r[h], l, h * dh, TAUT_DEVIATION_FAST);
        if (!s) s = prove(&r[h], l, h * dh, TAUT_DEVIATION_AUDIT);
    }
    return !s && l->g.plash && taut_plash_comparable(l->g.plash) ? papers(r, t, m, l) : s;
}

static void see(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    tour *t = arg;
    layer l = { 0 };
    TAUT_CHECK(depth < DEEP, "stray: a tree this deep");
    t->name[depth] = name;
    if (t->status || !(taut_plash_look(&l.g, m, at) || taut_clustered_look(&l.g, m, at))) return;
    taut_stray *more = taut_realloc(t->list, (size_t)(t->count + l.g.heads) * sizeof *more);
    if (!more) {
        t->status = taut_no_memory("how far heads stray");
        return;
    }
    t->list = more;
    taut_stray *now = t->list + t->count;
    t->count += (int)l.g.heads;
    memset(now, 0, (size_t)l.g.heads * sizeof *now);
    for (int64_t h = 0; h < l.g.heads; h++)
        for (int i = 0, len = 0; i <= depth; i++)
            if (t->name[i][0] && len < (int)sizeof now->path)
                len += snprintf(now[h].path + len, sizeof now->path - (size_t)len, "%s%s", len ? "." : "", t->name[i]);
    t->status = judge(now, t, m, &l);
    layer_free(&l);
}

taut_status taut_strays_read(taut_stray **list, int *count, const taut_pass *pass, double eta)
{
    tour t = { .pass = pass, .eta = eta };
    taut_tour_parts(pass->m->root, (taut_point){ pass->x, pass->trace }, see, &t);
    if (t.status) {
        free(t.list);
        t.list = NULL, t.count = 0;
    }
    *list = t.list;
    *count = t.count;
    return t.status;
}

static double join(double a, double b) { return sqrt(a * a + b * b); }

void taut_stray_join(taut_stray *all, const taut_stray *more)
{
    taut_plash_paper *p = &all->paper;
    all->soft = join(all->soft, more->soft);
    all->truth = join(all->truth, more->truth);
    all->fast = up_hypot(all->fast, more->fast);
    all->audit = up_hypot(all->audit, more->audit);
    all->hull = up_hypot(all->hull, more->hull);
    all->beaten += more->beaten;
    p->stage1 = join(p->stage1, more->paper.stage1);
    p->reference = join(p->reference, more->paper.reference);
    p->mended = join(p->mended, more->paper.mended);
    p->printed = join(p->printed, more->paper.printed);
    p->delta = fmin(1, p->delta + more->paper.delta);
}
