/* Every attention layer, or one, at some tokens of a text, at an image, or at a text that has a class. */
#include <stdlib.h>

#include "api/measure.h"
#include "base/alloc.h"
#include "data/text.h"

static int64_t asked_tokens(const taut_measuring *m, int64_t longest)
{
    return m->o->tokens ? m->o->tokens : longest < 32 ? longest : 32;
}

/* The activations that some tokens of the text leave. */
static taut_status read_text(taut_capture **c, const taut_measuring *m)
{
    const taut_data_spec *d = &m->net->data;
    const int64_t context = m->net->model->spec.context, from = m->o->from, tokens = asked_tokens(m, context);
    taut_text *text = NULL;
    taut_status s = taut_text_open(&text, m->source, d->tokens, 0, m->net->vocab, d->length, d->seed);
    if (!s) s = taut_measure_range("tokens", tokens, 1, context);
    if (!s) s = taut_measure_range("from", from, 0, text->len - 1);
    if (!s && text->len - from < tokens)
        s = taut_fail(TAUT_BAD_DATA, "%s has %lld tokens from there on, fewer than %lld", m->source,
                      (long long)(text->len - from), (long long)tokens);
    if (!s) s = taut_capture_create(c, m->net->model, 1, tokens);
    if (!s) taut_capture_run(*c, text->ids + from, 1, tokens);
    taut_text_free(text);
    return s;
}

/* Those of one image of the validation split, or of the first tokens of a text that has a class. */
static taut_status read_example(taut_capture **c, const taut_measuring *m)
{
    const taut_shape in = m->net->model->in;
    const bool text = m->net->vocab != NULL;
    const int64_t tokens = text ? asked_tokens(m, in.t) : in.t;
    taut_source *data = NULL;
    int32_t target;
    if (!text && m->o->tokens) return taut_fail(TAUT_BAD_CONFIG, "%s reads images: tokens is for texts", m->model);
    int32_t *ids = text ? taut_malloc((size_t)in.t * sizeof *ids) : NULL;
    double *reals = text ? NULL : taut_malloc((size_t)taut_len(in) * sizeof *reals);
    taut_status s = ids || reals ? taut_net_source(&data, m->net, m->o->data) : taut_no_memory("an example");
    const int64_t all = s ? 0 : taut_source_count(data, TAUT_VALID);
    if (!s && all == 0) s = taut_fail(TAUT_BAD_DATA, "no examples to measure at");
    if (!s) s = taut_measure_range("tokens", tokens, 1, in.t);
    if (!s) s = taut_measure_range("from", m->o->from, 0, all - 1);
    if (!s) s = taut_capture_create(c, m->net->model, 1, tokens);
    if (!s) data->ops->get(data, (taut_slot){ .ids = ids, .reals = reals, .target = &target }, TAUT_VALID, m->o->from);
    if (!s && text) taut_capture_run(*c, ids, 1, tokens);
    if (!s && !text) taut_capture_run_real(*c, reals, 1);
    taut_source_free(data);
    free(reals);
    free(ids);
    return s;
}

static taut_status measure_all(taut_layer_measure *out, int *count, const taut_measuring *m)
{
    const taut_layer_options o = {
        .slope = m->slope, .heads = true, .published = true, .exact = m->o->exact != 0, .ball = m->o->ball
    };
    const bool one = m->o->one_layer != 0;
    const int64_t layer = m->o->layer;
    const bool classifies = m->net->model->spec.arch == TAUT_ARCH_CLASSIFIER;
    taut_capture *c = NULL;
    taut_status s = one ? taut_measure_range("layer", layer, 0, m->net->model->spec.depth - 1) : TAUT_OK;
    if (!s) s = m->net->vocab && !classifies ? read_text(&c, m) : read_example(&c, m);
    for (int l = one ? (int)layer : 0; !s && l < c->layers && (!one || l == layer); l++) {
        s = taut_measure_told(m, (double)l / c->layers);
        if (!s) s = taut_layer_measure_at(&out[*count], c, l, m->map, &o);
        if (!s) (*count)++;
    }
    taut_capture_free(c);
    if (!s && *count == 0)
        s = taut_fail(TAUT_BAD_CONFIG,
                      "%s has no softmax or cosine attention to measure there; --network N measures all of it",
                      m->model);
    return s;
}

taut_status taut_measure_layers(cJSON **out, const taut_measuring *m)
{
    const taut_sheet sheet = { m->model, m->source, m->map, m->o->ball, m->slope.tolerance };
    int count = 0;
    taut_layer_measure *found = taut_calloc((size_t)m->net->model->spec.depth + 1, sizeof *found);
    taut_status s = found ? measure_all(found, &count, m) : taut_no_memory("layers");
    if (!s && m->o->csv) s = taut_sheet_layers_csv(m->o->csv, &sheet, found, count);
    if (!s) *out = taut_sheet_layers(&sheet, found, count);
    for (int i = 0; i < count; i++) taut_layer_measure_free(&found[i]);
    free(found);
    return s;
}
