/* Slopes of one layer against the length of its input, and how they grow. */
#include <stdlib.h>

#include "api/measure.h"
#include "base/alloc.h"
#include "data/text.h"

static taut_status find(taut_scatter_point *points, taut_lengths *r, const taut_measuring *m,
                        const taut_scatter_options *o)
{
    const taut_data_spec *d = &m->net->data;
    const taut_scatter_attack attack = { r->head, m->o->radius, m->o->castin != 0, m->slope.seed };
    taut_text *text = NULL;
    if (r->adversarial && o->map > TAUT_MAP_ATTENTION)
        return taut_fail(TAUT_BAD_CONFIG, "adversarial tokens are inputs of attention: --map bare or attention");
    if (r->adversarial) return taut_scatter_adversarial(points, &r->gap, m->net->model, &attack, o);
    if (m->net->model->spec.arch == TAUT_ARCH_CLASSIFIER && !m->o->data)
        return taut_fail(TAUT_BAD_CONFIG, "%s was trained on many short texts: --text FILE names a long one", m->model);
    taut_status s = taut_text_open(&text, m->source, d->tokens, 0, m->net->vocab, d->length, d->seed);
    if (!s) s = taut_scatter_text(points, m->net->model, text->ids, text->len, o);
    taut_text_free(text);
    return s;
}

/* Adversarial clusters need three tokens: one or two are not fitted. */
static taut_status fit(taut_lengths *r)
{
    double *n = taut_calloc((size_t)(2 * r->count) + 1, sizeof *n);
    if (!n) return taut_no_memory("points");
    double *y = n + r->count;
    for (int64_t i = 0; i < r->count; i++) {
        n[i] = r->adversarial && r->point[i].n < 3 ? 0 : (double)r->point[i].n;
        y[i] = r->point[i].value;
    }
    r->growth = taut_growth_fit(n, y, r->count);
    free(n);
    return TAUT_OK;
}

static taut_status check(taut_scatter_options *s, const taut_measuring *m)
{
    const taut_measure_options *o = m->o;
    const taut_model_spec *spec = &m->net->model->spec;
    const bool given = o->lengths[0] || o->lengths[1] || o->lengths[2];
    if (!m->net->vocab) return taut_fail(TAUT_BAD_CONFIG, "%s reads images, which have one length", m->model);
    *s = (taut_scatter_options){ .first = given ? o->lengths[0] : 2,
                                 .last = given ? o->lengths[1] : 32,
                                 .step = given ? o->lengths[2] : 2,
                                 .samples = o->samples ? o->samples : 10,
                                 .layer = (int)(o->one_layer ? o->layer : spec->depth / 2),
                                 .map = m->map,
                                 .slope = m->slope,
                                 .tell = o->progress,
                                 .arg = o->arg };
    if (s->first < 1 || s->step < 1 || s->first > s->last)
        return taut_fail(TAUT_BAD_CALL, "lengths are first, last and step, such as 2, 100, 2");
    taut_status bad = taut_measure_range("samples", s->samples, 1, 4096);
    if (!bad && o->one_layer) bad = taut_measure_range("layer", o->layer, 0, spec->depth - 1);
    if (!bad) bad = taut_measure_range("head", o->head, 0, spec->heads - 1);
    return bad ? bad : taut_scatter_check(m->net->model, s, o->adversarial != 0);
}

taut_status taut_measure_lengths(cJSON **out, const taut_measuring *m)
{
    const taut_sheet sheet = { m->model, m->source, m->map, m->o->ball, m->slope.tolerance };
    taut_scatter_options o;
    taut_status s = check(&o, m);
    if (s) return s;
    taut_lengths r = { .layer = o.layer, .adversarial = m->o->adversarial != 0, .head = m->o->head };
    r.count = taut_scatter_count(&o, r.adversarial);
    taut_scatter_point *points = taut_calloc((size_t)r.count + 1, sizeof *points);
    r.point = points;
    s = points ? find(points, &r, m, &o) : taut_no_memory("points");
    if (!s) s = fit(&r);
    if (!s && m->o->csv) s = taut_sheet_lengths_csv(m->o->csv, &sheet, &r);
    if (!s) *out = taut_sheet_lengths(&sheet, &r);
    free(points);
    return s;
}
