#include "bench/race_plash.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/float32.h"
#include "base/rng.h"
#include "base/status.h"
#include "bench/bench.h"
#include "bench/timing.h"
#include "bound/deviation.h"
#include "module/modules.h"

typedef struct {
    const taut_kernels *k;
    taut_module *m;
    taut_real *weights, *q, *key, *v, *o, *c, *centre, *lse, *trace, *scratch;
    int32_t *cluster; /* heads x n */
    taut_plan plan;
    taut_shape shape;
    const race_plan *p;
    double deviation;
} scene;

static void count_weight(taut_param *p, const char *path, void *arg)
{
    (void)path;
    *(int64_t *)arg += p->rows * p->cols;
}

typedef struct {
    scene *s;
    int64_t at;
} binding;

static void random_fill(const taut_kernels *k, taut_real *x, int64_t len, double size, uint64_t key)
{
    double *y = taut_malloc((size_t)len * sizeof *y);
    for (int64_t i = 0; y && i < len; i++) y[i] = size * taut_rng_normal(key, (uint64_t)i);
    if (y) k->put(x, y, len);
    free(y);
}

static void bind_weight(taut_param *p, const char *path, void *arg)
{
    binding *b = arg;
    (void)path;
    p->value = taut_at(b->s->k, b->s->weights, b->at);
    const double one = 1;
    for (int64_t i = 0; i < p->cols && p->init == TAUT_INIT_ONE; i++)
        b->s->k->put(taut_at(b->s->k, p->value, i), &one, 1);
    if (p->init != TAUT_INIT_ONE && p->init != TAUT_INIT_ZERO)
        random_fill(b->s->k, p->value, p->rows * p->cols, 1 / sqrt((double)p->cols),
                    taut_rng_key(1, 1, (uint64_t)b->at));
    b->at += p->rows * p->cols;
}

static bool scene_memory(scene *s)
{
    const taut_kernels *k = s->k;
    const int64_t len = taut_len(s->shape), n = s->shape.t;
    int64_t weights = 0;
    taut_params(s->m, count_weight, &weights);
    s->plan = taut_plash_core_plan(s->m, s->shape);
    taut_real **const each[] = { &s->weights, &s->q,      &s->key, &s->v,     &s->o,
                                 &s->c,       &s->centre, &s->lse, &s->trace, &s->scratch };
    const int64_t size[] = {
        weights,        len, len, len, len, RACE_HEADS * n, s->p->groups * RACE_WIDTH, RACE_HEADS * n, s->plan.trace,
        s->plan.scratch
    };
    s->cluster = taut_malloc((size_t)(RACE_HEADS * n) * sizeof *s->cluster);
    bool whole = s->cluster != NULL;
    for (int i = 0; i < 10; i++) whole = (*each[i] = taut_reals(k, size[i])) && whole;
    return whole;
}

static bool scene_new(scene *s, const taut_kernels *k, const race_plan *p)
{
    *s = (scene){ .k = k, .p = p, .shape = { 1, p->n, RACE_WIDTH } };
    s->m = taut_plash(&(taut_plash_spec){ .width = RACE_WIDTH,
                                          .heads = RACE_HEADS,
                                          .groups = p->groups,
                                          .tau = 1,
                                          .degrees = 2,
                                          .degree = { 1, 2 },
                                          .size = { p->size, p->size },
                                          .floor = 1e-6,
                                          .sketch_tau = 1,
                                          .mixers = 1,
                                          .hidden = 2 * RACE_WIDTH,
                                          .norm_eps = 1e-5,
                                          .scale = 1 / sqrt((double)RACE_WIDTH / RACE_HEADS),
                                          .out = 1,
                                          .init = TAUT_INIT_NORMAL,
                                          .gain = 1,
                                          .out_gain = 1 });
    if (!s->m || !scene_memory(s) || taut_module_place(s->m, s->k)) return false;
    taut_params(s->m, bind_weight, &(binding){ s, 0 });
    random_fill(s->k, s->q, taut_len(s->shape), 1, 11);
    random_fill(s->k, s->key, taut_len(s->shape), 1, 12);
    random_fill(s->k, s->v, taut_len(s->shape), 1, 13);
    /* the comparator's centres: keys spread evenly */
    for (int64_t j = 0; j < p->groups; j++)
        s->k->copy_rows(taut_at(s->k, s->centre, j * RACE_WIDTH), RACE_WIDTH,
                        taut_at(s->k, s->key, j * p->n / p->groups * RACE_WIDTH), RACE_WIDTH, 1, RACE_WIDTH);
    return true;
}

static void scene_free(scene *s)
{
    taut_real *const each[] = { s->weights, s->q, s->key, s->v, s->o, s->c, s->centre, s->lse, s->trace, s->scratch };
    for (int i = 0; i < 10; i++)
        if (each[i]) s->k->release(each[i]);
    free(s->cluster);
    taut_module_free(s->m);
}

