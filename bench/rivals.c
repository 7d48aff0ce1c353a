/* Shapes are those of race_plash: one example, width 512, 4 heads, logits over sqrt(128).  Errors are |o - softmax| / |softmax|
 * over 256 queries spread evenly, on two inputs: `noise`, independent normal entries, where softmax attention is nearly a mean
 * over everybody; and `smooth`, where every feature is a wave of a few slow frequencies, so that neighbours are alike, as in
 * a series.  Times are of the noise. */
#include "bench/rivals.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/status.h"
#include "bench/bench.h"
#include "bench/race_plash.h"
#include "bench/timing.h"
#include "module/modules.h"

enum { ASKED = 256, MOST = 9 };

typedef struct {
    const taut_kernels *k;
    taut_shape shape;
    taut_real *q, *key, *v, *o, *some, *exact, *lse; /* some, exact: of the queries that are looked at */
} scene;

static double wave(uint64_t key, int64_t i, int64_t c, int64_t n)
{
    double sum = 0;
    for (uint64_t f = 0; f < 3; f++) {
        const uint64_t at = 3 * (uint64_t)c + f;
        const double phase = taut_rng_unit(key, 2 * at), turns = (double)(1 + 3 * f);
        sum += taut_rng_normal(key, 2 * at + 1) * cos(6.283185307179586 * (turns * (double)i / (double)n + phase));
    }
    return sum / sqrt(1.5);
}

static bool fill(const scene *s, taut_real *x, uint64_t key, bool smooth)
{
    const int64_t d = s->shape.d, n = s->shape.t;
    double *row = taut_malloc((size_t)(n * d) * sizeof *row);
    if (!row) return false;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n * d; i++)
        row[i] = smooth ? wave(key, i / d, i % d, n) : taut_rng_normal(key, (uint64_t)i);
    s->k->put(x, row, n * d);
    free(row);
    return true;
}

/* Queries that are looked at, and what softmax attention answers them. */
static bool begin(const scene *s, bool smooth)
{
    const int64_t d = s->shape.d, n = s->shape.t, many = n < ASKED ? n : ASKED;
    const taut_attn a = { 1, RACE_HEADS, many, n, d / RACE_HEADS, 1 / sqrt((double)(d / RACE_HEADS)), 0, 0, 0 };
    if (!fill(s, s->q, 11, smooth) || !fill(s, s->key, 12, smooth) || !fill(s, s->v, 13, smooth)) return false;
    s->k->copy_rows(s->some, d, s->q, n / many * d, many, d);
    s->k->attention(s->exact, s->lse, s->some, s->key, s->v, &a);
    return true;
}

static double error_of(const scene *s)
{
    const int64_t d = s->shape.d, n = s->shape.t, many = n < ASKED ? n : ASKED;
    double *a = taut_malloc((size_t)(2 * many * d) * sizeof *a), far = 0, all = 0;
    if (!a) return NAN;
    s->k->copy_rows(s->some, d, s->o, n / many * d, many, d);
    s->k->get(a, s->some, many * d);
    s->k->get(a + many * d, s->exact, many * d);
    for (int64_t i = 0; i < many * d; i++) {
        const double b = a[many * d + i];
        far += (a[i] - b) * (a[i] - b), all += b * b;
    }
    free(a);
    return sqrt(far / all);
}

enum { RIVALS = 5 };
typedef struct {
    const char *name;
    taut_module *m;
    taut_plan plan;
    double seconds, error[2]; /* noise, smooth */
} rival;

static void run_one(const scene *s, const rival *r, taut_real *trace, taut_real *scratch)
{
    taut_run run = { .k = s->k, .scratch = { scratch, r->plan.scratch, s->k->elem } };
    taut_core_run(r->m, &run, (taut_tensor){ s->o, s->shape }, (taut_tensor){ s->q, s->shape },
                  (taut_tensor){ s->key, s->shape }, (taut_tensor){ s->v, s->shape },
                  (taut_span){ trace, r->plan.trace, s->k->elem });
    (void)s->k->read(NULL, NULL, 0); /* a failure is met again by whoever reads numbers */
}

/* On the input that is there: its error, and of the noise its time.  False: no memory. */
static bool race_one(const scene *s, rival *r, bool smooth, int rounds)
{
    double time[MOST];
    r->plan = taut_core_plan(r->m, s->shape);
    taut_real *trace = taut_reals(s->k, r->plan.trace), *scratch = taut_reals(s->k, r->plan.scratch);
    const bool whole = trace && scratch;
    if (whole) run_one(s, r, trace, scratch);
    if (whole) r->error[smooth] = error_of(s);
    for (int i = 0; whole && !smooth && i < rounds; i++) {
        const double start = bench_now();
        run_one(s, r, trace, scratch);
        time[i] = bench_now() - start;
    }
    if (whole && !smooth) r->seconds = bench_median(time, rounds);
    if (trace) s->k->release(trace);
    if (scratch) s->k->release(scratch);
    return whole;
}

static void tell(cJSON *list, const rival *r, size_t elem)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(list, o);
    cJSON_AddStringToObject(o, "attention", r->name);
    cJSON_AddNumberToObject(o, "s", r->seconds);
    cJSON_AddNumberToObject(o, "trace_bytes", (double)r->plan.trace * (double)elem);
    cJSON_AddNumberToObject(o, "scratch_bytes", (double)r->plan.scratch * (double)elem);
    cJSON_AddNumberToObject(o, "error_noise", r->error[0]);
    cJSON_AddNumberToObject(o, "error_smooth", r->error[1]);
}

bool race_rivals(cJSON *list, const taut_kernels *k, int64_t tokens, int64_t m, int rounds)
{
    scene s = { .k = k, .shape = { 1, tokens, RACE_WIDTH } };
    const taut_around around = {
        .width = RACE_WIDTH, .heads = RACE_HEADS, .scale = 1 / sqrt((double)RACE_WIDTH / RACE_HEADS), .out = 1
    };
    rival all[RIVALS] = { { .name = "window", .m = taut_window(&around, m, 0) },
                          { .name = "window, global tokens", .m = taut_window(&around, m, m / 4) },
                          { .name = "cosformer", .m = taut_cosformer(&around, tokens, 1e-3) },
                          { .name = "performer", .m = taut_performer(&around, m, 1) },
                          { .name = "nystrom", .m = taut_nystrom(&around, m, 8) } };
    taut_real **const each[] = { &s.q, &s.key, &s.v, &s.o, &s.some, &s.exact, &s.lse };
    const int64_t len = taut_len(s.shape), few = ASKED * RACE_WIDTH, size[] = { len, len, len, len, few, few, few };
    bool whole = rounds <= MOST;
    for (int i = 0; i < 7; i++) whole = (*each[i] = taut_reals(k, size[i])) && whole;
    for (int i = 0; i < RIVALS; i++) whole = whole && all[i].m && !taut_module_place(all[i].m, k);
    for (int smooth = 1; smooth >= 0 && whole; smooth--) {
        whole = begin(&s, smooth);
        for (int i = 0; i < RIVALS && whole; i++) whole = race_one(&s, &all[i], smooth, rounds);
    }
    for (int i = 0; i < RIVALS; i++) {
        if (whole) tell(list, &all[i], k->elem);
        taut_module_free(all[i].m);
    }
    for (int i = 0; i < 7; i++)
        if (*each[i]) k->release(*each[i]);
    if (!whole) (void)taut_no_memory("the rivals of plash");
    return whole;
}
