/* What a stored forecaster says of the rows behind the newest of a table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/net.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "bound/ledger.h"
#include "data/table.h"
#include "verdict/future.h"

/* Other rules for holes than those that the model was trained with, and nothing else: all else is the model's. */
static taut_status read_rules(taut_series_spec *spec, const taut_forecast_options *o)
{
    taut_config *cfg = NULL;
    if (o->count == 0) return TAUT_OK;
    taut_status s = taut_config_parse(&cfg, "", "rules for the table");
    if (!s) s = taut_overrides_apply(cfg, o->overrides, o->count);
    if (!s) {
        taut_series_rules_read(spec, cfg);
        s = taut_config_finish(cfg);
        if (s) s = taut_fail(s, "%s (rules for a table: data.missing, gaps, repeats, constant)", taut_last_error());
    }
    taut_config_free(cfg);
    return s;
}

/* The newest rows of the table, read as the model learned to read. */
static taut_status open_table(taut_series **out, taut_series_spec *rules, const taut_net *net,
                              const taut_forecast_options *o)
{
    const taut_model_spec *m = &net->model->spec;
    taut_series_spec spec = taut_recipe_series(&net->data);
    if (!m->ahead)
        return taut_fail(TAUT_BAD_DATA, "forecasts are made by forecasters, not by a %s", taut_arch_name(m->arch));
    if (!spec.means || !spec.deviations || !spec.columns || !spec.step)
        return taut_fail(TAUT_BAD_DATA, "this model's file does not say what its columns are: train it again");
    const taut_status s = read_rules(&spec, o);
    if (s) return s;
    spec.source = o->data ? o->data : spec.source;
    spec.newest = m->seq < 2 ? 2 : m->seq;
    *rules = spec;
    return taut_series_open(out, &spec);
}

static cJSON *numbers(const double *from, int64_t step, int64_t count)
{
    cJSON *list = cJSON_CreateArray();
    for (int64_t i = 0; i < count; i++)
        cJSON_AddItemToArray(list, isfinite(from[i * step]) ? cJSON_CreateNumber(from[i * step])
                                                            : cJSON_CreateString(from[i * step] > 0 ? "inf" : "-inf"));
    return list;
}

static void add_columns(cJSON *o, const taut_future *f, const taut_series *s)
{
    cJSON *list = cJSON_AddArrayToObject(o, "columns");
    for (int64_t c = 0; c < f->cols; c++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", s->name[s->target[c]]);
        cJSON_AddItemToObject(one, "values", numbers(f->said + c, f->cols, f->rows));
        if (f->noise > 0) {
            cJSON_AddItemToObject(one, "low", numbers(f->low + c, f->cols, f->rows));
            cJSON_AddItemToObject(one, "high", numbers(f->high + c, f->cols, f->rows));
            cJSON_AddItemToObject(one, "moves", up_json(f->moves[c]));
            cJSON_AddNumberToObject(one, "deviation", s->std[s->target[c]]);
        }
        cJSON_AddItemToArray(list, one);
    }
}

static cJSON *describe(const taut_future *f, const taut_series *s, const taut_series_spec *spec, int64_t rows)
{
    char text[TAUT_ABOUT_ROOM], date[TAUT_DATE_ROOM], note[TAUT_SERIES_NOTE];
    cJSON *o = cJSON_CreateObject(), *dates;
    cJSON_AddStringToObject(o, "model", f->model);
    cJSON_AddStringToObject(o, "data", spec->source);
    cJSON_AddNumberToObject(o, "rows_read", (double)rows);
    if (*taut_series_note(note, s, spec)) cJSON_AddStringToObject(o, "repaired", note);
    cJSON_AddStringToObject(o, "last", taut_date_print(date, s->last));
    cJSON_AddStringToObject(o, "step", taut_stride_print(date, s->stride));
    if (f->noise > 0) {
        const bool proved = !*f->why;
        cJSON_AddNumberToObject(o, "noise", f->noise);
        cJSON_AddBoolToObject(o, "proved", proved);
        cJSON_AddStringToObject(o, proved ? "about" : "no_constant",
                                proved ? taut_about_text(text, &f->about) : f->why);
    }
    dates = cJSON_AddArrayToObject(o, "dates");
    for (int64_t i = 1; i <= f->rows; i++)
        cJSON_AddItemToArray(dates, cJSON_CreateString(taut_date_print(date, taut_date_later(s->last, s->stride, i))));
    add_columns(o, f, s);
    return o;
}

/* date,a,a low,a high,b,...: every digit. */
static taut_status write_table(const taut_future *f, const taut_series *s, const char *path)
{
    const bool band = f->noise > 0;
    size_t room = 64;
    for (int64_t c = 0; c < f->cols; c++) room += 3 * (2 * strlen(s->name[s->target[c]]) + 16);
    room += (size_t)f->rows * (TAUT_DATE_ROOM + (size_t)f->cols * 3 * 33);
    char *text = taut_malloc(room), *p = text;
    if (!text) return taut_no_memory(path);
    p += sprintf(p, "date");
    for (int64_t i = 0; i < f->cols * (band ? 3 : 1); i++) {
        static const char *const ends[] = { "", " low", " high" };
        char *name = taut_malloc(strlen(s->name[s->target[band ? i / 3 : i]]) + 8);
        if (!name) return free(text), taut_no_memory(path);
        sprintf(name, "%s%s", s->name[s->target[band ? i / 3 : i]], band ? ends[i % 3] : "");
        *p++ = ',';
        p = taut_cell_put(p, name);
        free(name);
    }
    for (int64_t i = 0; i < f->rows * f->cols; i++) {
        char date[TAUT_DATE_ROOM], number[3][32];
        if (i % f->cols == 0)
            p += sprintf(p, "\n%s", taut_date_print(date, taut_date_later(s->last, s->stride, i / f->cols + 1)));
        p += sprintf(p, ",%s", taut_number_print(number[0], f->said[i]));
        if (band)
            p += sprintf(p, ",%s,%s", taut_number_print(number[1], f->low[i]),
                         taut_number_print(number[2], f->high[i]));
    }
    *p++ = '\n';
    const taut_status status = taut_file_write(path, text, (size_t)(p - text));
    free(text);
    return status;
}

taut_status taut_forecast_file(char **json, const char *model, const taut_forecast_options *options)
{
    taut_forecast_options o;
    taut_net *net = NULL;
    taut_series *series = NULL;
    NEED(json);
    *json = NULL;
    NEED(model);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s && !(o.noise >= 0 && o.noise <= 1e9)) s = taut_fail(TAUT_BAD_CALL, "noise %g", o.noise);
    if (!s) s = taut_net_open(&net, model, NULL);
    taut_series_spec spec = { 0 };
    if (!s) s = open_table(&series, &spec, net, &o);
    if (s) return taut_net_free(net), s;
    char *path = taut_model_path(model);
    taut_future f = { .noise = o.noise };
    s = path ? taut_future_make(&f, path, series) : taut_no_memory("a path");
    if (s == TAUT_BAD_DATA) s = taut_fail(s, "%s: %s", spec.source, taut_last_error());
    cJSON *answer = s ? NULL : describe(&f, series, &spec, net->model->spec.seq);
    if (!s && o.csv) s = write_table(&f, series, o.csv);
    taut_future_free(&f);
    taut_series_free(series);
    taut_net_free(net);
    free(path);
    return taut_json_out(json, answer, s);
}
