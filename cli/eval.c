#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/net.h"
#include "base/alloc.h"
#include "bound/print.h"
#include "cli.h"
#include "data/text.h"
#include "forecast_window.h"
#include "model/pass.h"
#include "report/run.h"
#include "train/evaluate.h"
#include "verdict/noise.h"

/* What was found, as JSON: of a forecaster also one forecast. */
static taut_status tell(cJSON *o, const taut_evaluation *e, const taut_noise *n, taut_pass *p, taut_batch *b,
                        taut_split split)
{
    cJSON_AddNumberToObject(o, "targets", (double)e->targets);
    cJSON_AddNumberToObject(o, "windows", (double)e->windows);
    if (isnan(e->mae)) {
        cJSON_AddNumberToObject(o, "loss", e->loss);
        cJSON_AddNumberToObject(o, "accuracy", e->accuracy);
        cJSON_AddNumberToObject(o, "perplexity", exp(e->loss));
        return TAUT_OK;
    }
    cJSON_AddNumberToObject(o, "mse", e->loss);
    cJSON_AddNumberToObject(o, "mae", e->mae);
    if (n->noise > 0) cJSON_AddStringToObject(o, "model", n->model);
    if (n->noise > 0) cJSON_AddNumberToObject(o, "noise", n->noise);
    if (n->noise > 0) cJSON_AddNumberToObject(o, "rows", n->about.rows);
    if (n->noise > 0) cJSON_AddItemToObject(o, "moves", up_json(n->moves));
    if (n->noise > 0) cJSON_AddNumberToObject(o, "found", n->found);
    if (n->noise > 0) cJSON_AddItemToObject(o, "rounding", up_json(n->slack));
    return forecast_window_add(o, p, b, split);
}

/* A page of forecasts, and an .svg beside it for each. */
static taut_status plot(const cJSON *o, const char *path)
{
    char *folder = taut_strdup(path);
    if (!folder) return taut_no_memory("a page");
    char *slash = strrchr(folder, '/');
    if (slash) *slash = '\0';
    taut_page page;
    taut_page_begin(&page, "Forecasts", slash ? folder : ".");
    taut_report_forecast(&page, o, "forecast");
    const taut_status s = taut_page_end(&page, path);
    free(folder);
    return s;
}

static void print(const taut_evaluation *e, const taut_noise *n, const char *source, const char *split)
{
    char text[32], moved[32], about[TAUT_ABOUT_ROOM];
    if (isnan(e->mae)) {
        printf("%s, %s split: loss %.4f  perplexity %.3f  accuracy %.2f %%   (%lld targets in %lld windows)\n", source,
               split, e->loss, exp(e->loss), 100 * e->accuracy, (long long)e->targets, (long long)e->windows);
        return;
    }
    printf("%s, %s split: MSE %.4f  MAE %.4f   (%lld windows, standardised)\n", source, split, e->loss, e->mae,
           (long long)e->windows);
    if (n->noise > 0 && isfinite(n->moves.v))
        printf("  proved: if no row moves by more than %s, no row of a forecast moves by more than %s,\n    %s\n",
               taut_number_down(moved, n->noise), up_text(text, n->moves), taut_about_text(about, &n->about));
    if (n->noise > 0 && !isfinite(n->moves.v)) printf("  nothing is proved: this model has no finite constant\n");
    if (n->noise > 0) printf("  found: noise that moves a row of a forecast by %.6g\n", n->found);
    if (n->noise > 0 && n->found > n->moves.v)
        printf("  %s: up to %s of what was found may be rounding\n",
               taut_noise_beaten(n) ? "a contradiction" : "no contradiction", up_text(text, n->slack));
}

static taut_status prove_noise(taut_noise *n, const char *model, const taut_source *data, taut_split split)
{
    char *path = taut_model_path(model);
    const taut_status s = path ? taut_noise_prove(n, path, data, split) : taut_no_memory("a path");
    free(path);
    return s;
}

