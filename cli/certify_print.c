/* A certificate in words and numbers: the waterfall, the constant and its region, how empty it is, certified accuracy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bound/print.h"
#include "certify.h"
#include "certify/units.h"
#include "cli.h"
#include "report/waterfall.h"

enum { FALLS = 1024 };

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double margin_of(const taut_predictions *s, int64_t i)
{
    return s->example[i].predicted >= 0 ? s->example[i].margin : 0; /* no answer is ahead of none */
}
static double radius_of(const taut_predictions *s, int64_t i) { return s->example[i].radius.v; }
static double local_lip(const taut_predictions *s, int64_t i) { return s->local[i].lip.v; }
static double local_radius(const taut_predictions *s, int64_t i) { return s->local[i].radius.v; }

static double median_of(const taut_predictions *s, double (*number)(const taut_predictions *, int64_t))
{
    double *m = taut_malloc((size_t)(s->count + 1) * sizeof *m);
    if (!m || s->count == 0) {
        free(m);
        return NAN;
    }
    for (int64_t i = 0; i < s->count; i++) m[i] = number(s, i);
    qsort(m, (size_t)s->count, sizeof *m, by_size);
    const double middle = m[s->count / 2];
    free(m);
    return middle;
}

static double median_margin(const taut_predictions *s) { return median_of(s, margin_of); }
static double median_radius(const taut_predictions *s) { return median_of(s, radius_of); }

static void print_falls(const taut_certificate *c)
{
    static taut_fall rows[FALLS];
    const int all = taut_waterfall(rows, FALLS, cJSON_GetObjectItem(c->json, "proof")),
              count = all < FALLS ? all : FALLS;
    taut_up product = { 1 };
    char lip[32], so_far[32], out[32];
    printf("  %-26s %-10s %12s %12s %12s\n", "layer", "rule", "times", "so far", "tokens within");
    for (int i = 0; i < count; i++) {
        product = up_mul(product, (taut_up){ rows[i].lip });
        printf("  %-26s %-10s %12s %12s %12s\n", rows[i].path, rows[i].rule, up_text(lip, (taut_up){ rows[i].lip }),
               up_text(so_far, product), up_text(out, (taut_up){ rows[i].out }));
    }
}

static void print_vacuity(const taut_certificate *c, const taut_predictions *s)
{
    char lip[32], radius[32];
    printf("how empty is it?  pairs of inputs move the logits by up to %.3g a unit, the bound allows %s", s->pair,
           up_text(lip, c->lip));
    if (s->pair > 0 && isfinite(c->lip.v)) printf(" (%.3g times as much)", c->lip.v / s->pair);
    printf(";\n  the median margin is %.3g, the median certified radius %s, the longest input %.3g\n", median_margin(s),
           taut_number_down(radius, median_radius(s)), taut_model_reach(c->model).v);
}

/* What the first node that has no constant says of it; NULL: it says nothing. */
static const char *reason_in(const cJSON *node)
{
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItem(node, "reason"));
    const cJSON *child;
    cJSON_ArrayForEach(child, cJSON_GetObjectItem(node, "of")) why = why ? why : reason_in(child);
    return why;
}

static void print_why_not(const taut_certificate *c)
{
    const taut_model_spec *s = &c->model->spec;
    const char *why = reason_in(cJSON_GetObjectItem(c->json, "proof"));
    if (isfinite(c->lip.v)) return;
    if (!taut_model_finite(c->model))
        printf("  no finite constant: a weight is NaN or infinite\n");
    else if (s->norm_eps == 0 && (s->norm == TAUT_NORM_LAYER || s->norm == TAUT_NORM_RMS))
        printf("  no finite constant: model.norm_eps = 0, and such a norm layer is arbitrarily steep near a constant "
               "token\n");
    else if (why)
        printf("  no finite constant: %s\n", why);
    else if (s->ahead && !isfinite(c->rows.v))
        printf("  no finite constant for rows of any length; --rows R proves one for rows up to R\n");
    else
        printf("  no finite constant: the layers with inf above say where\n");
}

static void print_units(const taut_certificate *c)
{
    taut_unit unit[TAUT_UNITS];
    char lip[32], factor[32];
    taut_units(unit, c);
    printf("the same constant in other units (--norm proves its own, usually smaller):\n");
    for (int i = 0; i < TAUT_UNITS; i++)
        printf("  norm %-6s %-4s %12s  times %-10s %s\n", unit[i].norm == TAUT_NORM_FLAT ? "flat" : "tokens",
               unit[i].rms ? "RMS" : "l2", up_text(lip, unit[i].lip), up_text(factor, unit[i].factor), unit[i].reason);
}

/* What holds near each example. */
static void print_local(const taut_certificate *c, const taut_predictions *s)
{
    char room[32], lip[32], all[32], radius[32];
    printf("around each example, moved by up to %s: %s-Lipschitz in the median (everywhere: %s), median certified "
           "radius %s\n",
           taut_number_down(room, c->room.v), up_text(lip, (taut_up){ median_of(s, local_lip) }), up_text(all, c->lip),
           taut_number_down(radius, median_of(s, local_radius)));
}

