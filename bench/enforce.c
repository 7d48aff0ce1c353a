/* What it costs to enforce: Muon and the soft cap as a share of a training step, on the Shakespeare shape (width 256,
 * depth 3, context 256, batch 64).  The step is timed whole; then its optimiser and its constraint once more by
 * themselves, on the same gradients. */
#include <math.h>

#include "bench/bench.h"
#include "bench/timing.h"
#include "train/trainer.h"

static const char recipe[] =
    "[data]\nsource = brackets\nlength = 200000\n"
    "[model]\nwidth = 256\ndepth = 3\nheads = 4\ncontext = 256\nnorm = none\nresidual = convex\n"
    "tied = false\nattention_scale = inv_width\ninit = orthogonal\n"
    "[train]\nbatch = 64\noptimiser = muon\nlr = 0.05\nsteps = 1000000\n"
    "[constrain]\nmethod = softcap\ncap = 1.1\nembed = 1\n";

enum { ROUNDS = 3 };

static double middle(const double x[ROUNDS]) { return fmax(fmin(x[0], x[1]), fmin(fmax(x[0], x[1]), x[2])); }

static taut_status measure(cJSON *o, taut_trainer *t)
{
    double whole[ROUNDS], enforce[ROUNDS];
    taut_step step;
    taut_status s = taut_trainer_step(t, &step); /* warm up */
    for (int i = 0; !s && i < ROUNDS; i++) {
        const double start = bench_now();
        s = taut_trainer_step(t, &step);
        const double between = bench_now();
        taut_constrainer_mark(t->constrainer);
        taut_optimiser_step(t->optimiser, t->clock.step, 1e-3);
        taut_constrainer_apply(t->constrainer, t->clock.step, 1e-3 * t->recipe.train.lr);
        taut_constrainer_raise(t->constrainer);
        whole[i] = between - start;
        enforce[i] = bench_now() - between;
    }
    if (s) return s;
    cJSON_AddNumberToObject(o, "muon_step_s", middle(whole));
    cJSON_AddNumberToObject(o, "enforce_s", middle(enforce));
    cJSON_AddNumberToObject(o, "enforce_share", middle(enforce) / middle(whole));
    return TAUT_OK;
}

taut_status bench_enforce(cJSON *o)
{
    taut_config *cfg = NULL;
    taut_trainer t = { 0 };
    taut_status s = taut_config_parse(&cfg, recipe, "bench");
    if (!s) s = taut_trainer_open(&t, cfg, taut_kernels_find("cpu"));
    if (!s) s = taut_model_init(t.model, 1);
    if (!s) s = measure(o, &t);
    taut_trainer_close(&t);
    taut_config_free(cfg);
    return s;
}
