/* Lanczos runs on the model's own kernels; its direction is then tried in double (exact.h), where the slope is the
 * real one up to 1e-12, which is taken off.  Upper bounds of the maps, from L of attention at its own input:
 *     bare, attention     L (local.c)
 *     branch              norm before: L with every token's slope l_j = ||diag(g) C|| / sd(x_j), at z = norm(x) as
 *                         computed in double, each token of which may be off by its rounding
 *     residual            |keep| + |mix| branch
 *     block               norm behind: max_j l_j residual, l_j at y = residual(x), again with its rounding
 * On a ball of radius r around the map's input, l_j and L are taken on the balls that enter.  Pairs (pairs.h) are looked
 * for in the l2 ball of that radius, which lies inside. */
#include "measure/layer.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bound/arithmetic.h"
#include "bound/norm.h"
#include "bound/normlayer.h"
#include "bound/rounding.h"
#include "measure/exact.h"
#include "measure/pairs.h"

static taut_status first_example(double **out, const taut_kernels *k, taut_tensor x)
{
    const int64_t len = x.shape.t * x.shape.d;
    *out = taut_malloc((size_t)(len + 1) * sizeof **out);
    if (!*out) return taut_no_memory("activations");
    k->get(*out, x.data, len);
    return TAUT_OK;
}

static void radii(taut_layer_measure *m, const double *z, int64_t t, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < t; i++) {
        double token = 0;
        for (int64_t c = 0; c < d; c++) token += z[i * d + c] * z[i * d + c];
        sum += token;
        m->longest = fmax(m->longest, sqrt(token));
    }
    m->radius = sqrt(sum / (double)t);
}

/* y = module(x) by the ref kernels, for one example. */
static taut_status exact_output(double **y, const taut_exact *e, const taut_module *module, const double *x, int64_t t,
                                int64_t d)
{
    taut_probe p;
    taut_status s = taut_probe_create(&p, module, e->k, x, (taut_shape){ 1, t, d });
    if (s) return s;
    s = first_example(y, e->k, p.y);
    taut_probe_free(&p);
    return s;
}

/* Every token's slope through the norm on a ball around it. */
static void norm_slopes(taut_up *l, const taut_exact *e, const double *x, int64_t t, taut_up r)
{
    const int64_t d = e->w.width;
    const taut_up norm = up_diag_centre_norm(e->gain, d, e->centre);
    for (int64_t i = 0; i < t; i++)
        l[i] = up_normlayer_ball(norm, d, e->eps, lo_centred_norm(x + i * d, d, e->centre), r);
}

/* L of the branch on the ball of radius r around x, and of the attention in it. */
static taut_status up_branch(taut_up *out, taut_local_bound *parts, taut_local_bound *heads, const taut_exact *e,
                             const double *x, taut_map map, double r)
{
    const int64_t t = e->w.tq, d = e->w.width;
    const bool normed = map != TAUT_MAP_BARE && map != TAUT_MAP_ATTENTION && e->norm && e->before;
    taut_attention_weights w = e->w;
    double *moves = taut_calloc((size_t)t, sizeof *moves), *z = NULL;
    taut_up *l = taut_calloc((size_t)t, sizeof *l);
    taut_status s = moves && l ? TAUT_OK : taut_no_memory("bounds");
    if (!s && normed) s = exact_output(&z, e, e->norm, x, t, d);
    if (!s && normed) norm_slopes(l, e, x, t, up_wrap(r));
    for (int64_t i = 0; !s && i < t; i++) {
        const taut_up size = up_norm_frobenius(x + i * d, d);
        moves[i] = !normed ? r
                           : up_add(up_mul(l[i], up_wrap(r)), up_round_normlayer(e->gain, e->bias, d, e->eps, size)).v;
    }
    if (map == TAUT_MAP_BARE) w.wo = NULL;
    if (!s) {
        *parts = up_attention_local(
            &w, &(taut_local_at){ .xk = normed ? z : x, .dk = moves, .slope_k = normed ? l : NULL, .keys = t }, heads);
        *out = parts->flat;
    }
    free(moves), free(z), free(l);
    return s;
}

