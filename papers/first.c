/* The first network of a figure at the paper's own size: how long it takes.  Without a device that is said before it begins: a
 * step with one example and a step with some are timed; each example of the recipe's steps costs what one of those more did.
 * With one, or where somebody has said yes, it is said of its first steps, as they are. */
#include <stdio.h>
#include <time.h>

#include "cli/cli.h"
#include "papers/net.h"
#include "train/trainer.h"

enum { STEPS = 2 }; /* the first one also warms up, and does not count */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What the recipe says of its steps. */
static taut_status read_train(taut_train_spec *train, const paper_plan *p)
{
    taut_config *cfg = NULL;
    taut_recipe r = { 0 };
    taut_status s = paper_configure(&cfg, p);
    if (!s) s = taut_recipe_read(&r, cfg);
    if (!s) *train = r.train;
    taut_config_free(cfg);
    return s;
}

/* Seconds of a step with so many examples. */
static taut_status step_seconds(double *seconds, const paper_plan *p, int64_t examples)
{
    taut_config *cfg = NULL;
    taut_trainer t = { 0 };
    taut_step step;
    char batch[48];
    taut_status s = paper_configure(&cfg, p);
    snprintf(batch, sizeof batch, "train.batch=%lld", (long long)examples);
    if (!s) s = taut_config_set(cfg, batch);
    if (!s) s = taut_config_set(cfg, "train.accumulate=1");
    if (!s) s = taut_trainer_open(&t, cfg, p->k);
    if (!s) s = taut_model_init(t.model, t.recipe.train.seed);
    if (!s) s = taut_trainer_settle(&t);
    for (int i = 0; !s && i < STEPS; i++) {
        const double start = now();
        s = taut_trainer_step(&t, &step);
        *seconds = now() - start;
    }
    taut_trainer_close(&t);
    taut_config_free(cfg);
    return s;
}

static void in_words(char out[32], double seconds)
{
    static const struct {
        double of;
        const char *name;
    } unit[] = { { 86400, "days" }, { 3600, "hours" }, { 60, "minutes" }, { 1, "seconds" } };
    int i = 0;
    while (i < 3 && seconds < 2 * unit[i].of) i++;
    snprintf(out, 32, "%.0f %s", seconds / unit[i].of, unit[i].name);
}

taut_status paper_ask_first(const paper_plan *p)
{
    taut_train_spec train;
    double one, all = 0;
    char time[32];
    taut_status s = read_train(&train, p);
    if (!s) s = step_seconds(&one, p, 1);
    if (s) return s;
    const int64_t examples = train.batch * train.accumulate, some = one < 0.1 ? 32 : one < 1 ? 8 : 2;
    s = step_seconds(&all, p, some);
    if (s) return s;
    const double more = all > one ? (all - one) / (double)(some - 1) : 0;
    in_words(time, (double)train.steps * (one + more * (double)(examples - 1)));
    return taut_fail(TAUT_BAD_CALL,
                     "at full size and without a device, its first network alone takes about %s (%lld steps of %lld "
                     "examples on the kernels %s): --yes begins, --kernels cuda is a GPU",
                     time, (long long)train.steps, (long long)examples, p->k->name);
}

/* After every step of a network; the second half of these is timed. */
void paper_tell_first(const taut_progress *at)
{
    enum { LOOK = 20 };
    static double start;
    static bool told;
    char time[32];
    if (told || at->steps < 2 * LOOK) return;
    if (at->step == LOOK / 2) start = now();
    if (at->step != LOOK || start == 0) return;
    told = true;
    in_words(time, (now() - start) / (LOOK - LOOK / 2) * (double)at->steps);
    cli_say("paper", "its first network takes about %s (%lld steps)", time, (long long)at->steps);
}
