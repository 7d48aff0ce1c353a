/* One forward pass through the body, then a tour of its tree at the trace that the pass filled. */
#include "model/capture.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

const char *const taut_map_names[TAUT_MAPS] = { "bare", "attention", "branch", "residual", "block" };

static int64_t memory_of(const taut_model *m, taut_shape in)
{
    const taut_plan p = taut_plan_of(m->body, in);
    return taut_len(in) + taut_len(p.out) + p.trace + p.scratch + taut_indices_len(taut_rows(in));
}

taut_status taut_capture_create(taut_capture **out, taut_model *m, int64_t n, int64_t t)
{
    taut_capture *c = taut_calloc(1, sizeof *c);
    *out = NULL;
    if (!c) return taut_no_memory("captured activations");
    *c = (taut_capture){ .m = m, .largest = n * t };
    c->layer = taut_calloc((size_t)m->spec.depth, sizeof *c->layer);
    const taut_shape in = { n, t, m->in.d };
    c->memory = taut_reals(m->k, memory_of(m, in));
    c->host = taut_malloc((size_t)taut_plan_of(m->body, in).host * sizeof *c->host);
    if (c->layer && c->memory && c->host) {
        *out = c;
        return TAUT_OK;
    }
    taut_capture_free(c);
    return taut_no_memory("captured activations");
}

void taut_capture_free(taut_capture *c)
{
    if (!c) return;
    if (c->memory) c->m->k->release(c->memory);
    free(c->layer);
    free(c->host);
    free(c);
}

typedef struct {
    taut_capture *c;
    taut_layer branch; /* the residual branch that the tour is in */
    int depth;         /* of its mix */
    bool behind;       /* a norm on the level of the last layer's mix belongs to that layer */
} tour;

static bool is(const taut_module *m, const char *kind) { return strcmp(m->ops->kind, kind) == 0; }

/* In the order of the computation: a mix, its branch, in there an attention; on the mix's own level a norm or none. */
static void see(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    tour *w = arg;
    taut_capture *c = w->c;
    if (is(m, "mix")) {
        w->branch = (taut_layer){ .residual = m, .x = at.x };
        w->depth = depth;
        w->behind = false;
    } else if (w->branch.residual && depth == w->depth + 1) {
        w->branch.branch = m;
    } else if (w->behind && depth == w->depth && strcmp(name, "norm1") == 0) {
        c->layer[c->layers - 1].norm = m;
    }
    if (!is(m, "attention") && !is(m, "cosattention")) return;
    TAUT_CHECK(c->layers < c->m->spec.depth && w->branch.residual, "capture: an attention outside a residual branch");
    w->branch.attention = m;
    w->branch.z = at.x;
    w->behind = true;
    c->layer[c->layers++] = w->branch;
}

static void run_body(taut_capture *c, taut_input x, int64_t n, int64_t t)
{
    const taut_model *m = c->m;
    const taut_shape in = { n, t, m->in.d };
    const taut_plan plan = taut_plan_of(m->body, in);
    TAUT_CHECK(n * t <= c->largest && t <= m->in.t, "capture: a batch larger than it was made for");
    taut_span rest = { c->memory, memory_of(m, in), m->k->elem };
    c->embedded = taut_take_tensor(&rest, in);
    c->features = taut_take_tensor(&rest, plan.out);
    const taut_point at = { c->embedded, taut_take_span(&rest, plan.trace) };
    taut_run run = { .k = m->k,
                     .scratch = taut_take_span(&rest, plan.scratch),
                     .host = { (taut_real *)c->host, plan.host, sizeof(double) } };
    taut_index *ids = taut_take_indices(&rest, n * t);
    if (x.ids) {
        m->k->put_index(ids, x.ids, n * t);
        m->k->gather(c->embedded.data, m->embed.value, ids, n * t, in.d);
    } else
        m->k->put(c->embedded.data, x.reals, taut_len(in));
    taut_forward(m->body, &run, c->features, at);
    c->layers = 0;
    taut_tour_parts(m->body, at, see, &(tour){ .c = c });
}

void taut_capture_run(taut_capture *c, const int32_t *ids, int64_t n, int64_t t)
{
    run_body(c, (taut_input){ .ids = ids }, n, t);
}

void taut_capture_run_real(taut_capture *c, const double *reals, int64_t n)
{
    run_body(c, (taut_input){ .reals = reals }, n, c->m->in.t);
}

taut_tensor taut_capture_input(const taut_capture *c, int layer, taut_map map)
{
    TAUT_CHECK(0 <= layer && layer < c->layers, "capture: no such layer, or nothing has run");
    return map == TAUT_MAP_BARE || map == TAUT_MAP_ATTENTION ? c->layer[layer].z : c->layer[layer].x;
}

/* norm(residual(x)), or the residual where no norm follows */
static taut_module *block(const taut_layer *l)
{
    if (!l->norm) return taut_borrow(l->residual);
    const char *const names[] = { "", "norm1" };
    taut_module *const row[] = { taut_borrow(l->residual), taut_borrow(l->norm) };
    return taut_sequence(2, names, row);
}

taut_status taut_capture_map(taut_module **out, const taut_capture *c, int layer, taut_map map)
{
    TAUT_CHECK(0 <= layer && layer < c->layers, "capture: no such layer, or nothing has run");
    const taut_layer *l = &c->layer[layer];
    const taut_module *const part[] = { NULL, l->attention, l->branch, l->residual };
    *out = NULL;
    if (map == TAUT_MAP_BARE && !taut_is_attention(l->attention))
        return taut_fail(TAUT_BAD_CONFIG, "only softmax attention has a bare map; layer %d is %s", layer,
                         l->attention->ops->kind);
    if (map == TAUT_MAP_BARE)
        *out = taut_attention_bare(c->m->k, l->attention, 0, c->m->spec.heads);
    else
        *out = map == TAUT_MAP_BLOCK ? block(l) : taut_borrow(part[map]);
    return *out ? TAUT_OK : taut_no_memory("a map to measure");
}