/* Of the whole map; `branch` is up_branch's answer. */
static taut_status up_map(taut_up *out, taut_up branch, const taut_exact *e, const double *x, taut_map map, double r)
{
    *out = branch;
    if (map != TAUT_MAP_RESIDUAL && map != TAUT_MAP_BLOCK) return TAUT_OK;
    *out = up_add(up_exact(e->keep), up_mul(up_exact(e->mix), branch));
    if (map == TAUT_MAP_RESIDUAL || !e->norm || e->before) return TAUT_OK;
    const int64_t t = e->w.tq, d = e->w.width;
    double *y = NULL;
    taut_up *l = taut_calloc((size_t)t, sizeof *l), most = UP_ZERO, size = UP_ZERO;
    taut_module *residual = taut_mix(taut_borrow(e->attention), e->keep, e->mix);
    taut_status s = l && residual ? exact_output(&y, e, residual, x, t, d) : taut_no_memory("bounds");
    for (int64_t i = 0; !s && i < t; i++) size = up_max(size, up_norm_frobenius(x + i * d, d));
    if (!s) {
        const taut_up attention = up_round_attention(&e->w, size),
                      moved = up_mul(*out, up_mul(up_sqrt(up_int(t)), up_wrap(r)));
        const taut_up sum = up_round_sum(size, up_mul((taut_up){ 4 }, up_norm_frobenius(y, t * d)));
        norm_slopes(l, e, y, t, up_add(moved, up_add(attention, sum)));
        for (int64_t i = 0; i < t; i++) most = up_max(most, l[i]);
        *out = up_mul(most, *out);
    }
    taut_module_free(residual);
    free(l), free(y);
    return s;
}

/* The slope of a map along the direction found, in double. */
static taut_status witness(double *lower, const taut_exact *e, const taut_module *map, const double *x,
                           const double *direction, taut_shape in)
{
    taut_probe p;
    taut_status s = taut_probe_create(&p, map, e->k, x, in);
    if (s) return s;
    taut_real *ty = taut_reals(e->k, taut_len(p.out));
    if (ty) {
        taut_probe_jvp(&p, ty, (const taut_real *)direction);
        const double *v = direction;
        double size = 0;
        for (int64_t i = 0; i < taut_len(in); i++) size += v[i] * v[i];
        *lower = size > 0 ? sqrt(taut_dot(e->k, p.sum, ty, ty, taut_len(p.out)) / size) * (1 - 1e-12) : 0;
        e->k->release(ty);
    } else {
        s = taut_no_memory("a direction");
    }
    taut_probe_free(&p);
    return s;
}

/* Lower bound of one bare head: found on the model's kernels, evaluated in double. */
static taut_status one_head(taut_head_measure *out, const taut_capture *c, const taut_exact *e, int layer, int64_t head,
                            const double *z, const taut_slope_options *o)
{
    const taut_shape in = { 1, e->w.tq, e->w.width };
    taut_module *m = taut_attention_bare(c->m->k, c->layer[layer].attention, head, 1),
                *twin = taut_attention_bare(e->k, e->attention, head, 1);
    double *direction = taut_malloc((size_t)(taut_len(in) + 1) * sizeof *direction);
    taut_probe p;
    taut_slope slope;
    taut_status s = m && twin && direction ? taut_probe_create(&p, m, c->m->k, z, in) : taut_no_memory("a head");
    if (!s) {
        s = taut_slope_find(&slope, direction, &p, o);
        taut_probe_free(&p);
    }
    if (!s) s = witness(&out->lower, e, twin, z, direction, in);
    taut_module_free(m), taut_module_free(twin);
    free(direction);
    return s;
}

/* [W b] and [x 1] in the place of W and x, as the papers' formulas know no biases; exact for softmax attention.  b_K adds
 * the same to all logits of a query and b_V the same to every output: their columns are 0. */
static double *with_column(const double *w, const double *b, double fill, int64_t rows, int64_t d)
{
    double *out = taut_malloc((size_t)(rows * (d + 1) + 1) * sizeof *out);
    for (int64_t r = 0; out && r < rows; r++) {
        for (int64_t c = 0; c < d; c++) out[r * (d + 1) + c] = w[r * d + c];
        out[r * (d + 1) + d] = b ? b[r] : fill;
    }
    return out;
}