static void run_plash(scene *s)
{
    taut_run run = { .k = s->k, .scratch = { s->scratch, s->plan.scratch, s->k->elem } };
    const taut_span trace = { s->trace, s->plan.trace, s->k->elem };
    taut_plash_core(s->m, &run, (taut_tensor){ s->o, s->shape }, (taut_tensor){ s->q, s->shape },
                    (taut_tensor){ s->key, s->shape }, (taut_tensor){ s->v, s->shape }, trace);
}

static void run_exact(scene *s)
{
    const taut_attn a = { .n = 1,
                          .heads = RACE_HEADS,
                          .tq = s->shape.t,
                          .tk = s->shape.t,
                          .dh = RACE_WIDTH / RACE_HEADS,
                          .scale = 1 / sqrt((double)RACE_WIDTH / RACE_HEADS) };
    s->k->attention(s->o, s->lse, s->q, s->key, s->v, &a);
}

/* Clusters by the nearest of the centres, then the fast bound of every head. */
static bool run_certificate(scene *s)
{
    const int64_t n = s->shape.t, dh = RACE_WIDTH / RACE_HEADS;
    const taut_group g = { 1, RACE_HEADS, n, n, s->p->groups, dh, 1 };
    s->k->nearest(s->c, s->key, s->centre, &g);
    for (int64_t i = 0; i < RACE_HEADS * n; i++) s->cluster[i] = (int32_t)((const float *)s->c)[i];
    double square = 0;
    bool whole = true;
#pragma omp parallel for reduction(&& : whole) schedule(static, 1)
    for (int64_t h = 0; h < RACE_HEADS; h++) {
        taut_real *const x[] = { s->q, s->key, s->v, s->o };
        taut_table t[4];
        for (int i = 0; i < 4; i++) t[i] = (taut_table){ taut_at(s->k, x[i], h * dh), s->k->elem, RACE_WIDTH };
        const taut_deviation c = { n,    n,    dh,   dh,   s->p->groups,       taut_float32(1 / sqrt((double)dh)),
                                   t[0], t[1], t[2], t[3], s->cluster + h * n, false,
                                   false };
        taut_deviation_sum sum = { 0 };
        whole = up_deviation(&c, NULL, NULL, &sum) == TAUT_OK && whole;
#pragma omp critical
        square += sum.all.v * sum.all.v;
    }
    s->deviation = sqrt(square);
    return whole;
}

static race_time quartiles(double *x, int n)
{
    if (n == 0) return (race_time){ NAN, NAN, NAN };
    return (race_time){ bench_quantile(x, n, 0.25), bench_quantile(x, n, 0.5), bench_quantile(x, n, 0.75) };
}

static double timed(scene *s, void (*what)(scene *))
{
    const double start = bench_now();
    what(s);
    (void)s->k->read(NULL, NULL, 0); /* a failure is met again by whoever reads numbers */
    return bench_now() - start;
}

enum { ROUNDS = 101 };

bool race_plash(race_result *r, const taut_kernels *k, const race_plan *p)
{
    scene s;
    double plash[ROUNDS], exact[ROUNDS], proof[ROUNDS];
    *r = (race_result){ .plash_peak = NAN, .exact_peak = NAN, .deviation = NAN };
    mallopt(M_MMAP_THRESHOLD, 1 << 16); /* what is freed goes back, so that the peaks are those of one call */
    bool whole = scene_new(&s, k, p);
    if (whole) {
        run_plash(&s); /* warm: no page is new, but for what a call takes and gives back */
        double before = bench_memory_mark();
        run_plash(&s);
        r->plash_peak = bench_memory("VmHWM") - before +
                        (double)((s.plan.trace - RACE_HEADS * p->n + s.plan.scratch) * 4);
        before = bench_memory_mark();
        if (p->exact_rounds > 1) run_exact(&s);
        if (p->exact_rounds > 1) r->exact_peak = bench_memory("VmHWM") - before;
    }
    for (int i = 0; whole && i < p->rounds; i++) {
        plash[i] = timed(&s, run_plash);
        const double start = bench_now();
        if (p->certify) whole = run_certificate(&s);
        proof[i] = bench_now() - start;
        if (i < p->exact_rounds) exact[i] = timed(&s, run_exact);
        if (i < p->exact_rounds) run_plash(&s); /* the certificate is about this output */
    }
    if (whole) {
        r->plash = quartiles(plash, p->rounds);
        r->exact = quartiles(exact, p->exact_rounds);
        r->certificate = quartiles(proof, p->certify ? p->rounds : 0);
        r->deviation = p->certify ? s.deviation : NAN;
    }
    scene_free(&s);
    if (!whole) (void)taut_no_memory("the plash figure");
    return whole;
}
