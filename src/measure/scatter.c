#include "measure/scatter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "measure/adversarial.h"

enum { LONGEST = 16384 };

static int64_t lengths_of(const taut_scatter_options *o)
{
    return o->last < o->first ? 0 : (o->last - o->first) / o->step + 1;
}

int64_t taut_scatter_count(const taut_scatter_options *o, bool adversarial)
{
    return lengths_of(o) * (adversarial ? 1 : o->samples);
}

taut_status taut_scatter_check(const taut_model *m, const taut_scatter_options *o, bool adversarial)
{
    if (o->first < 1 || o->step < 1 || o->last < o->first) return taut_fail(TAUT_BAD_CONFIG, "no lengths to measure");
    if (!adversarial && o->last > m->spec.context)
        return taut_fail(TAUT_BAD_CONFIG, "sequences of %lld tokens for a model that reads %lld", (long long)o->last,
                         (long long)m->spec.context);
    if (adversarial && o->last > LONGEST)
        return taut_fail(TAUT_BAD_CONFIG, "%lld adversarial tokens are more than the %d that are measured at most",
                         (long long)o->last, LONGEST);
    return TAUT_OK;
}

/* Other kinds of attention are no layers of a capture. */
static taut_status find_layer(const taut_capture *c, int layer)
{
    if (layer < c->layers) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG,
                     "no softmax or cosine attention to measure in layer %d: the model has %d such layers", layer,
                     c->layers);
}

static double radius_of(const double *z, int64_t t, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < t * d; i++) sum += z[i] * z[i];
    return sqrt(sum / (double)t);
}

/* The slopes of a map at a batch of inputs. */
static taut_status slopes_at(taut_slope *out, const taut_module *map, const taut_kernels *k, const double *x,
                             taut_shape in, const taut_slope_options *o)
{
    taut_probe p;
    taut_status s = taut_probe_create(&p, map, k, x, in);
    if (s) return s;
    s = taut_slope_find(out, NULL, &p, o);
    taut_probe_free(&p);
    return s;
}

/* All sequences of one length, which the capture has just read. */
static taut_status one_length(taut_scatter_point *out, const taut_capture *c, int64_t n, const taut_scatter_options *o)
{
    const taut_tensor input = taut_capture_input(c, o->layer, o->map), read = c->layer[o->layer].z;
    const int64_t len = taut_len(input.shape), one = n * input.shape.d;
    double *x = taut_malloc((size_t)len * sizeof *x);
    taut_slope *slope = taut_calloc((size_t)o->samples, sizeof *slope);
    taut_module *map = NULL;
    taut_status s = x && slope ? taut_capture_map(&map, c, o->layer, o->map) : taut_no_memory("activations");
    if (!s) {
        c->m->k->get(x, input.data, len);
        s = slopes_at(slope, map, c->m->k, x, input.shape, &o->slope);
    }
    if (!s) c->m->k->get(x, read.data, len);
    for (int64_t e = 0; !s && e < o->samples; e++)
        out[e] = (taut_scatter_point){ n, slope[e].value, radius_of(x + e * one, n, input.shape.d) };
    taut_module_free(map);
    free(x), free(slope);
    return s;
}

static taut_status told(const taut_scatter_options *o, double done)
{
    return o->tell && o->tell(done, o->arg) ? taut_fail(TAUT_BAD_CALL, "stopped") : TAUT_OK;
}

