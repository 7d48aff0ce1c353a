#include "verdict/account.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/ascending.h"
#include "bound/ledger.h"
#include "certify/units.h"

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
    qsort(m, (size_t)s->count, sizeof *m, taut_ascending);
    const double middle = m[s->count / 2];
    free(m);
    return middle;
}

/* What the first node that has no constant says of it; NULL: it says nothing. */
static const char *reason_in(const cJSON *node)
{
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItem(node, "reason"));
    const cJSON *child;
    cJSON_ArrayForEach(child, cJSON_GetObjectItem(node, "of")) why = why ? why : reason_in(child);
    return why;
}

const char *taut_why_not(char line[TAUT_WHY_ROOM], const taut_certificate *c)
{
    const taut_model_spec *s = &c->model->spec;
    const char *why = reason_in(cJSON_GetObjectItem(c->json, "proof"));
    if (!taut_model_finite(c->model))
        why = "a weight is NaN or infinite";
    else if (s->norm_eps == 0 && (s->norm == TAUT_NORM_LAYER || s->norm == TAUT_NORM_RMS))
        why = "model.norm_eps = 0, and such a norm layer is arbitrarily steep near a constant token";
    if (!why && s->ahead && !isfinite(c->rows.v))
        snprintf(line, TAUT_WHY_ROOM,
                 "no finite constant for rows of any length; --rows R proves one for rows up to R");
    else
        snprintf(line, TAUT_WHY_ROOM, "no finite constant: %s", why ? why : "the layers with inf above say where");
    return line;
}

/* The constant of a map from the series itself: the rows that the decoder knows stand twice in an input. */
static taut_up up_series(const taut_certificate *c)
{
    const bool twice = c->norm == TAUT_NORM_FLAT && c->model->spec.label > 0;
    return twice ? up_mul(c->lip, up_sqrt((taut_up){ 2 })) : c->lip;
}

static void add_accuracy(cJSON *o, const taut_certificate *c, const taut_predictions *s)
{
    const double room = c->room.v, radii[] = { 0, room / 64, room / 16, room / 4, room };
    cJSON *list = cJSON_AddArrayToObject(o, "certified_accuracy");
    for (int i = 0; s->count && !c->model->spec.headless && i < 5; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "radius", radii[i]);
        cJSON_AddNumberToObject(row, "accuracy", taut_predictions_accuracy(s, radii[i]));
        if (c->tolerance > 0) cJSON_AddNumberToObject(row, "exact", taut_predictions_exact(s, radii[i]));
        cJSON_AddItemToArray(list, row);
    }
}

/* Of images: where every number of d moves by at most e, all of them together move by at most sqrt(d) e, and a radius above that
 * covers it.  For e = 1/255, 2/255, ... as far as the room goes. */
static void add_linf(cJSON *o, const taut_certificate *c, const taut_predictions *s)
{
    const taut_pixels_spec *image = &c->model->spec.image;
    const taut_up root = up_sqrt(up_int(image->height * image->width * image->channels));
    cJSON *list = cJSON_AddArrayToObject(o, "linf_accuracy");
    for (int levels = 1; s->count && !c->model->spec.headless && levels <= 16; levels *= 2) {
        const taut_up e = up_div(up_int(levels), (taut_lo){ 255 });
        const double above = nextafter(up_mul(root, e).v, INFINITY);
        if (above > c->room.v) break;
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "levels", levels);
        cJSON_AddNumberToObject(row, "l2", above);
        cJSON_AddNumberToObject(row, "accuracy", taut_predictions_accuracy(s, above));
        cJSON_AddItemToArray(list, row);
    }
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

static void add_units(cJSON *o, const taut_certificate *c)
{
    taut_unit unit[TAUT_UNITS];
    cJSON *units = cJSON_AddArrayToObject(o, "units");
    taut_units(unit, c);
    for (int i = 0; i < TAUT_UNITS; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "norm", unit[i].norm == TAUT_NORM_FLAT ? "flat" : "tokens");
        cJSON_AddStringToObject(row, "unit", unit[i].rms ? "rms" : "l2");
        cJSON_AddItemToObject(row, "factor", up_json(unit[i].factor));
        cJSON_AddItemToObject(row, "lip", up_json(unit[i].lip));
        cJSON_AddStringToObject(row, "reason", unit[i].reason);
        cJSON_AddItemToArray(units, row);
    }
}

