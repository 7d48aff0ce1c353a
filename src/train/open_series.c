/* The series of a forecaster: what it says for the recipe, and its windows.
 *
 * A series describes itself: the names, means and deviations of its columns and its step become keys of the resolved recipe,
 * which the model's file holds.  So a table that comes later is read by name and on the scale that the model learned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "data/names.h"
#include "data/series.h"
#include "train/recipe.h"

static const char *text_of(taut_config *cfg, const char *key)
{
    return taut_config_has(cfg, key) ? taut_config_text(cfg, key, "") : NULL;
}

static int choice_of(taut_config *cfg, const char *key, const char *choices, int else_)
{
    return taut_config_has(cfg, key) ? taut_config_choice(cfg, key, choices, else_) : else_;
}

void taut_series_rules_read(taut_series_spec *s, taut_config *cfg)
{
    s->missing = (taut_missing)choice_of(cfg, "data.missing", "refuse|hold|interpolate", (int)s->missing);
    s->gaps = (taut_gaps)choice_of(cfg, "data.gaps", "refuse|join|fill", (int)s->gaps);
    s->repeats = (taut_repeats)choice_of(cfg, "data.repeats", "refuse|first|last", (int)s->repeats);
    s->keep_constant = choice_of(cfg, "data.constant", "refuse|keep", s->keep_constant);
}

/* What a series says of itself is asked for last, so that the resolved recipe has one order, whoever gave the keys. */
void taut_series_spec_read(taut_series_spec *s, taut_config *cfg)
{
    s->full = choice_of(cfg, "data.protocol", "informer2020|full", 0);
    taut_series_rules_read(s, cfg);
    s->targets = text_of(cfg, "data.targets");
    s->columns = text_of(cfg, "data.columns");
    s->means = text_of(cfg, "data.means");
    s->deviations = text_of(cfg, "data.deviations");
    s->step = text_of(cfg, "data.step");
}

taut_series_spec taut_recipe_series(const taut_data_spec *d)
{
    taut_series_spec s = d->series;
    s.source = d->source, s.length = d->length, s.seed = d->seed;
    return s;
}

/* The numbers to the bit, with blanks between them. */
static char *print_numbers(const double *x, int64_t count)
{
    char *text = taut_malloc((size_t)(33 * count) + 1), *p = text;
    for (int64_t i = 0; text && i < count; i++) {
        if (i) *p++ = ' ';
        taut_number_print(p, x[i]);
        p += strlen(p);
    }
    return text;
}

static taut_status give_count(taut_config *cfg, const char *key, int64_t count)
{
    char value[32];
    snprintf(value, sizeof value, "%lld", (long long)count);
    return taut_recipe_give(cfg, key, value);
}

static taut_status describe(taut_config *cfg, const taut_series *x)
{
    char *names = NULL, *means = print_numbers(x->mean, x->cols), *deviations = print_numbers(x->std, x->cols);
    char step[TAUT_DATE_ROOM];
    taut_status s = taut_names_print(&names, x->name, x->cols);
    if (!s && (!means || !deviations)) s = taut_no_memory("a series");
    if (!s) s = taut_recipe_give(cfg, "data.columns", names);
    if (!s) s = taut_recipe_give(cfg, "data.means", means);
    if (!s) s = taut_recipe_give(cfg, "data.deviations", deviations);
    if (!s) s = taut_recipe_give(cfg, "data.step", taut_stride_print(step, x->stride));
    if (!s) s = give_count(cfg, "model.columns", x->cols);
    if (!s) s = give_count(cfg, "model.marks", x->marks);
    if (!s && x->targets < x->cols) s = give_count(cfg, "model.targets", x->targets);
    free(names);
    free(means);
    free(deviations);
    return s;
}

taut_status taut_recipe_series_defaults(taut_config *cfg)
{
    static const char *const keys[] = { "data.columns", "data.means",    "data.deviations",
                                        "data.step",    "model.columns", "model.marks" };
    taut_data_spec d;
    taut_series *series = NULL;
    bool said = true;
    taut_status s = taut_recipe_give(cfg, "data.source", "waves");
    if (!s) s = taut_recipe_give(cfg, "data.length", "4000");
    for (int i = 0; i < 6; i++) said = said && taut_config_has(cfg, keys[i]);
    if (s || said) return s;
    taut_data_spec_read(&d, cfg);
    const taut_series_spec spec = taut_recipe_series(&d);
    s = taut_config_problem(cfg);
    if (!s) s = taut_series_open(&series, &spec);
    if (!s) s = describe(cfg, series);
    taut_series_free(series);
    return s;
}

taut_status taut_recipe_series_source(taut_source **out, const taut_data_spec *d, const taut_model_spec *m)
{
    taut_series *series = NULL;
    const taut_series_spec spec = taut_recipe_series(d);
    const taut_status s = taut_series_open(&series, &spec);
    if (s) return s;
    const int64_t cols = series->cols, marks = series->marks, targets = series->targets;
    if (cols == m->columns && marks == m->marks && targets == m->classes)
        return taut_source_series(out, series, m->seq, m->label, m->ahead);
    taut_series_free(series);
    return taut_fail(
        TAUT_BAD_DATA,
        "%s: rows of %lld columns and %lld time features, %lld of them forecast; the model reads %lld and %lld, "
        "and forecasts %lld",
        d->source, (long long)cols, (long long)marks, (long long)targets, (long long)m->columns, (long long)m->marks,
        (long long)m->classes);
}
