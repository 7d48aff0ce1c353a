/* A head of PLASH in the setting of the paper's figure 4, and what the certificates say of it.
 *     printed  eps_I + eps_det + sqrt(Nq) Lpost r0 with C_k = sqrt(1 + eta) + 1
 *     mended   eps_I + eps_det + eps_II: the sketch is within r0 of the reference with probability 1 - delta, delta = sum
 *              over k of (3^k - 1) M/(eta^2 D_k), C_k = sqrt(1 + eta) + D_k^((k-1)/2); r0 goes through the mixer as a ball
 *              (certify/mixer.c), then eps_II = sqrt(Nq) r (|q| s ||W_K|| |V_det| + ||W_V||)
 * where r0 = ||W_out|| sqrt(sum over k of beta_k^2 C_k^2 tau_g^-2k), W_out the W_k side by side,
 * with eps_I = sqrt(Nq) (max|q| s rho_K max|v| + rho_V) and clusters by the largest k.p, as the paper has them. */
#include "certify/plash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bound/deviation.h"
#include "bound/norm.h"
#include "certify/mixer.h"

enum { LAYERS = 8 };

struct taut_plash_head {
    taut_plash_case c;
    const taut_kernels *k;
    taut_module *m, *fixed, *sketch, *sketch_fixed;
    double *weights;
    int64_t used;
    taut_mixer_layer layer[LAYERS];
    const double *prototypes, *wout[TAUT_SKETCH_DEGREES], *beta, *wk, *wv;
    double nout, nk, nv;
};

static void count(taut_param *p, const char *path, void *arg)
{
    (void)path;
    *(int64_t *)arg += p->rows * p->cols;
}

/* Weights are drawn when the first module is bound; the second meets the same ones in the same order. */
typedef struct {
    taut_plash_head *s;
    int64_t at;
    bool draw;
} binding;

static void note(taut_plash_head *s, const char *path, const double *w)
{
    if (strcmp(path, "prototypes") == 0) s->prototypes = w;
    int degree = 0;
    if (sscanf(path, "middle.sketch.degree%d.weight", &degree) == 1)
        for (int i = 0; i < s->c.degrees; i++)
            if (s->c.degree[i] == degree) s->wout[i] = w;
    if (strcmp(path, "middle.sketch.beta") == 0) s->beta = w;
    if (strcmp(path, "kg.weight") == 0) s->wk = w;
    if (strcmp(path, "vg.weight") == 0) s->wv = w;
    int layer = 0, at = 0;
    if (sscanf(path, "middle.mixer%d.%n", &layer, &at) != 1 || layer >= LAYERS) return;
    taut_mixer_layer *l = &s->layer[layer];
    const struct {
        const char *name;
        const double **to;
    } all[] = { { "attn.q.weight", &l->wq }, { "attn.k.weight", &l->wk }, { "attn.v.weight", &l->wv },
                { "attn.o.weight", &l->wo }, { "norm1.weight", &l->g1 },  { "norm1.bias", &l->be1 },
                { "mlp.in.weight", &l->w1 }, { "mlp.in.bias", &l->b1 },   { "mlp.out.weight", &l->w2 },
                { "mlp.out.bias", &l->b2 },  { "norm2.weight", &l->g2 },  { "norm2.bias", &l->be2 } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(path + at, all[i].name) == 0) *all[i].to = w;
}

static void bind_weight(taut_param *p, const char *path, void *arg)
{
    binding *b = arg;
    const taut_plash_case *c = &b->s->c;
    double *w = b->s->weights + b->at;
    const int64_t len = p->rows * p->cols;
    p->value = (taut_real *)w;
    b->at += len;
    if (!b->draw) return;
    note(b->s, path, w);
    const double range = c->xavier ? sqrt(6.0 / (double)(p->rows + p->cols)) : 1 / sqrt((double)p->cols);
    const uint64_t key = taut_rng_key(c->seed, TAUT_RNG_INIT, (uint64_t)(b->at - len));
    for (int64_t i = 0; i < len; i++) {
        if (p->init == TAUT_INIT_ONE || p->init == TAUT_INIT_ZERO)
            w[i] = p->init == TAUT_INIT_ONE;
        else if (p->role == TAUT_TABLE)
            w[i] = taut_rng_normal(key, (uint64_t)i) * p->gain;
        else
            w[i] = range * (2 * taut_rng_unit(key, (uint64_t)i) - 1);
    }
}

static void bind_sketch(taut_param *p, const char *path, void *arg)
{
    const taut_plash_head *s = arg;
    int degree = 0;
    if (strcmp(path, "beta") == 0) p->value = (taut_real *)s->beta;
    if (sscanf(path, "degree%d.weight", &degree) != 1) return;
    for (int i = 0; i < s->c.degrees; i++)
        if (s->c.degree[i] == degree) p->value = (taut_real *)s->wout[i];
}

