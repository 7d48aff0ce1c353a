/* What messages between devices cost: steps of GPT-2's shape by a process alone, and by one rank that sends its gradients to
 * itself by NCCL, in turn.  The bits must be the same. */
#include <math.h>

#include "bench/bench.h"
#include "bench/timing.h"
#include "train/trainer.h"

enum { ROUNDS = 9, STEPS = 5, WAYS = 2 };
static const char recipe[] =
    "[data]\nsource = brackets\nlength = 2000000\n[model]\nwidth = 768\ndepth = 12\nheads = 12\n"
    "context = 1024\n[train]\nbatch = 16\noptimiser = muon\nlr = 0.001\nsteps = 1000000\nmatmul = bf16\n";

static taut_status open_way(taut_trainer *t, taut_config **cfg, const taut_kernels *k, bool ranks)
{
    const taut_ranks itself = { .count = 1, .to_itself = true };
    taut_status s = taut_config_parse(cfg, recipe, "bench");
    if (!s) s = taut_trainer_open(t, *cfg, k);
    if (!s && ranks) s = taut_trainer_join(t, &itself);
    return s ? s : taut_model_init(t->model, 1);
}

static taut_status steps(taut_trainer *t, double *seconds, double *loss)
{
    const double start = bench_now();
    taut_status s = TAUT_OK;
    taut_step step = { 0 };
    for (int i = 0; i < STEPS && !s; i++) s = taut_trainer_step(t, &step);
    *seconds = (bench_now() - start) / STEPS;
    *loss = step.loss;
    return s;
}

cJSON *bench_gpu_ranks(void)
{
    const taut_kernels *k = taut_kernels_find("cuda");
    taut_trainer t[WAYS] = { 0 };
    taut_config *cfg[WAYS] = { NULL };
    double seconds[WAYS][ROUNDS], loss[WAYS], weights = 0;
    bool same = true;
    if (!k) return NULL;
    taut_status s = TAUT_OK;
    for (int w = 0; w < WAYS && !s; w++) s = open_way(&t[w], &cfg[w], k, w == 1);
    for (int i = -1; i < ROUNDS && !s; i++) {
        for (int w = 0; w < WAYS && !s; w++) s = steps(&t[w], &seconds[w][i < 0 ? 0 : i], &loss[w]);
        same = same && loss[0] == loss[1];
    }
    if (!s) weights = (double)t[0].model->slab;
    for (int w = 0; w < WAYS; w++) {
        taut_trainer_close(&t[w]);
        taut_config_free(cfg[w]);
    }
    if (s) return NULL;
    const double alone = bench_median(seconds[0], ROUNDS), ranks = bench_median(seconds[1], ROUNDS);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "gradient_bytes", weights * (double)k->elem);
    cJSON_AddNumberToObject(o, "alone_milliseconds", 1e3 * alone);
    cJSON_AddNumberToObject(o, "nccl_milliseconds", 1e3 * ranks);
    cJSON_AddNumberToObject(o, "ratio", ranks / alone);
    cJSON_AddBoolToObject(o, "same_bits", same);
    return o;
}
