/* Trains a recipe into a folder; a signal saves and stops, and the exit code says which it was. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Before the first step nothing is there to save, and a signal ends the program at once. */
static int show(const taut_step_facts *p, void *arg)
{
    char text[128];
    const double left = p->seconds / (double)p->step * (double)(p->steps - p->step);
    (void)arg;
    cli_stop_watch();
    snprintf(text, sizeof text, "step %lld  loss %.4f  %.3g steps/s  %d:%02d left", (long long)p->step, p->loss,
             (double)p->step / p->seconds, (int)left / 60, (int)left % 60);
    cli_bar((double)p->step / (double)p->steps, text);
    return cli_stop_asked();
}

enum { SHORT = 64 };
/* --set, and what is short for it, in the order in which they were given; returns how many. */
static int overrides_of(const cli_args *a, const char *list[64], char room[64][SHORT])
{
    static const char *const short_for[][2] = { { "--seed", "train.seed" }, { "--protocol", "data.protocol" } };
    int count = 0;
    for (int i = 0; i < a->given; i++) {
        if (strcmp(a->name[i], "--set") == 0) list[count++] = a->value[i];
        for (int j = 0; j < 2; j++) {
            if (strcmp(a->name[i], short_for[j][0]) != 0) continue;
            snprintf(room[i], SHORT, "%s=%.40s", short_for[j][1], a->value[i]);
            list[count++] = room[i];
        }
    }
    return count;
}

static void print(const cJSON *o, const char *run)
{
    enum { RECENT = 32 }; /* steps that the training loss is a mean of */
    const bool stopped = cJSON_IsTrue(cJSON_GetObjectItem(o, "stopped"));
    const double steps = cli_number(o, "steps");
    char bound[32], target[32];
    printf("%s after %.0f steps, %.0f %s, %.1f s (%.0f %s/s)\n", stopped ? "stopped" : "done", steps,
           cli_number(o, "tokens"), cli_word(o, "counted"), cli_number(o, "seconds"), cli_number(o, "tokens_per_s"),
           cli_word(o, "counted"));
    if (steps > 0)
        printf("  training loss    %.4f   (mean of the last %.0f steps)\n", cli_number(o, "train_loss"),
               fmin(steps, RECENT));
    if (stopped)
        printf("  validation       not looked at, since it was stopped (taut eval %s)\n", run);
    else if (!isnan(cli_number(o, "val_mae")))
        printf("  validation MSE   %.4f   MAE %.4f\n  test MSE         %.4f   MAE %.4f\n", cli_number(o, "val_loss"),
               cli_number(o, "val_mae"), cli_number(o, "test_mse"), cli_number(o, "test_mae"));
    else
        printf("  validation loss  %.4f   accuracy %.2f %%   (whole split)\n", cli_number(o, "val_loss"),
               100 * cli_number(o, "val_acc"));
    if (cJSON_GetObjectItem(o, "data")) printf("  the table        %s\n", cli_word(o, "data"));
    if (cli_number(o, "best_step") > 0) printf("  best at step     %.0f\n", cli_number(o, "best_step"));
    if (cli_number(o, "target") > 0)
        printf("  proved constant  %s   (norm %s, %s; target %s)\n    %s\n", cli_up(bound, o, "bound"),
               cli_word(o, "norm"), strcmp(cli_word(o, "units"), "l2") == 0 ? "l2" : "RMS units",
               taut_number_print(target, cli_number(o, "target")), cli_word(o, "about"));
    printf("  %.0f weights in %s/model.safetensors, by the kernels %s, products in %s\n", cli_number(o, "weights"), run,
           cli_word(o, "kernels"), cli_word(o, "matmul"));
    if (stopped) printf("  go on with --resume\n");
}

/* What the folder now holds. */
static int tell(const cli_args *a, const char *run)
{
    char *json = NULL;
    if (taut_run_json(&json, run)) return cli_fail(a);
    cJSON *o = cJSON_Parse(json), *summary = cJSON_DetachItemFromObject(o, "summary");
    taut_string_free(json);
    cJSON_Delete(o);
    if (cli_flag(a, "--json")) {
        cJSON_AddStringToObject(summary, "run", run);
        return cli_json(summary);
    }
    print(summary, run);
    cJSON_Delete(summary);
    return EXIT_DONE;
}

static int run(const cli_args *a)
{
    const bool hushed = cli_hush();
    const char *run = cli_text(a, "--out", NULL), *list[64];
    char room[64][SHORT];
    taut_result result;
    const taut_train_options o = { .size = sizeof o,
                                   .kernels = cli_table(a),
                                   .overrides = list,
                                   .count = overrides_of(a, list, room),
                                   .resume = cli_flag(a, "--resume"),
                                   .overwrite = cli_flag(a, "--overwrite"),
                                   .progress = show };
    if (!run) return cli_refuse(a, "say where the run goes: --out RUN");
    const taut_status s = taut_train_recipe(&result, a->operand[0], run, &o);
    cli_bar_end();
    if (s) return cli_fail(a);
    const int told = hushed ? EXIT_DONE : tell(a, run);
    const int number = cli_stop_asked() ? cli_stop_asked() : SIGTERM; /* or another rank was told to stop */
    return result.stopped && !told ? 128 + number : told;
}

static const cli_option options[] = {
    { "--out", "RUN", "folder for the recipe, the model, the state, the log and the summary" },
    { "--set", "S.K=V", "override a key of the recipe; may be repeated" },
    { "--protocol", "NAME", "how a series is cut, informer2020 or full: short for --set data.protocol=NAME" },
    { "--resume", NULL, "go on from RUN's last checkpoint, bit for bit; its --set hold, and train.steps may change" },
    { "--overwrite", NULL, "start anew in a folder that already holds a run" },
    { NULL, NULL, NULL },
};

const cli_command cli_train = {
    "train",
    "RECIPE --out RUN",
    "trains a model from a recipe",
    "taut train recipes/tiny.ini --out runs/tiny --set train.steps=200",
    1,
    1,
    options,
    run,
};
