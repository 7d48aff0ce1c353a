/* Training speed of a small GPT (width 256, depth 3, 4 heads, context 256, batch 16, float32) beside the same
 * model in PyTorch, where python3 has it, in turns in the same run and with the same threads.
 *
 * parts: where the time of a step goes, by the table of parts.c; the parts add up to the step.  processor_s is what all threads
 * together were at work; waiting is the share of the step in which they were not: one waited for another, for the machine.
 * enforce_share: what Muon and the soft cap take of a step, enforce.c.
 * gflops counts what the model needs: 6 a token for every entry of a matrix, and for causal attention
 * 6 width context a token and block (half of the square).  mfu is that over the rate of a large sgemm. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bench/bench.h"
#include "bench/parts.h"
#include "bench/peer.h"
#include "bench/timing.h"
#include "train/trainer.h"

static const char recipe[] = "[data]\nsource = brackets\nlength = 200000\n"
                             "[model]\nwidth = 256\ndepth = 3\nheads = 4\ncontext = 256\n"
                             "[train]\nbatch = 16\nlr = 0.001\nsteps = 1000000\n";

static const char small_recipe[] = "[data]\nsource = brackets\nlength = 20000\n"
                                   "[model]\nwidth = 32\ndepth = 2\nheads = 2\ncontext = 32\n"
                                   "[train]\nbatch = 4\nlr = 0.001\nsteps = 1000000\n";

enum { ROUNDS = 7, STEPS = 3, GEMM = 1536 };

/* The best of a few, since the peak is what we are held against. */
static double sgemm_gflops(void)
{
    const size_t len = (size_t)GEMM * GEMM;
    float *a = taut_malloc_aligned(3 * len * sizeof *a);
    double best = INFINITY;
    if (!a) return NAN;
    float *b = a + len, *c = b + len;
    for (size_t i = 0; i < 2 * len; i++) a[i] = (float)(i % 7) - 3;
    openblas_set_num_threads(taut_threads());
    for (int i = 0; i < 6; i++) {
        const double start = bench_now();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, GEMM, GEMM, GEMM, 1, a, GEMM, b, GEMM, 0, c, GEMM);
        best = fmin(best, bench_now() - start);
    }
    openblas_set_num_threads(1);
    free(a);
    return 2e-9 * GEMM * (double)len / best;
}

static double flops_a_token(const taut_model *m)
{
    double entries = (double)(m->embed.rows * m->embed.cols); /* as the head; looking a token up costs nothing */
    for (int i = 0; i < m->weights; i++)
        if (m->weight[i].param->role == TAUT_MATRIX) entries += (double)taut_weight_len(&m->weight[i]);
    return 6 * entries + 6.0 * (double)(m->spec.depth * m->spec.width * m->spec.context);
}

/* bench/train_torch.py does as many steps as a line says. */
static bool peer_start(bench_peer *p, int64_t vocab)
{
    char threads[16], tokens[16];
    snprintf(threads, sizeof threads, "%d", taut_threads());
    snprintf(tokens, sizeof tokens, "%lld", (long long)vocab);
    return bench_peer_start(p, "bench/train_torch.py", (const char *const[]){ threads, tokens, NULL });
}

static double peer_steps(bench_peer *p, int steps)
{
    char line[16];
    snprintf(line, sizeof line, "%d", steps);
    return bench_peer_ask(p, line);
}

static double our_steps(taut_trainer *t, int steps)
{
    taut_step step;
    const double start = bench_now();
    for (int i = 0; i < steps; i++)
        if (taut_trainer_step(t, &step)) return NAN;
    return bench_now() - start;
}