static int run(const cli_args *a)
{
    const taut_kernels *k = cli_kernels(a);
    const int64_t windows = cli_int(a, "--windows", 0, 0, 1 << 30), most = windows > 0 && windows < 16 ? windows : 16;
    const int64_t rows = cli_int(a, "--batch", most, 1, 64); /* memory for no more windows than are asked for */
    const int64_t slide = cli_int(a, "--slide", 0, 0, 1 << 30);
    const char *page = cli_text(a, "--plot", NULL);
    const bool train = cli_flag(a, "--train"), test = cli_flag(a, "--test");
    const char *const name = train ? "training" : test ? "test" : "validation";
    if (train && test) return cli_refuse(a, "--train or --test, not both");
    taut_net *m = NULL;
    taut_source *data = NULL;
    taut_pass *pass = NULL;
    taut_batch batch = { 0 };
    taut_evaluation e = { 0 };
    taut_noise noise = { .noise = cli_real(a, "--noise", 0, 0, 1e9) };
    if (cli_flag(a, "--noise") && !(noise.noise > 0)) return cli_refuse(a, "--noise 0 moves nothing");
    taut_status s = taut_net_open_on(&m, a->operand[0], k, (uint64_t)cli_int(a, "--seed", 1, 0, INT64_MAX));
    if (s) return cli_fail(a);
    const char *source = cli_text(a, "--data", m->data.source);
    const taut_split split = train ? TAUT_TRAIN : test ? TAUT_TEST : TAUT_VALID;
    s = taut_net_source(&data, m, source);
    if (!s && slide && !taut_source_slide(data, slide))
        s = taut_fail(TAUT_BAD_DATA, "--slide is for models that predict the next token of a text");
    if (!s && test && !data->task.reals)
        s = taut_fail(TAUT_BAD_DATA, "--test is for forecasters: %s has no third split", source);
    if (!s && taut_source_count(data, split) == 0)
        s = taut_fail(TAUT_BAD_DATA, "%s: nothing to predict in its %s split", source, name);
    if (!s) s = taut_pass_create(&pass, m->model, rows, m->model->in.t, false);
    if (!s) s = taut_batch_create(&batch, data, 0, rows);
    if (!s) s = taut_evaluate(&e, pass, &batch, split, windows, rows);
    if (!s && (page || noise.noise > 0) && !data->task.reals)
        s = taut_fail(TAUT_BAD_DATA, "--plot and --noise are for forecasters");
    if (!s && noise.noise > 0) s = prove_noise(&noise, a->operand[0], data, split);
    if (!s && !isfinite(e.loss)) s = taut_fail(TAUT_NOT_FINITE, "%s: the loss is not finite", a->operand[0]);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "data", source);
    cJSON_AddStringToObject(o, "split", name);
    if (!s) s = tell(o, &e, &noise, pass, &batch, split);
    if (!s && page) s = plot(o, page);
    int code = s ? cli_fail(a) : EXIT_DONE;
    if (!s && cli_flag(a, "--json"))
        code = cli_json(cJSON_Duplicate(o, true));
    else if (!s)
        print(&e, &noise, source, name);
    if (!s && noise.noise > 0 && taut_noise_beaten(&noise)) code = EXIT_CONTRADICTION;
    cJSON_Delete(o);
    taut_batch_free(&batch);
    taut_pass_free(pass);
    taut_source_free(data);
    taut_net_free(m);
    return code;
}

static const cli_option options[] = {
    { "--data", "NAME", "another text, other images or another series than it was trained on" },
    { "--train", NULL, "the training split instead of the validation split" },
    { "--test", NULL, "the test split of a series" },
    { "--plot", "FILE", "a page of forecasts, and pictures beside it" },
    { "--noise", "R",
      "prove how far a forecast can move when each row moves by up to R, for rows no longer than the split's" },
    { "--windows", "N", "only N windows, or images, spread over the split (default: the whole split)" },
    { "--slide", "N", "the first N windows, one at every token; 1280: what the enforced paper validates on" },
    { "--batch", "N", "windows at a time" },
    { NULL, NULL, NULL },
};

const cli_command cli_eval = {
    "eval", "MODEL", "loss and accuracy of a model on its data", "taut eval runs/tiny --json", 1, 1, options, run,
};
