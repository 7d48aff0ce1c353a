/* The figures we claim, with peers beside us in the same run. */
#include "bench/bench.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "taut.h"

static cJSON *growth(void) { return bench_growth(false); }

static const struct {
    const char *name;
    cJSON *(*measure)(void);
} figures[] = {
    { "train", bench_train },
    { "attention", bench_attention },
    { "certify", bench_certify },
    { "plash", bench_plash },
    { "measure", bench_measure },
    { "attack", bench_attack },
    { "attlip", bench_attlip },
    { "growth", growth },
    { "gpu", bench_gpu },
    { "gpu-layers", bench_gpu_layers },
    { "gpu-train", bench_gpu_train },
    { "gpu-ranks", bench_gpu_ranks },
    { "gpu-attack", bench_gpu_attack },
    { "gpu-certify", bench_gpu_certify },
};
enum { FIGURES = sizeof figures / sizeof *figures };

static int run(const cli_args *a)
{
    const char *names[FIGURES], *name = a->operand[0];
    const bool parts = cli_flag(a, "--parts"), small = cli_flag(a, "--small"), train = strcmp(name, "train") == 0,
               grows = strcmp(name, "growth") == 0;
    cli_look(a); /* a figure opens what it is about */
    if (parts && !train) return cli_refuse(a, "--parts is for train");
    if (small && !parts && !grows) return cli_refuse(a, "--small is for train --parts and for growth");
    for (int i = 0; i < FIGURES; i++) {
        names[i] = figures[i].name;
        if (strcmp(name, figures[i].name) != 0) continue;
        cJSON *result = parts ? bench_train_parts(small) : grows && small ? bench_growth(true) : figures[i].measure();
        return result ? cli_json(result) : cli_fail(a);
    }
    const char *near = taut_nearest(name, names, FIGURES);
    return cli_refuse(a,
                      "no figure is called %s (train, attention, certify, plash, measure, attack, attlip, growth, gpu, "
                      "gpu-layers, gpu-train, gpu-ranks, gpu-attack, gpu-certify)%s%s%s",
                      name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static const cli_option options[] = {
    { "--parts", NULL, "train: where the time of a step goes" },
    { "--small", NULL, "with --parts, and growth: tiny models, to see that it works" },
    { NULL, NULL, NULL },
};

const cli_command cli_bench = {
    "bench",
    "train|attention|certify|plash|measure|attack|attlip|growth|gpu|gpu-layers|gpu-train|gpu-ranks|gpu-attack|gpu-"
    "certify",
    "measures speed, peers beside us in the same run",
    "taut bench train --json",
    1,
    1,
    options,
    run,
};