static taut_module *build(const taut_plash_case *c, bool fixed)
{
    taut_plash_spec spec = { .width = c->width,
                             .heads = 1,
                             .groups = c->groups,
                             .tau = c->tau,
                             .degrees = c->degrees,
                             .floor = c->floor,
                             .sketch_tau = c->tau_g,
                             .seed = c->seed,
                             .fixed = fixed,
                             .mixers = c->mixers,
                             .mixer_heads = c->mixer_heads,
                             .hidden = c->hidden,
                             .norm_eps = c->norm_eps,
                             .scale = 1 / sqrt((double)c->width),
                             .out = 1,
                             .init = TAUT_INIT_NORMAL,
                             .gain = 1,
                             .out_gain = 1 };
    memcpy(spec.degree, c->degree, sizeof spec.degree);
    memcpy(spec.size, c->size, sizeof spec.size);
    return taut_plash(&spec);
}

static taut_module *build_sketch(const taut_plash_case *c, bool fixed)
{
    taut_sketch_spec spec = { .in = 2 * c->width,
                              .out = c->width,
                              .degrees = c->degrees,
                              .floor = c->floor,
                              .tau = c->tau_g,
                              .seed = c->seed,
                              .fixed = fixed,
                              .init = TAUT_INIT_NORMAL,
                              .gain = 1 };
    memcpy(spec.degree, c->degree, sizeof spec.degree);
    memcpy(spec.size, c->size, sizeof spec.size);
    return taut_sketch(&spec);
}

/* ||[W_1 .. W_K]||, +inf without memory */
static double norm_out(const taut_plash_head *s)
{
    int64_t all = 0, at = 0;
    for (int i = 0; i < s->c.degrees; i++) all += s->c.size[i];
    double *w = taut_malloc((size_t)(s->c.width * all + 1) * sizeof *w);
    for (int i = 0; w && i < s->c.degrees; at += s->c.size[i++])
        for (int64_t r = 0; r < s->c.width; r++)
            memcpy(w + r * all + at, s->wout[i] + r * s->c.size[i], (size_t)s->c.size[i] * sizeof *w);
    const double norm = w ? up_norm(w, s->c.width, all).v : INFINITY;
    free(w);
    return norm;
}

taut_status taut_plash_head_new(taut_plash_head **out, const taut_plash_case *c)
{
    taut_plash_head *s = taut_calloc(1, sizeof *s);
    if (!s) return taut_no_memory("a PLASH head");
    s->c = *c;
    s->k = taut_kernels_find("ref");
    s->m = build(c, false);
    s->fixed = build(c, true);
    s->sketch = build_sketch(c, false);
    s->sketch_fixed = build_sketch(c, true);
    int64_t len = 0;
    if (s->m) taut_params(s->m, count, &len);
    s->weights = taut_malloc((size_t)(len + 1) * sizeof *s->weights);
    if (!s->m || !s->fixed || !s->sketch || !s->sketch_fixed || !s->weights || c->mixers > LAYERS) {
        taut_plash_head_free(s);
        return taut_no_memory("a PLASH head");
    }
    taut_params(s->m, bind_weight, &(binding){ s, 0, true });
    taut_params(s->fixed, bind_weight, &(binding){ s, 0, false });
    taut_params(s->sketch, bind_sketch, s);
    taut_params(s->sketch_fixed, bind_sketch, s);
    for (int i = 0; i < c->mixers; i++) {
        taut_mixer_layer *l = &s->layer[i];
        l->groups = c->groups, l->width = c->width, l->heads = c->mixer_heads, l->hidden = c->hidden;
        l->eps = (double)(float)c->norm_eps;
        taut_mixer_norms(l);
    }
    s->nout = norm_out(s);
    s->nk = up_norm(s->wk, c->width, c->width).v;
    s->nv = up_norm(s->wv, c->width, c->width).v;
    *out = s;
    return TAUT_OK;
}

void taut_plash_head_free(taut_plash_head *s)
{
    if (!s) return;
    taut_module_free(s->m);
    taut_module_free(s->fixed);
    taut_module_free(s->sketch);
    taut_module_free(s->sketch_fixed);
    free(s->weights);
    free(s);
}

typedef struct {
    double *y, *det, *soft, *yq, *u, *kt, *vt, *enh, *enh_det, *kbar, *vbar, *logn, *cluster, *rows, *trace, *scratch;
    int32_t *c;
    double *room;
    taut_plan plan;
} work;