static bool any(const double *x, int64_t n)
{
    for (int64_t i = 0; x && i < n; i++)
        if (x[i] != 0) return true;
    return false;
}

static taut_status publish(taut_head_measure *out, const taut_attention_weights *w, int64_t head, const double *z)
{
    const int64_t at = head * w->dh * w->width, b = head * w->dh;
    taut_published_at p = { z,     w->wq + at, w->wk + at, w->wv + at, w->bq ? w->bq + b : NULL, w->tq, w->width,
                            w->dh, w->scale,   w->causal,  false };
    if (!any(p.bq, w->dh)) p.bq = NULL;
    taut_status s = taut_published_list(out->published, &p);
    for (int i = 0; !s && i < TAUT_PUBLISHED && (w->rope || w->alibi); i++)
        out->published[i].value = NAN; /* no formula knows them */
    if (s || !p.bq || w->rope || w->alibi) return s;
    taut_published lifted[TAUT_PUBLISHED]; /* Theorem E.3 knows b_Q, the others take it as a feature */
    double *x = with_column(z, NULL, 1, w->tq, w->width), *q = with_column(p.wq, p.bq, 0, w->dh, w->width);
    double *k = with_column(p.wk, NULL, 0, w->dh, w->width), *v = with_column(p.wv, NULL, 0, w->dh, w->width);
    p = (taut_published_at){ x, q, k, v, NULL, w->tq, w->width + 1, w->dh, w->scale, w->causal, true };
    s = x && q && k && v ? taut_published_list(lifted, &p) : taut_no_memory("published bounds");
    for (int i = 0; !s && i < TAUT_PUBLISHED; i++)
        if (!isnan(lifted[i].value)) out->published[i] = lifted[i];
    free(x), free(q), free(k), free(v);
    return s;
}

static taut_status measure_heads(taut_layer_measure *m, const taut_local_bound *bound, const taut_capture *c,
                                 const taut_exact *e, const double *z, const taut_layer_options *o)
{
    taut_status s = TAUT_OK;
    m->head = taut_calloc((size_t)m->heads, sizeof *m->head);
    if (!m->head) return taut_no_memory("heads");
    for (int64_t h = 0; !s && h < m->heads; h++) {
        const taut_local_at at = { .xk = z, .keys = e->w.tk };
        m->head[h].upper = bound[h].flat.v;
        m->head[h].exact = o->exact ? up_attention_exact(&e->w, &at, h).v : INFINITY;
        m->head[h].upper = fmin(m->head[h].upper, m->head[h].exact);
        m->head[h].lower = NAN; /* one head of ALiBi is no module of its own: not searched */
        if (!e->w.alibi) s = one_head(&m->head[h], c, e, m->layer, h, z, &o->slope);
        if (!s && o->published) s = publish(&m->head[h], &e->w, h, z);
    }
    return s;
}

/* The direction found by the model's kernels, and its slope there. */
static taut_status search(taut_layer_measure *m, double *direction, const taut_capture *c, const double *x,
                          taut_shape in, const taut_slope_options *o)
{
    taut_module *map = NULL;
    taut_probe p;
    taut_status s = taut_capture_map(&map, c, m->layer, m->map);
    if (!s) s = taut_probe_create(&p, map, c->m->k, x, in);
    if (!s) {
        s = taut_slope_find(&m->slope, direction, &p, o);
        taut_probe_free(&p);
    }
    taut_module_free(map);
    m->lower = m->slope.value;
    m->probable = taut_slope_probable(&m->slope, o, taut_len(in), 1e-9);
    return s;
}

