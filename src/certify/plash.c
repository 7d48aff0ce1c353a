/* What the certificates say of PLASH, for each head (dh its width, W_K and W_V its rows of W_Kg and W_Vg):
 *     printed  eps_I + eps_det + sqrt(Nq) Lpost r0 with C_k = sqrt(1 + eta) + 1
 *     mended   eps_I + eps_det + eps_II: the sketch is within r0 of the reference with probability 1 - delta, delta = sum
 *              over k of (3^k - 1) M/(eta^2 D_k), C_k = sqrt(1 + eta) + D_k^((k-1)/2); r0 goes through the mixer as a ball
 *              (certify/mixer.c), then eps_II = sqrt(Nq) r (|q| s ||W_K|| |V_det| + ||W_V||)
 * where r0 = ||W_out|| sqrt(sum over k of beta_k^2 C_k^2 tau_g^-2k), W_out the W_k side by side,
 * with eps_I = sqrt(Nq) (max|q| s rho_K max|v| + rho_V) and clusters by the largest k.p, as the paper has them. */
#include "certify/plash.h"
#include "base/float32.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/deviation.h"
#include "certify/plash_head.h"

typedef struct {
    double *y, *det, *soft, *yq, *u, *kt, *vt, *enh, *enh_det, *kbar, *vbar, *logn, *cluster, *rows, *trace, *scratch,
        *steps; /* of a mixer */
    int32_t *c;
    double *room;
    taut_plan plan;
} work;

static bool work_new(work *w, const taut_plash_head *s)
{
    const int64_t d = s->spec.width, m = s->spec.groups, heads = s->spec.heads, q = s->nq * d, g = m * d;
    const taut_plan front = taut_plan_of(s->front, (taut_shape){ 1, m, 2 * d });
    w->plan = taut_plash_core_plan(s->m, (taut_shape){ 1, s->nq, d });
    if (front.trace > w->plan.trace) w->plan.trace = front.trace;
    if (front.scratch > w->plan.scratch) w->plan.scratch = front.scratch;
    const int64_t steps = s->spec.mixers ? taut_mixer_work(&s->layer[0]) : 0; /* all layers are as large */
    double **const each[] = { &w->y,       &w->det,  &w->soft,    &w->yq,      &w->u,    &w->kt,
                              &w->vt,      &w->enh,  &w->enh_det, &w->kbar,    &w->vbar, &w->logn,
                              &w->cluster, &w->rows, &w->trace,   &w->scratch, &w->steps };
    const int64_t size[] = {
        q,    q, q, q, 2 * g, g, g, g, g, g, g, m * heads, s->nk * heads, s->nq * heads, w->plan.trace, w->plan.scratch,
        steps
    };
    enum { PARTS = sizeof size / sizeof *size };
    int64_t all = 0;
    for (int i = 0; i < PARTS; i++) all += size[i];
    w->room = taut_malloc((size_t)all * sizeof(double));
    w->c = taut_malloc((size_t)(s->nk * heads) * sizeof *w->c);
    if (!w->room || !w->c) return false;
    double *p = w->room;
    for (int i = 0; i < PARTS; i++) *each[i] = p, p += size[i];
    return true;
}

static void work_free(work *w)
{
    free(w->room);
    free(w->c);
}

static taut_tensor tensor(const double *x, int64_t t, int64_t d)
{
    return (taut_tensor){ (taut_real *)x, { 1, t, d } };
}

static void run_core(const taut_plash_head *s, const taut_module *m, double *y, const double *q, const double *k,
                     const double *v, const work *w)
{
    const int64_t d = s->spec.width;
    taut_run run = { .k = s->k, .scratch = { (taut_real *)w->scratch, w->plan.scratch, sizeof(double) } };
    taut_plash_core(m, &run, tensor(y, s->nq, d), tensor(q, s->nq, d), tensor(k, s->nk, d), tensor(v, s->nk, d),
                    (taut_span){ (taut_real *)w->trace, w->plan.trace, sizeof(double) });
}

static void run_front(const taut_plash_head *s, const taut_module *m, double *y, const work *w)
{
    taut_run run = { .k = s->k, .scratch = { (taut_real *)w->scratch, w->plan.scratch, sizeof(double) } };
    const taut_point at = { tensor(w->u, s->spec.groups, 2 * s->spec.width),
                            { (taut_real *)w->trace, w->plan.trace, sizeof(double) } };
    taut_forward(m, &run, tensor(y, s->spec.groups, s->spec.width), at);
}