static bool work_new(work *w, const taut_plash_head *s)
{
    const taut_plash_case *c = &s->c;
    const int64_t d = c->width, m = c->groups, q = c->nq * d, g = m * d;
    const taut_plan sketch = taut_plan_of(s->sketch, (taut_shape){ 1, m, 2 * d });
    w->plan = taut_plash_core_plan(s->m, (taut_shape){ 1, c->nq, d });
    if (sketch.trace > w->plan.trace) w->plan.trace = sketch.trace;
    if (sketch.scratch > w->plan.scratch) w->plan.scratch = sketch.scratch;
    double **const each[] = {
        &w->y,       &w->det,  &w->soft, &w->yq,   &w->u,       &w->kt,   &w->vt,    &w->enh,
        &w->enh_det, &w->kbar, &w->vbar, &w->logn, &w->cluster, &w->rows, &w->trace, &w->scratch
    };
    const int64_t size[] = { q, q, q, q, 2 * g, g, g, g, g, g, g, m, c->nk, c->nq, w->plan.trace, w->plan.scratch };
    int64_t all = 0;
    for (int i = 0; i < 16; i++) all += size[i];
    w->room = taut_malloc((size_t)all * sizeof(double));
    w->c = taut_malloc((size_t)c->nk * sizeof *w->c);
    if (!w->room || !w->c) return false;
    double *p = w->room;
    for (int i = 0; i < 16; i++) *each[i] = p, p += size[i];
    return true;
}

static taut_tensor tensor(const double *x, int64_t t, int64_t d)
{
    return (taut_tensor){ (taut_real *)x, { 1, t, d } };
}

static void run_core(const taut_plash_head *s, const taut_module *m, double *y, const double *q, const double *k,
                     const double *v, const work *w)
{
    const int64_t d = s->c.width;
    taut_run run = { .k = s->k, .scratch = { (taut_real *)w->scratch, w->plan.scratch, sizeof(double) } };
    taut_plash_core(m, &run, tensor(y, s->c.nq, d), tensor(q, s->c.nq, d), tensor(k, s->c.nk, d), tensor(v, s->c.nk, d),
                    (taut_span){ (taut_real *)w->trace, w->plan.trace, sizeof(double) });
}

static void run_sketch(const taut_plash_head *s, const taut_module *m, double *y, const work *w)
{
    taut_run run = { .k = s->k, .scratch = { (taut_real *)w->scratch, w->plan.scratch, sizeof(double) } };
    const taut_point at = { tensor(w->u, s->c.groups, 2 * s->c.width),
                            { (taut_real *)w->trace, w->plan.trace, sizeof(double) } };
    taut_forward(m, &run, tensor(y, s->c.groups, s->c.width), at);
}

static double apart(const double *x, const double *y, int64_t len)
{
    double sum = 0;
    for (int64_t i = 0; i < len; i++) sum += (x[i] - (y ? y[i] : 0)) * (x[i] - (y ? y[i] : 0));
    return sqrt(sum);
}

/* Exact attention, PLASH and its reference, the hard routing and what attends to its means. */
static void run_all(const taut_plash_head *s, const work *w, const double *q, const double *k, const double *v)
{
    const taut_plash_case *c = &s->c;
    const int64_t d = c->width, m = c->groups;
    const double scale = (double)(float)(1 / sqrt((double)d));
    const taut_attn exact = { .n = 1, .heads = 1, .tq = c->nq, .tk = c->nk, .dh = d, .scale = scale };
    const taut_group g = { 1, 1, c->nq, c->nk, m, d, (double)(float)(1 / c->tau), NULL };
    taut_group readout = g;
    readout.scale = scale;
    s->k->attention((taut_real *)w->soft, (taut_real *)w->rows, (const taut_real *)q, (const taut_real *)k,
                    (const taut_real *)v, &exact);
    run_core(s, s->m, w->y, q, k, v, w);
    run_core(s, s->fixed, w->det, q, k, v, w);
    s->k->route((taut_real *)w->kt, (taut_real *)w->vt, (const taut_real *)k, (const taut_real *)v,
                (const taut_real *)s->prototypes, &g);
    for (int64_t j = 0; j < m; j++) {
        memcpy(w->u + 2 * j * d, w->kt + j * d, (size_t)d * sizeof(double));
        memcpy(w->u + (2 * j + 1) * d, w->vt + j * d, (size_t)d * sizeof(double));
    }
    for (int64_t i = 0; i < c->nk; i++) {
        double best = -INFINITY;
        for (int64_t j = 0; j < m; j++) {
            double dot = 0;
            for (int64_t e = 0; e < d; e++) dot += k[i * d + e] * s->prototypes[j * d + e];
            if (dot > best) best = dot, w->c[i] = (int32_t)j;
        }
        w->cluster[i] = w->c[i];
    }
    s->k->cluster_means((taut_real *)w->kbar, (taut_real *)w->vbar, (taut_real *)w->logn, NULL, (taut_real *)w->cluster,
                        (const taut_real *)k, (const taut_real *)v, &g);
    s->k->clustered((taut_real *)w->yq, (const taut_real *)q, (taut_real *)w->kbar, (taut_real *)w->vbar,
                    (taut_real *)w->logn, NULL, &readout);
}