/* The constant of a map from the series itself: the rows that the decoder knows stand twice in an input. */
static taut_up up_series(const taut_certificate *c)
{
    const bool twice = c->norm == TAUT_NORM_FLAT && c->model->spec.label > 0;
    return twice ? up_mul(c->lip, up_sqrt((taut_up){ 2 })) : c->lip;
}

void certify_print(const taut_certificate *c, const taut_predictions *s, const double *radii, int count, bool units)
{
    char lip[32], rms[32], room[32], about[TAUT_ABOUT_ROOM];
    const taut_about inputs = taut_certificate_about(c);
    const bool series = c->model->spec.arch == TAUT_ARCH_FORECASTER;
    print_falls(c);
    printf("proved: %s-Lipschitz from %s, norm %s, l2 (%s in RMS units)\n", up_text(lip, c->lip),
           c->model->embed.rows ? "embeddings to logits"
           : series             ? "rows to forecasts"
                                : "pixels to logits",
           c->norm == TAUT_NORM_FLAT ? "flat" : "tokens", up_text(rms, up_model_rms(c->model, c->norm, c->lip)));
    printf("  %s%s\n", taut_about_text(about, &inputs), c->room.v > 0 ? " (--radius 0: not moved)" : "");
    if (series && up_series(c).v > c->lip.v)
        printf("  %s-Lipschitz from the series: the rows that the decoder knows stand twice in an input\n",
               up_text(lip, up_series(c)));
    if (units) print_units(c);
    print_why_not(c);
    if (s->count == 0) return;
    if (s->silent < s->count) print_vacuity(c, s);
    if (s->silent)
        printf("no answer to %lld of %lld examples, which count as wrong: %s\n", (long long)s->silent,
               (long long)s->count, s->why);
    if (s->local) print_local(c, s);
    for (int i = 0; i < (c->room.v > 0 ? count : 1); i++)
        printf("%s %-10s %6.2f %%  of %lld examples\n",
               radii[i] == 0 ? "accuracy, nothing moved  " : "certified, moved less than",
               taut_number_down(room, radii[i]), 100 * taut_predictions_accuracy(s, radii[i]), (long long)s->count);
}

/* What the data say of each example that the certificate has: those with a finite margin. */
static void add_targets(cJSON *o, const taut_predictions *s)
{
    cJSON *one;
    int64_t i = 0;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(o, "examples"))
    {
        while (!isfinite(s->example[i].margin)) i++;
        cJSON_AddNumberToObject(one, "target", s->example[i++].target);
    }
}

int certify_print_json(const taut_certificate *c, const taut_predictions *s, const double *radii, int count)
{
    cJSON *o = cJSON_Duplicate(c->json, true);
    cJSON *list = cJSON_AddArrayToObject(o, "certified_accuracy");
    cJSON_AddItemToObject(o, "lip_rms", up_json(up_model_rms(c->model, c->norm, c->lip)));
    if (c->model->spec.ahead) cJSON_AddItemToObject(o, "lip_series", up_json(up_series(c)));
    for (int i = 0; s->count && i < count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "radius", radii[i]);
        cJSON_AddNumberToObject(row, "accuracy", taut_predictions_accuracy(s, radii[i]));
        cJSON_AddItemToArray(list, row);
    }
    add_targets(o, s);
    taut_unit unit[TAUT_UNITS];
    cJSON *units = cJSON_AddArrayToObject(o, "units");
    taut_units(unit, c);
    for (int i = 0; i < TAUT_UNITS; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "norm", unit[i].norm == TAUT_NORM_FLAT ? "flat" : "tokens");
        cJSON_AddStringToObject(row, "unit", unit[i].rms ? "rms" : "l2");
        cJSON_AddItemToObject(row, "factor", up_json(unit[i].factor));
        cJSON_AddItemToObject(row, "lip", up_json(unit[i].lip));
        cJSON_AddItemToArray(units, row);
    }
    cJSON *near = s->local ? cJSON_AddArrayToObject(o, "local") : NULL;
    for (int64_t i = 0; near && i < s->count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToObject(row, "lip", up_json(s->local[i].lip));
        cJSON_AddNumberToObject(row, "radius", s->local[i].radius.v);
        cJSON_AddItemToArray(near, row);
    }
    if (s->silent) {
        cJSON_AddNumberToObject(o, "abstained", (double)s->silent);
        cJSON_AddStringToObject(o, "why", s->why);
    }
    if (s->count) {
        cJSON_AddNumberToObject(o, "n_ex", (double)s->count);
        cJSON_AddNumberToObject(o, "pair_ratio", s->pair);
        cJSON_AddNumberToObject(o, "median_margin", median_margin(s));
    }
    return cli_json(o);
}
