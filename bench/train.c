/* Training speed of a small GPT (width 256, depth 3, 4 heads, context 256, batch 16, float32) beside the same
 * model in PyTorch, where python3 has it, in turns in the same run and with the same threads.
 *
 * enforce_share: what Muon and the soft cap take of a step, enforce.c.
 * gflops counts what the model needs: 6 a token for every entry of a matrix, and for causal attention
 * 6 width context a token and block (half of the square).  mfu is that over the rate of a large sgemm. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bench/bench.h"
#include "bench/peer.h"
#include "bench/timing.h"
#include "train/trainer.h"

static const char recipe[] = "[data]\nsource = brackets\nlength = 200000\n"
                             "[model]\nwidth = 256\ndepth = 3\nheads = 4\ncontext = 256\n"
                             "[train]\nbatch = 16\nlr = 0.001\nsteps = 1000000\n";

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
    our_steps(t, 1); /* warm up */
    if (torch) peer_steps(&p, 2);
    for (int i = 0; i < ROUNDS; i++) {
        rate[i] = sgemm_gflops();
        ours[i] = our_steps(t, STEPS) / STEPS;
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

cJSON *bench_train(void)
{
    taut_config *cfg = NULL;
    taut_trainer t = { 0 };
    cJSON *o = NULL;
    taut_status s = taut_config_parse(&cfg, recipe, "bench");
    if (!s) s = taut_trainer_open(&t, cfg, taut_kernels_find("cpu"));
    if (!s) s = taut_model_init(t.model, 1);
    if (!s) o = measure(&t);
    taut_trainer_close(&t);
    taut_config_free(cfg);
    if (o && bench_enforce(o)) {
        cJSON_Delete(o);
        return NULL;
    }
    return o;
}
