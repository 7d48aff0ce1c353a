#include "measure/exact.h"
#include "base/float32.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { MOST = 16 };
typedef struct {
    taut_param *param[MOST];
    int count;
} found;

static void collect(taut_param *p, const char *path, void *arg)
{
    (void)path;
    found *f = arg;
    TAUT_CHECK(f->count < MOST, "exact: a layer with many weights");
    f->param[f->count++] = p;
}

/* The weights of `from` as doubles into `to`, a fresh module of the same make.  free_weights gives them back. */
static bool copy_weights(taut_module *to, const taut_module *from, const taut_kernels *k)
{
    found a = { .count = 0 }, b = { .count = 0 };
    taut_params((taut_module *)from, collect, &a);
    taut_params(to, collect, &b);
    TAUT_CHECK(a.count == b.count, "exact: a copy has the same weights");
    for (int i = 0; i < a.count; i++) {
        const int64_t len = a.param[i]->rows * a.param[i]->cols;
        double *v = taut_malloc((size_t)(len + 1) * sizeof *v);
        if (!v) return false;
        k->get(v, a.param[i]->value, len);
        b.param[i]->value = (taut_real *)v;
    }
    return true;
}

static void free_weights(taut_module *m)
{
    found f = { .count = 0 };
    if (!m) return;
    taut_params(m, collect, &f);
    for (int i = 0; i < f.count; i++) free(f.param[i]->value);
    taut_module_free(m);
}

void taut_exact_free(taut_exact *e)
{
    taut_module_free(e->map);
    free_weights(e->norm);
    free_weights(e->attention);
    *e = (taut_exact){ 0 };
}

static taut_attention_weights weights_of(const taut_module *attention, int64_t tokens)
{
    const taut_attention_view v = taut_attention_look(attention);
    const taut_attention_spec *a = v.spec;
    const double *w[4], *b[4];
    for (int i = 0; i < 4; i++) {
        w[i] = taut_ref_values(v.weight[i]);
        b[i] = a->bias ? taut_ref_values(v.bias[i]) : NULL;
    }
    return (taut_attention_weights){ .width = a->width,
                                     .heads = a->heads,
                                     .dh = a->width / a->heads,
                                     .wq = w[0],
                                     .wk = w[1],
                                     .wv = w[2],
                                     .wo = w[3],
                                     .bq = b[0],
                                     .bk = b[1],
                                     .bv = b[2],
                                     .bo = b[3],
                                     .scale = a->scale,
                                     .out = a->out,
                                     .rope_base = a->rope_base,
                                     .rope = a->rope,
                                     .causal = a->causal,
                                     .alibi = a->alibi,
                                     .tq = tokens,
                                     .tk = tokens,
                                     .keys_min = tokens };
}

/* The layer's norm with its weights, found by name; e->norm stays NULL where there is none. */
static taut_status read_norm(taut_exact *e, const taut_capture *c, int layer)
{
    const taut_model_spec *s = &c->m->spec;
    char path[64];
    if (s->norm == TAUT_NORM_NONE) return TAUT_OK;
    e->centre = s->norm == TAUT_NORM_LAYER, e->before = s->place == TAUT_PLACE_PRE;
    e->eps = taut_float32(s->norm_eps);
    e->norm = e->centre ? taut_layernorm(s->width, s->norm_eps) : taut_rmsnorm(s->width, s->norm_eps);
    if (!e->norm) return taut_no_memory("a layer in double");
    found f = { .count = 0 };
    taut_params(e->norm, collect, &f);
    for (int i = 0; i < f.count; i++) {
        snprintf(path, sizeof path, "block.%d.norm1.%s", layer, f.param[i]->name);
        const taut_weight *w = taut_model_find(c->m, path);
        if (!w) return taut_fail(TAUT_BAD_FILE, "layer %d has no weight called %s", layer, path);
        double *v = taut_malloc((size_t)s->width * sizeof *v);
        if (!v) return taut_no_memory("a layer in double");
        c->m->k->get(v, w->param->value, s->width);
        f.param[i]->value = (taut_real *)v;
    }
    e->gain = taut_ref_values(f.param[0]), e->bias = f.count > 1 ? taut_ref_values(f.param[1]) : NULL;
    return TAUT_OK;
}

static taut_module *branch_of(const taut_exact *e)
{
    const char *const names[] = { "norm1", "attn" };
    if (!e->norm || !e->before) return taut_borrow(e->attention);
    return taut_sequence(2, names, (taut_module *[]){ taut_borrow(e->norm), taut_borrow(e->attention) });
}

static taut_module *map_of(const taut_exact *e, taut_map map)
{
    const char *const names[] = { "", "norm1" };
    if (map == TAUT_MAP_BARE) return taut_attention_bare(e->k, e->attention, 0, e->w.heads);
    if (map == TAUT_MAP_ATTENTION) return taut_borrow(e->attention);
    if (map == TAUT_MAP_BRANCH) return branch_of(e);
    taut_module *residual = taut_mix(branch_of(e), e->keep, e->mix);
    if (map == TAUT_MAP_RESIDUAL || !e->norm || e->before) return residual;
    return taut_sequence(2, names, (taut_module *[]){ residual, taut_borrow(e->norm) });
}

taut_status taut_exact_create(taut_exact *e, const taut_capture *c, int layer, taut_map map, int64_t tokens)
{
    const taut_model_spec *s = &c->m->spec;
    const taut_module *from = c->layer[layer].attention;
    *e = (taut_exact){ .k = taut_kernels_find("ref") };
    if (!taut_is_attention(from)) return taut_fail(TAUT_BAD_CONFIG, "layer %d is not softmax attention", layer);
    const bool whole = map != TAUT_MAP_BARE && map != TAUT_MAP_ATTENTION;
    if (whole && (s->channel || s->norm == TAUT_NORM_CENTER))
        return taut_fail(TAUT_BAD_CONFIG, "this map has channel factors or a CenterNorm in it");
    e->keep = s->convex ? taut_float32(1 - taut_spec_alpha(s)) : 1,
    e->mix = s->convex ? taut_float32(taut_spec_alpha(s)) : 1;
    e->attention = taut_attention(taut_attention_look(from).spec);
    taut_status status = e->attention && copy_weights(e->attention, from, c->m->k)
                             ? TAUT_OK
                             : taut_no_memory("a layer in double");
    if (!status) e->w = weights_of(e->attention, tokens);
    if (!status && whole) status = read_norm(e, c, layer);
    if (!status && !(e->map = map_of(e, map))) status = taut_no_memory("a layer in double");
    if (status) taut_exact_free(e);
    return status;
}