/* Everything that is proved, and the heads; x is the map's input, z what attention reads. */
static taut_status prove(taut_layer_measure *m, const taut_capture *c, const taut_exact *e, const double *x,
                         const double *z, const taut_layer_options *o)
{
    const bool at_z = m->map == TAUT_MAP_BARE || m->map == TAUT_MAP_ATTENTION;
    taut_local_bound around, *heads = taut_calloc((size_t)m->heads, sizeof *heads);
    taut_up branch = UP_NONE;
    taut_status s = heads ? up_branch(&branch, &m->parts, heads, e, x, m->map, 0) : taut_no_memory("heads");
    if (!s) s = up_map(&m->upper, branch, e, x, m->map, 0);
    if (!s && o->ball > 0) s = up_branch(&branch, &around, NULL, e, x, m->map, o->ball);
    if (!s && o->ball > 0) s = up_map(&m->ball, branch, e, x, m->map, o->ball);
    if (!s && o->heads && !at_z) (void)up_attention_local(&e->w, &(taut_local_at){ .xk = z, .keys = e->w.tk }, heads);
    if (!s && o->heads) s = measure_heads(m, heads, c, e, z, o);
    free(heads);
    return s;
}

/* |a - by b| */
static double apart(const double *a, double by, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (a[i] - by * b[i]) * (a[i] - by * b[i]);
    return sqrt(sum);
}

/* Found by the model's kernels, evaluated in double. */
static taut_status search_ball(taut_layer_measure *m, const taut_capture *c, const taut_exact *e, const double *x,
                               taut_shape in, const taut_layer_options *o)
{
    const int64_t len = taut_len(in);
    double *two = taut_malloc((size_t)(2 * len + 1) * sizeof *two), *f[2] = { NULL }, ratio;
    taut_module *map = NULL;
    taut_probe p;
    taut_status s = two ? taut_capture_map(&map, c, m->layer, m->map) : taut_no_memory("a pair");
    if (!s) s = taut_probe_create(&p, map, c->m->k, x, in);
    if (!s) {
        s = taut_pairs_find(&ratio, two, two + len, &p, x, &(taut_pairs_options){ o->ball, 8, 30, o->slope.seed });
        taut_probe_free(&p);
    }
    for (int i = 0; !s && i < 2; i++) s = exact_output(&f[i], e, e->map, two + i * len, in.t, in.d);
    const double distance = s ? 0 : apart(two, 1, two + len, len);
    m->ball_lower = m->lower;
    if (distance > 0) { /* what rounding may have put between outputs that are close is taken off */
        const double sizes = apart(f[0], 0, f[0], len) + apart(f[1], 0, f[1], len);
        m->ball_lower = fmax(m->lower, (apart(f[0], 1, f[1], len) - 1e-12 * sizes) / distance);
    }
    taut_module_free(map);
    free(two), free(f[0]), free(f[1]);
    return s;
}

taut_status taut_layer_measure_at(taut_layer_measure *m, const taut_capture *c, int layer, taut_map map,
                                  const taut_layer_options *o)
{
    const taut_tensor input = taut_capture_input(c, layer, map), read = c->layer[layer].z;
    const taut_shape in = { 1, input.shape.t, input.shape.d };
    double *x = NULL, *z = NULL, *direction = taut_malloc((size_t)(taut_len(in) + 1) * sizeof *direction);
    taut_exact e = { 0 };
    const long failures = taut_alloc_failures();
    *m = (taut_layer_measure){
        .layer = layer, .map = map, .tokens = in.t, .heads = c->m->spec.heads, .upper = UP_NONE, .ball = UP_NONE
    };
    taut_status s = direction ? taut_arithmetic_test() : taut_no_memory("a direction");
    if (!s) s = first_example(&x, c->m->k, input);
    if (!s) s = first_example(&z, c->m->k, read);
    if (!s) radii(m, z, in.t, in.d);
    if (!s) s = search(m, direction, c, x, in, &o->slope);
    const bool copied = !s && taut_exact_create(&e, c, layer, map, in.t) == TAUT_OK; /* else found, but not proved */
    if (!s) s = c->m->k->read(NULL, NULL, 0); /* of a device that failed a copy holds NaN */
    if (!s && copied) s = witness(&m->lower, &e, e.map, x, direction, in);
    if (!s && copied) s = prove(m, c, &e, x, z, o);
    if (!s && copied && o->ball > 0) s = search_ball(m, c, &e, x, in, o);
    taut_exact_free(&e);
    free(x), free(z), free(direction);
    if (!s) s = taut_alloc_lasted(failures, "the measures of a layer");
    if (s) taut_layer_measure_free(m);
    return s;
}

void taut_layer_measure_free(taut_layer_measure *m)
{
    free(m->head);
    m->head = NULL;
}