/* |x - y| of `rows` rows of dh numbers, d apart; y NULL: |x| */
static double apart(const double *x, const double *y, int64_t rows, int64_t dh, int64_t d)
{
    double sum = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r * d; c < r * d + dh; c++) sum += (x[c] - (y ? y[c] : 0)) * (x[c] - (y ? y[c] : 0));
    return sqrt(sum);
}

/* The hard routing of every head: w->c (heads, nk). */
static void choose(const taut_plash_head *s, const work *w, const double *k)
{
    const int64_t d = s->spec.width, dh = d / s->spec.heads;
    for (int64_t h = 0; h < s->spec.heads; h++)
        for (int64_t i = 0; i < s->nk; i++) {
            double best = -INFINITY;
            int32_t *to = &w->c[h * s->nk + i];
            *to = 0;
            for (int64_t j = 0; j < s->spec.groups; j++) {
                double dot = 0;
                for (int64_t e = h * dh; e < (h + 1) * dh; e++) dot += k[i * d + e] * s->prototypes[j * d + e];
                if (dot > best) best = dot, *to = (int32_t)j;
            }
            w->cluster[h * s->nk + i] = *to;
        }
}

/* The reference, the representatives, the hard routing and what attends to its means. */
static void run_reference(const taut_plash_head *s, const work *w, const double *q, const double *k, const double *v)
{
    const int64_t d = s->spec.width, m = s->spec.groups;
    const taut_group g = { 1, s->spec.heads, s->nq, s->nk, m, d / s->spec.heads, taut_float32(1 / s->spec.tau) };
    taut_group readout = g;
    readout.scale = taut_float32(s->spec.scale);
    run_core(s, s->fixed, w->det, q, k, v, w);
    s->k->route((taut_real *)w->kt, (taut_real *)w->vt, (const taut_real *)k, (const taut_real *)v,
                (const taut_real *)s->prototypes, &g);
    for (int64_t j = 0; j < m; j++) {
        memcpy(w->u + 2 * j * d, w->kt + j * d, (size_t)d * sizeof(double));
        memcpy(w->u + (2 * j + 1) * d, w->vt + j * d, (size_t)d * sizeof(double));
    }
    choose(s, w, k);
    s->k->cluster_means((taut_real *)w->kbar, (taut_real *)w->vbar, (taut_real *)w->logn, NULL, (taut_real *)w->cluster,
                        (const taut_real *)k, (const taut_real *)v, &g);
    s->k->clustered((taut_real *)w->yq, (const taut_real *)q, (taut_real *)w->kbar, (taut_real *)w->vbar,
                    (taut_real *)w->logn, NULL, &readout);
}

/* r0, with the lengths that the reference has, or with 1 for them as printed */
static double sketch_radius(const taut_plash_head *s, bool printed)
{
    const taut_plash_spec *p = &s->spec;
    double sum = 0;
    for (int i = 0; i < p->degrees; i++) {
        const double reference = printed ? 1 : pow((double)p->size[i], (p->degree[i] - 1) / 2.0);
        const double one = s->beta[i] * (sqrt(1 + s->eta) + reference) * pow(p->sketch_tau, -p->degree[i]);
        sum += one * one;
    }
    return s->norm_out * sqrt(sum) * (1 + 1e-12);
}

static double failure(const taut_plash_head *s)
{
    const taut_plash_spec *p = &s->spec;
    double delta = 0;
    for (int i = 0; i < p->degrees; i++)
        delta += (pow(3, p->degree[i]) - 1) * (double)p->groups / (s->eta * s->eta * (double)p->size[i]);
    return fmin(1, delta);
}

static double stage1(const taut_plash_head *s, const work *w, const double *k, const double *v, int64_t h, double gq)
{
    const int64_t d = s->spec.width, dh = d / s->spec.heads, at = h * dh;
    double rho_k = 0, rho_v = 0;
    for (int64_t i = 0; i < s->nk; i++) {
        const int64_t mean = w->c[h * s->nk + i] * d + at;
        rho_k = fmax(rho_k, apart(k + i * d + at, w->kbar + mean, 1, dh, d));
        rho_v = fmax(rho_v, apart(v + i * d + at, w->vbar + mean, 1, dh, d));
    }
    return sqrt((double)s->nq) * (gq * rho_k * taut_longest_row(v + at, s->nk, dh, d) + rho_v);
}