/* The share of right answers that stay, by the constants near each example. */
static double local_accuracy(const taut_predictions *s, double r)
{
    int64_t good = 0;
    for (int64_t i = 0; i < s->count; i++)
        good += s->example[i].predicted == s->example[i].target && s->local[i].radius.v >= r;
    return (double)good / (double)s->count;
}

/* At the median radius, which half of all answers reach, and at those of the other table. */
static void add_local_accuracy(cJSON *o, const taut_predictions *s, double room)
{
    const double radii[] = { median_of(s, local_radius), room / 64, room / 16, room / 4, room };
    cJSON *list = cJSON_AddArrayToObject(o, "local_accuracy");
    for (int i = 0; i < 5; i++) {
        if (!(radii[i] > 0)) continue;
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "radius", radii[i]);
        cJSON_AddNumberToObject(row, "accuracy", local_accuracy(s, radii[i]));
        cJSON_AddItemToArray(list, row);
    }
}

/* What holds near each example. */
static void add_local(cJSON *o, const taut_predictions *s, double room, bool features)
{
    cJSON *near = cJSON_AddArrayToObject(o, "local");
    for (int64_t i = 0; i < s->count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToObject(row, "lip", up_json(s->local[i].lip));
        if (!features) cJSON_AddNumberToObject(row, "radius", s->local[i].radius.v);
        cJSON_AddItemToArray(near, row);
    }
    cJSON_AddItemToObject(o, "median_local_lip", up_json((taut_up){ median_of(s, local_lip) }));
    if (features) return;
    cJSON_AddNumberToObject(o, "median_local_radius", median_of(s, local_radius));
    add_local_accuracy(o, s, room);
}

static void add_examples(cJSON *o, const taut_certificate *c, const taut_predictions *s)
{
    if (s->local) add_local(o, s, c->room.v, c->model->spec.headless);
    if (s->silent) {
        cJSON_AddNumberToObject(o, "abstained", (double)s->silent);
        cJSON_AddStringToObject(o, "why", s->why);
    }
    cJSON_AddNumberToObject(o, "n_ex", (double)s->count);
    cJSON_AddNumberToObject(o, "pair_ratio", s->pair);
    if (!c->model->spec.headless) {
        cJSON_AddNumberToObject(o, "median_margin", median_of(s, margin_of));
        cJSON_AddNumberToObject(o, "median_radius", median_of(s, radius_of));
    }
    cJSON_AddItemToObject(o, "longest_input", up_json(taut_model_reach(c->model)));
}

static void add_image(cJSON *o, const taut_pixels_spec *image)
{
    cJSON *size = cJSON_AddObjectToObject(o, "image");
    cJSON_AddNumberToObject(size, "height", (double)image->height);
    cJSON_AddNumberToObject(size, "width", (double)image->width);
    cJSON_AddNumberToObject(size, "channels", (double)image->channels);
}

cJSON *taut_account(const taut_certificate *c, const taut_predictions *s)
{
    char text[TAUT_ABOUT_ROOM], why[TAUT_WHY_ROOM];
    const taut_about about = taut_certificate_about(c);
    cJSON *o = cJSON_Duplicate(c->json, true);
    add_accuracy(o, c, s);
    cJSON_AddItemToObject(o, "lip_rms", up_json(up_model_rms(c->model, c->norm, c->lip)));
    if (c->model->spec.ahead) cJSON_AddItemToObject(o, "lip_series", up_json(up_series(c)));
    add_targets(o, s);
    add_units(o, c);
    if (c->model->spec.image.height) {
        add_image(o, &c->model->spec.image);
        add_linf(o, c, s);
    }
    cJSON_AddStringToObject(o, "maps",
                            c->model->spec.headless ? "embeddings to features"
                            : c->model->embed.rows  ? "embeddings to logits"
                            : c->model->spec.ahead  ? "rows to forecasts"
                                                    : "pixels to logits");
    cJSON_AddStringToObject(o, "about", taut_about_text(text, &about));
    if (!isfinite(c->lip.v)) cJSON_AddStringToObject(o, "no_constant", taut_why_not(why, c));
    if (s->count) add_examples(o, c, s);
    return o;
}