static cJSON *measure(taut_trainer *t)
{
    const double batch = (double)(t->recipe.train.batch * t->recipe.model.context);
    double ours[ROUNDS], theirs[ROUNDS], rate[ROUNDS];
    bench_peer p;
    const bool torch = peer_start(&p, t->model->embed.rows);
    if (torch) peer_steps(&p, 2); /* warm up */
    for (int i = 0; i < ROUNDS; i++) {
        rate[i] = sgemm_gflops();
        our_steps(t, 1); /* what ran before has threads that still spin; the same for the peer */
        ours[i] = our_steps(t, STEPS) / STEPS;
        if (torch) peer_steps(&p, 1);
        theirs[i] = torch ? peer_steps(&p, STEPS) / STEPS : NAN;
    }
    bench_peer_stop(&p);
    const double second = bench_median(ours, ROUNDS), gflops = 1e-9 * flops_a_token(t->model) * batch / second;
    const double sgemm = bench_median(rate, ROUNDS);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "threads", taut_threads());
    cJSON_AddNumberToObject(o, "weights", (double)taut_model_size(t->model));
    cJSON_AddNumberToObject(o, "tokens_per_s", batch / second);
    cJSON_AddNumberToObject(o, "gflops", gflops);
    cJSON_AddNumberToObject(o, "sgemm_gflops", sgemm);
    cJSON_AddNumberToObject(o, "mfu", gflops / sgemm);
    if (!torch) return o;
    const double other = bench_median(theirs, ROUNDS);
    cJSON_AddNumberToObject(o, "torch_tokens_per_s", batch / other);
    cJSON_AddNumberToObject(o, "ratio", other / second);
    return o;
}

static void add_part(cJSON *o, const char *name, bench_part part, double whole)
{
    cJSON *one = cJSON_AddObjectToObject(o, name);
    cJSON_AddNumberToObject(one, "seconds", part.seconds);
    cJSON_AddNumberToObject(one, "share", part.seconds / whole);
    cJSON_AddNumberToObject(one, "processor_s", part.processor);
}

/* The step whose time is the median; its parts, which add up to it. */
static cJSON *measure_parts(taut_trainer *t)
{
    enum { TRIED = 9 };
    bench_part part[TRIED][PARTS], whole[TRIED];
    double seconds[TRIED];
    taut_step step;
    for (int i = -1; i < TRIED; i++) { /* one more, to warm up */
        const bench_part since = bench_clock();
        if (taut_trainer_step(t, &step)) return NULL;
        const bench_part now = bench_clock();
        const int at = i < 0 ? 0 : i;
        whole[at] = (bench_part){ now.seconds - since.seconds, now.processor - since.processor };
        bench_parts_read(part[at], whole[at]);
        seconds[at] = whole[at].seconds;
    }
    const double middle = bench_median(seconds, TRIED);
    int at = 0;
    while (whole[at].seconds != middle) at++;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "threads", taut_threads());
    cJSON_AddStringToObject(o, "kernels", taut_kernels_build(taut_kernels_find("cpu")));
    cJSON_AddNumberToObject(o, "loss", step.loss);
    cJSON_AddNumberToObject(o, "step_s", middle);
    cJSON_AddNumberToObject(o, "processor_s", whole[at].processor);
    cJSON_AddNumberToObject(o, "waiting", 1 - whole[at].processor / middle / taut_threads());
    cJSON *parts = cJSON_AddObjectToObject(o, "parts");
    for (int i = 0; i < PARTS; i++) add_part(parts, bench_part_name[i], part[at][i], middle);
    return o;
}

static cJSON *with_trainer(const char *text, const taut_kernels *k, cJSON *(*measured)(taut_trainer *))
{
    taut_config *cfg = NULL;
    taut_trainer t = { 0 };
    cJSON *o = NULL;
    taut_status s = taut_config_parse(&cfg, text, "bench");
    if (!s) s = taut_trainer_open(&t, cfg, k);
    if (!s) s = taut_model_init(t.model, 1);
    if (!s) o = measured(&t);
    taut_trainer_close(&t);
    taut_config_free(cfg);
    return o; /* cppcheck-suppress returnDanglingLifetime ; it holds numbers, nothing of t */
}

cJSON *bench_train(void)
{
    cJSON *o = with_trainer(recipe, taut_kernels_find("cpu"), measure);
    if (o && bench_enforce(o)) {
        cJSON_Delete(o);
        return NULL;
    }
    return o;
}

cJSON *bench_train_parts(bool small)
{
    return with_trainer(small ? small_recipe : recipe, bench_parts_over(taut_kernels_find("cpu")), measure_parts);
}
