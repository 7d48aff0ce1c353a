/* Predictions and their radii.
 *
 * Logits are f_j = scale (w_j.h + b_j) of the last features h, B is the constant from the input to h (body), and r is
 * how far the input moves.  Then f_p - f_j changes by at most |scale| |w_p - w_j| B r, and as computed it is within
 * 2 round of the real one.  So the prediction p stands for every r <= room (where the proof holds) with
 *     r < min_{j != p} (f_p - f_j - 2 round) / (|scale| |w_p - w_j| B);
 * so it does for logits that are within `tolerance` of f's, wherever the input was moved to, with 2 tolerance less margin;
 * the radius is lowered below this quotient, so that no tie is reached.  A tie, a NaN, or an infinite logit, round or
 * constant leaves the radius 0: unknown. */
#include "certify/example.h"
#include "base/float32.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/norm.h"

/* A term is rounded three times (twice as its difference) before the sum, where all are positive.  A square that underflows
 * loses less than DBL_MIN; that of float32 numbers does not. */
taut_up up_row_distance(const taut_param *w, int64_t p, int64_t j)
{
    const double *a = taut_ref_values(w) + p * w->cols, *b = taut_ref_values(w) + j * w->cols;
    double sum = 0;
    int64_t apart = 0;
    for (int64_t i = 0; i < w->cols; i++) sum += (a[i] - b[i]) * (a[i] - b[i]), apart += a[i] != b[i];
    const taut_up squares = up_mul(up_exact(sum), up_add((taut_up){ 1 }, up_gamma(w->cols + 4)));
    return up_sqrt(up_add(squares, up_mul(up_int(apart), (taut_up){ DBL_MIN })));
}

static taut_lo region(const taut_certificate *c, const double *logits, int64_t classes, int64_t p, taut_up round,
                      double tolerance)
{
    const taut_param *w = taut_linear_weight(c->model->head);
    const taut_up scale = up_exact(taut_float32(c->model->spec.logit_scale)),
                  twice = up_mul((taut_up){ 2 }, up_add(round, (taut_up){ tolerance }));
    taut_lo least = { INFINITY };
    if (!isfinite(c->body.v) || classes < 2) return (taut_lo){ 0 };
    for (int64_t j = 0; j < classes; j++) {
        if (j == p) continue;
        const double margin = logits[p] - logits[j];
        if (!isfinite(margin) || !(margin > 0)) return (taut_lo){ 0 };
        const taut_lo low = lo_sub(lo_mul((taut_lo){ margin }, (taut_lo){ 1 - 0x1p-52 }), twice);
        const taut_up slope = up_mul(up_mul(scale, up_row_distance(w, p, j)), c->body);
        if (!(low.v > 0)) return (taut_lo){ 0 };
        if (slope.v == 0) continue; /* f_p - f_j does not change */
        const taut_lo r = lo_lower(lo_div(low, slope));
        if (!(r.v >= least.v)) least = r;
    }
    return least;
}

taut_lo taut_margin_region(const taut_certificate *c, const double *logits, int64_t classes, int64_t p)
{
    return region(c, logits, classes, p, c->round, c->tolerance);
}

static taut_lo within_room(const taut_certificate *c, taut_lo all)
{
    return all.v >= c->room.v ? lo_exact(c->room.v) : all;
}

taut_lo taut_margin_radius(const taut_certificate *c, const double *logits, int64_t classes, int64_t p)
{
    return within_room(c, taut_margin_region(c, logits, classes, p));
}

taut_example taut_example_judge(const taut_certificate *c, const double *logits, int64_t classes, int32_t target,
                                taut_up round)
{
    taut_example e = { .target = target };
    double second = -INFINITY;
    for (int64_t i = 0; i < classes; i++)
        if (isnan(logits[i])) return (taut_example){ .target = target, .predicted = -1, .margin = NAN };
    for (int64_t i = 1; i < classes; i++)
        if (logits[i] > logits[e.predicted]) e.predicted = (int32_t)i;
    for (int64_t i = 0; i < classes; i++)
        if (i != e.predicted && logits[i] > second) second = logits[i];
    e.margin = logits[e.predicted] - second;
    e.radius = within_room(c, region(c, logits, classes, e.predicted, round, c->tolerance));
    e.exact = c->tolerance > 0 ? within_room(c, region(c, logits, classes, e.predicted, round, 0)) : e.radius;
    return e;
}

taut_example taut_example_certify(const taut_certificate *c, taut_pass *pass, taut_input x, int32_t target,
                                  double *logits)
{
    const taut_kernels *k = c->model->k;
    /* a proximal layer that misses its tolerance abstains: NaN, hence unknown */
    pass->run.phase = (taut_phase){ .kind = TAUT_PHASE_PROVE };
    taut_pass_read(pass, x, 1);
    const int64_t classes = pass->logits.shape.d;
    k->get(logits, taut_at(k, pass->logits.data, (pass->logits.shape.t - 1) * classes), classes);
    return taut_example_judge(c, logits, classes, target, c->round);
}

cJSON *taut_example_json(const taut_example *e, taut_input x, int64_t count)
{
    cJSON *o = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(o, x.ids ? "ids" : "pixels");
    for (int64_t i = 0; i < count; i++) cJSON_AddItemToArray(list, cJSON_CreateNumber(x.ids ? x.ids[i] : x.reals[i]));
    cJSON_AddNumberToObject(o, "predicted", e->predicted);
    cJSON_AddNumberToObject(o, "margin", e->margin);
    cJSON_AddNumberToObject(o, "radius", lo_lower(e->radius).v);
    cJSON_AddStringToObject(o, "verdict", e->radius.v > 0 ? "certified" : "unknown");
    return o;
}

/* |a - b| in the norm, computed. */
static double distance(const double *a, const double *b, taut_shape s, taut_norm norm)
{
    double most = 0, sum = 0;
    for (int64_t t = 0; t < taut_rows(s); t++) {
        double token = 0;
        for (int64_t i = 0; i < s.d; i++)
            token += (a[t * s.d + i] - b[t * s.d + i]) * (a[t * s.d + i] - b[t * s.d + i]);
        most = fmax(most, token);
        sum += token;
    }
    return sqrt(norm == TAUT_NORM_FLAT ? sum : most);
}

taut_status taut_pair_ratio(double *largest, const taut_certificate *c, taut_pass *pass, taut_input a, taut_input b)
{
    const taut_kernels *k = c->model->k;
    taut_pass_read(pass, a, 1);
    const int64_t nx = taut_len(pass->x.shape), ny = taut_len(pass->logits.shape);
    double *keep = taut_malloc((size_t)(2 * nx + 2 * ny) * sizeof *keep);
    if (!keep) return taut_no_memory("a pair of inputs");
    double *x = keep + nx, *f = x + nx, *g = f + ny;
    k->get(keep, pass->x.data, nx);
    k->get(f, pass->logits.data, ny);
    taut_pass_read(pass, b, 1);
    k->get(x, pass->x.data, nx);
    k->get(g, pass->logits.data, ny);
    const double dx = distance(keep, x, pass->x.shape, c->norm), dy = distance(f, g, pass->logits.shape, c->norm);
    free(keep);
    if (dx > 0) *largest = fmax(*largest, dy / dx);
    return TAUT_OK;
}