/* r0, with the lengths that the reference has, or with 1 for them as printed */
static double sketch_radius(const taut_plash_head *s, bool printed)
{
    const taut_plash_case *c = &s->c;
    double sum = 0;
    for (int i = 0; i < c->degrees; i++) {
        const double reference = printed ? 1 : pow((double)c->size[i], (c->degree[i] - 1) / 2.0);
        const double one = s->beta[i] * (sqrt(1 + c->eta) + reference) * pow(c->tau_g, -c->degree[i]);
        sum += one * one;
    }
    return s->nout * sqrt(sum) * (1 + 1e-12);
}

static double failure(const taut_plash_case *c)
{
    double delta = 0;
    for (int i = 0; i < c->degrees; i++)
        delta += (pow(3, c->degree[i]) - 1) * (double)c->groups / (c->eta * c->eta * (double)c->size[i]);
    return fmin(1, delta);
}

/* The paper's two: eps_I and what the sketch's error becomes. */
static void papers(taut_plash_verdict *r, const taut_plash_head *s, const work *w, const double *q, const double *k,
                   const double *v)
{
    const taut_plash_case *c = &s->c;
    const int64_t d = c->width, m = c->groups;
    const double root = sqrt((double)c->nq), gq = taut_longest_row(q, c->nq, d, d) / sqrt((double)d);
    double rho_k = 0, rho_v = 0;
    for (int64_t i = 0; i < c->nk; i++) {
        rho_k = fmax(rho_k, apart(k + i * d, w->kbar + w->c[i] * d, d));
        rho_v = fmax(rho_v, apart(v + i * d, w->vbar + w->c[i] * d, d));
    }
    r->stage1 = root * (gq * rho_k * taut_longest_row(v, c->nk, d, d) + rho_v);
    r->reference = apart(w->yq, w->det, c->nq * d);
    run_sketch(s, s->sketch, w->enh, w);
    run_sketch(s, s->sketch_fixed, w->enh_det, w);
    double slope = 1, ball = sketch_radius(s, false);
    memcpy(w->kt, w->enh_det, (size_t)(m * d) * sizeof(double)); /* kt and vt are free by now */
    for (int i = 0; i < c->mixers; i++) ball = taut_mixer_ball(&s->layer[i], w->kt, ball);
    const taut_kernels *ref = s->k;
    ref->gemm((taut_real *)w->vt, (taut_real *)w->kt, (const taut_real *)s->wv, m, d, d, false, true, 1, 0);
    r->mended = root * ball * (gq * s->nk * taut_longest_row(w->vt, m, d, d) + s->nv);
    r->delta = failure(c);
    for (int i = 0; i < c->mixers; i++) slope *= taut_mixer_printed(&s->layer[i], w->enh_det, w->enh);
    ref->gemm((taut_real *)w->kt, (taut_real *)w->enh, (const taut_real *)s->wv, m, d, d, false, true, 1, 0);
    const double values = fmax(taut_longest_row(w->vt, m, d, d), taut_longest_row(w->kt, m, d, d));
    r->printed = root * slope * (gq * s->nk * values + s->nv) * sketch_radius(s, true);
}

taut_status taut_plash_judge(taut_plash_verdict *r, const taut_plash_head *s, const double *q, const double *k,
                             const double *v)
{
    const taut_plash_case *c = &s->c;
    const int64_t d = c->width, len = c->nq * d;
    work w = { 0 };
    taut_deviation_sum sum = { 0 };
    taut_status status = work_new(&w, s) ? TAUT_OK : taut_no_memory("a PLASH head");
    if (!status) {
        run_all(s, &w, q, k, v);
        const taut_deviation ours = { c->nq,       c->nk,
                                      d,           d,
                                      c->groups,   (double)(float)(1 / sqrt((double)d)),
                                      { q, 8, d }, { k, 8, d },
                                      { v, 8, d }, { w.y, 8, d },
                                      w.c,         TAUT_DEVIATION_AUDIT,
                                      false };
        status = up_deviation(&ours, NULL, NULL, &sum);
    }
    if (!status) {
        *r = (taut_plash_verdict){ .soft = apart(w.soft, NULL, len),
                                   .plash = apart(w.y, NULL, len),
                                   .truth = apart(w.soft, w.y, len),
                                   .hull = sum.hull.v,
                                   .ours = sum.all.v,
                                   .attention = sum.attention.v,
                                   .exact2 = apart(w.y, w.det, len) };
        papers(r, s, &w, q, k, v);
    }
    free(w.room);
    free(w.c);
    return status;
}
