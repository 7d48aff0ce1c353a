/* How good a stored model is on its data; of a forecaster also one forecast, and how far noise can move one. */
#include "train/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/net.h"
#include "base/alloc.h"
#include "bound/ledger.h"
#include "data/text.h"
#include "report/run.h"
#include "train/forecast.h"
#include "verdict/noise.h"

typedef struct {
    taut_net *net;
    taut_source *data;
    taut_pass *pass;
    taut_batch batch;
    taut_split split;
    const char *source, *name; /* of the data and of the split */
    int64_t rows;              /* at a time */
} exam;

static taut_status check_options(exam *e, const taut_evaluate_options *o)
{
    static const char *const names[] = { "training", "validation", "test" };
    const int64_t most = o->examples > 0 && o->examples < 16 ? o->examples
                                                             : 16; /* memory for no more than are asked for */
    int split = 0;
    e->name = o->split ? o->split : names[TAUT_VALID];
    while (split < 3 && strcmp(e->name, names[split]) != 0) split++;
    if (split == 3) return taut_fail(TAUT_BAD_CALL, "no split is called %s (training, validation, test)", e->name);
    if (o->examples < 0 || o->slide < 0 || o->batch < 0 || o->batch > 64)
        return taut_fail(TAUT_BAD_CALL, "%lld examples, slide %lld, batch %lld", (long long)o->examples,
                         (long long)o->slide, (long long)o->batch);
    if (!(o->noise >= 0 && o->noise <= 1e9)) return taut_fail(TAUT_BAD_CALL, "noise %g", o->noise);
    e->split = (taut_split)split;
    e->rows = o->batch ? o->batch : most;
    return TAUT_OK;
}

static taut_status open_exam(exam *e, const char *model, const taut_evaluate_options *o)
{
    taut_status s = taut_net_open(
        &e->net, model,
        &(taut_open_options){ .size = sizeof(taut_open_options), .kernels = o->kernels, .seed = o->seed });
    if (!s) s = taut_net_predicts(e->net);
    if (s) return s;
    e->source = o->data ? o->data : e->net->data.source;
    s = taut_net_source(&e->data, e->net, e->source);
    if (!s && o->slide && !taut_source_slide(e->data, o->slide))
        s = taut_fail(TAUT_BAD_DATA, "slide is for models that predict the next token of a text");
    if (!s && e->split == TAUT_TEST && !e->data->task.reals)
        s = taut_fail(TAUT_BAD_DATA, "the test split is for forecasters: %s has no third split", e->source);
    if (!s && taut_source_count(e->data, e->split) == 0)
        s = taut_fail(TAUT_BAD_DATA, "%s: nothing to predict in its %s split", e->source, e->name);
    if (!s && (o->page || o->noise > 0) && !e->data->task.reals)
        s = taut_fail(TAUT_BAD_DATA, "pages and noise are for forecasters");
    if (!s) s = taut_pass_create(&e->pass, e->net->model, e->rows, e->net->model->in.t, false);
    return s ? s : taut_batch_create(&e->batch, e->data, 0, e->rows);
}

static void close_exam(exam *e)
{
    taut_batch_free(&e->batch);
    taut_pass_free(e->pass);
    taut_source_free(e->data);
    taut_net_free(e->net);
}

/* What is proved of noise, and what was found. */
static taut_status add_noise(cJSON *o, const exam *e, const char *model, double size)
{
    taut_noise n = { .noise = size };
    char *path = taut_model_path(model), about[TAUT_ABOUT_ROOM];
    const taut_status s = path ? taut_noise_prove(&n, path, e->data, e->split) : taut_no_memory("a path");
    free(path);
    if (s) return s;
    cJSON_AddStringToObject(o, "model", n.model);
    cJSON_AddNumberToObject(o, "noise", n.noise);
    cJSON_AddNumberToObject(o, "rows", n.about.rows);
    cJSON_AddItemToObject(o, "moves", up_json(n.moves));
    cJSON_AddNumberToObject(o, "found", n.found);
    cJSON_AddItemToObject(o, "rounding", up_json(n.slack));
    cJSON_AddStringToObject(o, "about", taut_about_text(about, &n.about));
    cJSON_AddBoolToObject(o, "contradiction", taut_noise_beaten(&n));
    return TAUT_OK;
}

static void add_score(cJSON *o, const taut_evaluation *e, const char *counted)
{
    const bool series = !isnan(e->mae);
    cJSON_AddStringToObject(o, "counted", counted);
    cJSON_AddNumberToObject(o, "targets", (double)e->targets);
    cJSON_AddNumberToObject(o, "windows", (double)e->windows);
    cJSON_AddNumberToObject(o, series ? "mse" : "loss", e->loss);
    cJSON_AddNumberToObject(o, series ? "mae" : "accuracy", series ? e->mae : e->accuracy);
    if (strcmp(counted, "tokens") == 0) cJSON_AddNumberToObject(o, "perplexity", exp(e->loss));
}

/* A page of forecasts, and an .svg beside it for each. */
static taut_status draw(const cJSON *o, const char *path)
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

taut_status taut_evaluate_file(char **json, const char *model, const taut_evaluate_options *options)
{
    taut_evaluate_options o;
    taut_evaluation score = { 0 };
    exam e = { 0 };
    NEED(json);
    *json = NULL;
    NEED(model);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = check_options(&e, &o);
    if (s) return s;
    s = open_exam(&e, model, &o);
    if (!s) s = taut_evaluate(&score, e.pass, &e.batch, e.split, o.examples, e.rows);
    if (!s && !isfinite(score.loss)) s = taut_fail(TAUT_NOT_FINITE, "%s: the loss is not finite", model);
    cJSON *found = cJSON_CreateObject();
    if (!s) {
        cJSON_AddStringToObject(found, "data", e.source);
        cJSON_AddStringToObject(found, "split", e.name);
        add_score(found, &score, taut_task_counts(&e.data->task));
    }
    if (!s && o.noise > 0) s = add_noise(found, &e, model, o.noise);
    if (!s && e.data->task.reals) s = taut_forecast_add(found, e.pass, &e.batch, e.split);
    if (!s && o.page) s = draw(found, o.page);
    close_exam(&e);
    return taut_json_out(json, found, s);
}
