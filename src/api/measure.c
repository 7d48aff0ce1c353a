/* Measures a stored model: what slopes are at least (found, with a witness), what they are at most (proved), and what papers
 * print.  This file looks at the options and hands the work on. */
#include "api/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "measure/maps.h"
#include "train/batch.h"
#include "verdict/deviation.h"
#include "verdict/slopes.h"

taut_status taut_measure_range(const char *name, int64_t value, int64_t lo, int64_t hi)
{
    if (value >= lo && value <= hi) return TAUT_OK;
    return taut_fail(TAUT_BAD_CALL, "%s %lld is not a whole number from %lld to %lld", name, (long long)value,
                     (long long)lo, (long long)hi);
}

taut_status taut_measure_told(const taut_measuring *m, double done)
{
    return m->o->progress && m->o->progress(done, m->o->arg) ? taut_fail(TAUT_BAD_CALL, "stopped") : TAUT_OK;
}

static taut_status choose_map(taut_map *map, const char *name)
{
    int i = 0;
    while (name && i < TAUT_MAPS && strcmp(name, taut_map_names[i]) != 0) i++;
    *map = (taut_map)i;
    if (i < TAUT_MAPS) return TAUT_OK;
    const char *near = taut_nearest(name, taut_map_names, TAUT_MAPS);
    return taut_fail(TAUT_BAD_CALL, "no map is called %s (bare, attention, branch, residual, block)%s%s%s", name,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static taut_status choose_search(taut_slope_options *s, const taut_measure_options *o)
{
    const bool power = o->method && strcmp(o->method, "power") == 0;
    if (o->method && !power && strcmp(o->method, "lanczos") != 0)
        return taut_fail(TAUT_BAD_CALL, "method is lanczos or power, not %s", o->method);
    if (!(o->tolerance <= 1)) return taut_fail(TAUT_BAD_CALL, "tolerance %g is above 1", o->tolerance);
    const int64_t steps = o->steps ? o->steps : power ? 500 : 40;
    *s = (taut_slope_options){ power ? TAUT_SLOPE_POWER : TAUT_SLOPE_LANCZOS, (int)steps,
                               o->tolerance == 0 ? 1e-4 : fmax(o->tolerance, 0), o->seed ? o->seed : 1 };
    return taut_measure_range("steps", steps, 1, power ? 100000 : 128);
}

static taut_status check_options(taut_measuring *m, const taut_measure_options *o)
{
    taut_status s = taut_measure_range("what", (int64_t)o->what, TAUT_MEASURE_LAYERS, TAUT_MEASURE_DEVIATION);
    if (!s) s = choose_map(&m->map, o->map);
    if (!s) s = choose_search(&m->slope, o);
    if (!s && !(o->ball >= 0 && o->ball <= 1e30 && o->radius >= 0 && o->radius <= 1e30))
        s = taut_fail(TAUT_BAD_CALL, "ball %g, radius %g", o->ball, o->radius);
    if (!s) s = taut_measure_range("samples", o->samples, 0, 1000000);
    if (!s) s = taut_measure_range("tokens", o->tokens, 0, INT64_MAX);
    return s ? s : taut_measure_range("from", o->from, 0, INT64_MAX);
}

/* The whole network at many examples. */
static taut_status measure_network(cJSON **out, const taut_measuring *m, const taut_source *data)
{
    const taut_measure_options *o = m->o;
    taut_slopes found = { 0 };
    char *path = taut_model_path(m->model);
    taut_status s = path ? taut_slopes_find(&found, m->net->model, path, data, o->samples ? o->samples : 100, &m->slope,
                                            o->progress, o->arg)
                         : taut_no_memory("a path");
    if (!s && o->csv) s = taut_slopes_csv(&found, o->csv);
    if (!s) *out = taut_slopes_json(&found);
    taut_slopes_free(&found);
    free(path);
    return s;
}

static taut_status measure_deviation(cJSON **out, const taut_measuring *m, const taut_source *data)
{
    const taut_measure_options *o = m->o;
    taut_deviation found = { 0 };
    taut_status s = taut_deviation_find(&found, m->net->model, data, o->samples ? o->samples : 4, o->progress, o->arg);
    if (!s && o->csv) s = taut_deviation_csv(&found, o->csv);
    if (!s) *out = taut_deviation_json(&found, m->model);
    taut_deviation_free(&found);
    return s;
}

/* One example of the validation split through the model; of a text its first tokens. */
static taut_status run_input(taut_pass **pass, const taut_measuring *m, const taut_source *data)
{
    const int64_t all = taut_source_count(data, TAUT_VALID), longest = m->net->model->in.t, from = m->o->from;
    const int64_t tokens = m->o->tokens ? m->o->tokens : longest < 32 ? longest : 32;
    taut_batch b = { 0 };
    if (all < 1) return taut_fail(TAUT_BAD_DATA, "the validation split has no example");
    if (!data->task.tokens && m->o->tokens)
        return taut_fail(TAUT_BAD_CONFIG, "tokens is for texts: all inputs of %s have one length", m->model);
    taut_status s = taut_measure_range("tokens", tokens, 1, longest);
    if (!s) s = taut_measure_range("from", from, 0, all - 1);
    if (!s) s = taut_pass_create(pass, m->net->model, 1, longest, false);
    if (!s) s = taut_batch_create(&b, data, 0, 1);
    if (!s) {
        (void)taut_batch_windows(&b, TAUT_VALID, &from, 1);
        if (b.x)
            taut_pass_forward(*pass, b.x, 1, tokens);
        else
            taut_pass_forward_real(*pass, b.reals, 1);
    }
    taut_batch_free(&b);
    return s;
}

static cJSON *maps_json(const taut_maps *m)
{
    cJSON *list = cJSON_CreateArray();
    const int64_t n = m->tokens * m->tokens;
    for (int l = 0; l < m->layers; l++) {
        cJSON *layer = cJSON_CreateArray();
        for (int64_t h = 0; h < m->heads; h++) {
            cJSON *map = cJSON_CreateArray();
            for (int64_t i = 0; i < n; i++)
                cJSON_AddItemToArray(
                    map, cJSON_CreateNumber(round(1e4 * m->weight[((int64_t)l * m->heads + h) * n + i]) / 1e4));
            cJSON_AddItemToArray(layer, map);
        }
        cJSON_AddItemToArray(list, layer);
    }
    return list;
}

/* Whom each token listens to. */
static taut_status measure_maps(cJSON **out, const taut_measuring *m, const taut_source *data)
{
    taut_pass *pass = NULL;
    taut_maps maps = { 0 };
    taut_status s = run_input(&pass, m, data);
    if (!s) s = taut_maps_read(&maps, pass);
    if (!s && maps.layers == 0)
        s = taut_fail(TAUT_BAD_CONFIG, "%s has no attention with a map: softmax or by position", m->model);
    if (!s) {
        cJSON *o = *out = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "model", m->model);
        cJSON_AddStringToObject(o, "text", m->source);
        cJSON_AddNumberToObject(o, "tokens", (double)maps.tokens);
        cJSON_AddItemToObject(o, "maps", maps_json(&maps));
    }
    taut_maps_free(&maps);
    taut_pass_free(pass);
    return s;
}

/* Those that read examples of the validation split. */
static taut_status measure_on_data(cJSON **out, const taut_measuring *m)
{
    taut_source *data = NULL;
    taut_status s = taut_net_source(&data, m->net, m->o->data);
    if (!s && m->o->what == TAUT_MEASURE_NETWORK) s = measure_network(out, m, data);
    if (!s && m->o->what == TAUT_MEASURE_MAPS) s = measure_maps(out, m, data);
    if (!s && m->o->what == TAUT_MEASURE_DEVIATION) s = measure_deviation(out, m, data);
    taut_source_free(data);
    return s;
}

taut_status taut_measure_file(char **json, const char *model, const taut_measure_options *options)
{
    taut_measure_options o;
    taut_measuring m = { .o = &o, .model = model };
    cJSON *found = NULL;
    NEED(json);
    *json = NULL;
    NEED(model);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = check_options(&m, &o);
    if (s) return s;
    const taut_open_options how = { .size = sizeof how, .kernels = o.kernels, .seed = o.seed };
    s = taut_net_open(&m.net, model, &how);
    if (s) return s;
    m.source = o.adversarial ? "adversarial tokens" : o.data ? o.data : m.net->data.source;
    if (m.net->model->spec.arch == TAUT_ARCH_FORECASTER && o.what != TAUT_MEASURE_DEVIATION)
        s = taut_fail(TAUT_BAD_CONFIG, "%s is a forecaster: only its deviation can be measured", model);
    else if (o.what == TAUT_MEASURE_LAYERS)
        s = taut_measure_layers(&found, &m);
    else if (o.what == TAUT_MEASURE_LENGTHS)
        s = taut_measure_lengths(&found, &m);
    else
        s = measure_on_data(&found, &m);
    taut_net_free(m.net);
    return taut_json_out(json, found, s);
}
