#include "train/train.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "bound/print.h"
#include "cli.h"
#include "train/state.h"

static volatile int stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void show(const taut_progress *p, void *arg)
{
    char text[128];
    const double left = p->seconds / (double)p->step * (double)(p->steps - p->step);
    (void)arg;
    snprintf(text, sizeof text, "step %lld  loss %.4f  %.0f tokens/s  %d:%02d left", (long long)p->step, p->loss,
             p->tokens_per_s, (int)left / 60, (int)left % 60);
    cli_bar((double)p->step / (double)p->steps, text);
}

static taut_status apply_overrides(taut_config *cfg, const cli_args *a)
{
    static const char *const short_for[][2] = { { "--seed", "train.seed" }, { "--protocol", "data.protocol" } };
    char line[64];
    taut_status s = TAUT_OK;
    for (int i = 0; !s && i < a->given; i++) {
        if (strcmp(a->name[i], "--set") == 0) s = taut_config_set(cfg, a->value[i]);
        for (int j = 0; !s && j < 2; j++) {
            if (strcmp(a->name[i], short_for[j][0]) != 0) continue;
            snprintf(line, sizeof line, "%s=%.40s", short_for[j][1], a->value[i]);
            s = taut_config_set(cfg, line);
        }
    }
    return s;
}

static int print_summary(const cli_args *a, const taut_train_summary *r, const char *run)
{
    if (cli_flag(a, "--json")) {
        cJSON *o = taut_train_summary_json(r);
        cJSON_AddStringToObject(o, "run", run);
        return cli_json(o);
    }
    char bound[32], target[32];
    printf("%s after %lld steps, %lld tokens, %.1f s (%.0f tokens/s)\n", r->stopped ? "stopped" : "done",
           (long long)r->steps, (long long)r->tokens, r->seconds, r->tokens_per_s);
    printf("  training loss    %.4f   (mean of the last %lld steps)\n", r->train_loss,
           (long long)(r->steps < TAUT_RECENT ? r->steps : TAUT_RECENT));
    if (!isnan(r->val_mae))
        printf("  validation MSE   %.4f   MAE %.4f\n  test MSE         %.4f   MAE %.4f\n", r->val_loss, r->val_mae,
               r->test_loss, r->test_mae);
    else
        printf("  validation loss  %.4f   accuracy %.2f %%   (whole split)\n", r->val_loss, 100 * r->val_acc);
    if (r->best_step) printf("  best at step     %lld\n", (long long)r->best_step);
    taut_number_print(target, r->target);
    if (r->target > 0)
        printf("  proved constant  %s   (norm %s, %s; target %s)\n    %s\n", up_text(bound, r->bound),
               r->flat ? "flat" : "tokens", r->l2 ? "l2" : "RMS units", target, r->about);
    printf("  %lld weights in %s/model.safetensors\n", (long long)r->weights, run);
    if (r->stopped) printf("  go on with --resume\n");
    return EXIT_DONE;
}

static int run(const cli_args *a)
{
    const char *run = cli_text(a, "--out", NULL);
    const taut_kernels *k = cli_kernels(a);
    taut_config *cfg = NULL;
    taut_train_summary summary;
    if (!run) return cli_refuse(a, "say where the run goes: --out RUN");
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    taut_status s = taut_config_open(&cfg, a->operand[0]);
    if (!s) s = apply_overrides(cfg, a);
    if (!s)
        s = taut_train(&summary, cfg, k,
                       &(taut_training){ .run = run,
                                         .resume = cli_flag(a, "--resume"),
                                         .overwrite = cli_flag(a, "--overwrite"),
                                         .progress = show,
                                         .stop = &stop });
    taut_config_free(cfg);
    cli_bar_end();
    return s ? cli_fail(a) : print_summary(a, &summary, run);
}

static const cli_option options[] = {
    { "--out", "RUN", "folder for the recipe, the model, the state, the log and the summary" },
    { "--set", "S.K=V", "override a key of the recipe; may be repeated" },
    { "--protocol", "NAME", "how a series is cut, informer2020 or full: short for --set data.protocol=NAME" },
    { "--resume", NULL, "go on from RUN's last checkpoint, bit for bit" },
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