taut_status taut_scatter_text(taut_scatter_point *out, taut_model *m, const int32_t *ids, int64_t len,
                              const taut_scatter_options *o)
{
    const taut_status bad = taut_scatter_check(m, o, false);
    if (bad) return bad;
    int64_t needed = 0;
    for (int64_t i = 0; i < lengths_of(o); i++) needed += (o->first + i * o->step) * o->samples;
    if (needed > len)
        return taut_fail(TAUT_BAD_DATA, "%lld sequences without overlap need %lld tokens, the text has %lld",
                         (long long)taut_scatter_count(o, false), (long long)needed, (long long)len);
    taut_capture *c = NULL;
    taut_status s = taut_capture_create(&c, m, o->samples, o->last);
    int64_t used = 0;
    for (int64_t i = 0; !s && i < lengths_of(o); i++) {
        const int64_t n = o->first + i * o->step;
        taut_capture_run(c, ids + used, o->samples, n);
        s = find_layer(c, o->layer);
        if (!s) s = one_length(out, c, n, o);
        out += o->samples, used += n * o->samples;
        if (!s) s = told(o, (double)used / (double)needed);
    }
    taut_capture_free(c);
    return s;
}

/* One head's W_Q and W_K as doubles, and the clusters they make. */
static taut_status clusters_of(taut_clusters *c, const taut_kernels *k, const taut_module *attention,
                               const taut_scatter_attack *a)
{
    const taut_attention_view v = taut_attention_look(attention);
    const int64_t d = v.spec->width, dh = d / v.spec->heads, len = dh * d;
    double *w = taut_malloc((size_t)(2 * len) * sizeof *w);
    if (!w) return taut_no_memory("a head's weights");
    for (int i = 0; i < 2; i++) k->get(w + i * len, taut_at(k, v.weight[i]->value, a->head * len), len);
    const taut_logits l = { w, w + len, dh, d, v.spec->scale };
    taut_status s = k->read(NULL, NULL, 0); /* a device may have failed */
    if (!s) s = a->castin ? taut_clusters_castin(c, &l) : taut_clusters_general(c, &l, 20, a->seed);
    free(w);
    return s;
}

taut_status taut_scatter_adversarial(taut_scatter_point *out, double *gap, taut_model *m, const taut_scatter_attack *a,
                                     const taut_scatter_options *o)
{
    const taut_status bad = taut_scatter_check(m, o, true);
    if (bad) return bad;
    const int64_t d = m->spec.width;
    const int32_t any[2] = { 0, 0 };
    taut_capture *c = NULL;
    taut_clusters two = { 0 };
    taut_module *map = NULL;
    double *x = taut_malloc((size_t)(o->last * d + 1) * sizeof *x);
    taut_status s = x ? taut_capture_create(&c, m, 1, 2) : taut_no_memory("adversarial tokens");
    if (!s) taut_capture_run(c, any, 1, m->spec.context < 2 ? 1 : 2); /* to find the layer */
    if (!s) s = find_layer(c, o->layer);
    if (!s && !taut_is_attention(c->layer[o->layer].attention))
        s = taut_fail(TAUT_BAD_CONFIG, "layer %d is not softmax attention: no adversarial tokens", o->layer);
    if (!s) s = clusters_of(&two, m->k, c->layer[o->layer].attention, a);
    if (!s && !(two.gap > 0))
        s = taut_fail(TAUT_BAD_DATA,
                      a->castin ? "head %lld has no real eigenvalue but 0: the published construction is empty"
                                : "head %lld has A = 0: no input of it is steep",
                      (long long)a->head);
    if (!s) s = taut_capture_map(&map, c, o->layer, o->map);
    for (int64_t i = 0; !s && i < lengths_of(o); i++, out++) {
        const int64_t n = o->first + i * o->step;
        taut_slope slope;
        taut_clusters_tokens(x, &two, n, d, a->radius > 0 ? a->radius : taut_clusters_radius(&two, n));
        s = slopes_at(&slope, map, m->k, x, (taut_shape){ 1, n, d }, &o->slope);
        if (!s) *out = (taut_scatter_point){ n, slope.value, radius_of(x, n, d) };
        if (!s) s = told(o, (double)n / (double)o->last);
    }
    *gap = two.gap;
    taut_module_free(map);
    taut_clusters_free(&two);
    taut_capture_free(c);
    free(x);
    return s;
}