/* The paper's two, from what run_reference left. */
static void papers(taut_plash_paper *r, const taut_plash_head *s, const work *w, const double *q, const double *k,
                   const double *v)
{
    const int64_t d = s->spec.width, m = s->spec.groups, dh = d / s->spec.heads;
    const double root = sqrt((double)s->nq), scale = fabs(taut_float32(s->spec.scale));
    run_front(s, s->front, w->enh, w);
    run_front(s, s->front_fixed, w->enh_det, w);
    double slope = 1, ball = sketch_radius(s, false);
    memcpy(w->kt, w->enh_det, (size_t)(m * d) * sizeof(double)); /* kt and vt are free by now */
    for (int i = 0; i < s->spec.mixers; i++) ball = taut_mixer_ball(&s->layer[i], w->kt, ball, w->steps);
    const taut_kernels *ref = s->k;
    ref->gemm((taut_real *)w->vt, (taut_real *)w->kt, (const taut_real *)s->wv, m, d, d, false, true, 1, 0);
    for (int i = 0; i < s->spec.mixers; i++) slope *= taut_mixer_printed(&s->layer[i], w->enh_det, w->enh, w->steps);
    ref->gemm((taut_real *)w->kt, (taut_real *)w->enh, (const taut_real *)s->wv, m, d, d, false, true, 1, 0);
    for (int64_t h = 0; h < s->spec.heads; h++) {
        const int64_t at = h * dh;
        const double gq = taut_longest_row(q + at, s->nq, dh, d) * scale, nk = s->norm_k[h], nv = s->norm_v[h],
                     reference = taut_longest_row(w->vt + at, m, dh, d),
                     values = fmax(reference, taut_longest_row(w->kt + at, m, dh, d));
        r[h] = (taut_plash_paper){ .stage1 = stage1(s, w, k, v, h, gq),
                                   .reference = apart(w->yq + at, w->det + at, s->nq, dh, d),
                                   .mended = root * ball * (gq * nk * reference + nv),
                                   .delta = failure(s),
                                   .printed = root * slope * (gq * nk * values + nv) * sketch_radius(s, true) };
    }
}

taut_status taut_plash_papers(taut_plash_paper *r, const taut_plash_head *s, const double *q, const double *k,
                              const double *v)
{
    work w = { 0 };
    const taut_status status = work_new(&w, s) ? TAUT_OK : taut_no_memory("a PLASH head");
    if (!status) {
        run_reference(s, &w, q, k, v);
        papers(r, s, &w, q, k, v);
    }
    work_free(&w);
    return status;
}

taut_status taut_plash_judge(taut_plash_verdict *r, const taut_plash_head *s, const double *q, const double *k,
                             const double *v)
{
    const int64_t d = s->spec.width, nq = s->nq;
    const double scale = taut_float32(s->spec.scale);
    const taut_attn exact = { .n = 1, .heads = 1, .tq = nq, .tk = s->nk, .dh = d, .scale = scale };
    work w = { 0 };
    taut_deviation_sum sum = { 0 };
    TAUT_CHECK(s->spec.heads == 1, "plash: one head is judged");
    taut_status status = work_new(&w, s) ? TAUT_OK : taut_no_memory("a PLASH head");
    if (!status) {
        s->k->attention((taut_real *)w.soft, (taut_real *)w.rows, (const taut_real *)q, (const taut_real *)k,
                        (const taut_real *)v, &exact);
        run_core(s, s->m, w.y, q, k, v, &w);
        run_reference(s, &w, q, k, v);
        const taut_deviation ours = { nq,
                                      s->nk,
                                      d,
                                      d,
                                      s->spec.groups,
                                      scale,
                                      { q, 8, d },
                                      { k, 8, d },
                                      { v, 8, d },
                                      { w.y, 8, d },
                                      w.c,
                                      TAUT_DEVIATION_AUDIT,
                                      false };
        status = up_deviation(&ours, NULL, NULL, &sum);
    }
    if (!status) {
        *r = (taut_plash_verdict){ .soft = apart(w.soft, NULL, nq, d, d),
                                   .plash = apart(w.y, NULL, nq, d, d),
                                   .truth = apart(w.soft, w.y, nq, d, d),
                                   .hull = sum.hull.v,
                                   .ours = sum.all.v,
                                   .attention = sum.attention.v,
                                   .exact2 = apart(w.y, w.det, nq, d, d) };
        papers(&r->paper, s, &w, q, k, v);
    }
    work_free(&w);
    return status;
}
