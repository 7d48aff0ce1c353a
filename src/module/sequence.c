/* Sequence:  y = f_k(... f_2(f_1(x))).
 *
 * Bound  constants multiply, and each child is asked about the region its predecessor answers.
 * Trace  the activations in between, then each child's own trace, in order. */
#include "module/children.h"
#include "module/leaf.h"

typedef struct {
    taut_module base;
    taut_children of;
} sequence;

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* jvp and vjp pass tangents through two buffers in turn, each as large as the largest activation. */
static taut_plan sequence_plan(const taut_module *m, taut_shape in)
{
    const taut_children *c = &((const sequence *)m)->of;
    taut_plan p = { .out = in };
    int64_t between = 0;
    for (int i = 0; i < c->count; i++) {
        const taut_plan child = taut_plan_of(c->module[i], p.out);
        p.out = child.out;
        p.trace += child.trace;
        p.scratch = larger(p.scratch, child.scratch);
        if (i + 1 == c->count) break;
        p.trace += taut_len(child.out);
        between = larger(between, taut_len(child.out));
    }
    p.scratch += 2 * between;
    return p;
}

/* Where child i stands, given where child i-1 stood; `rest` is what is left of the trace. */
static taut_point next_point(const taut_module *child, taut_tensor x, taut_span *rest)
{
    return (taut_point){ x, taut_take_span(rest, taut_plan_of(child, x.shape).trace) };
}

static void sequence_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const taut_children *c = &((const sequence *)m)->of;
    taut_tensor x = at.x;
    for (int i = 0; i < c->count; i++) {
        const taut_point here = next_point(c->module[i], x, &at.trace);
        const bool last = i + 1 == c->count;
        const taut_tensor out = last ? y : taut_take_tensor(&at.trace, taut_plan_of(c->module[i], x.shape).out);
        taut_forward(c->module[i], run, out, here);
        x = out;
    }
}

/* The points of all children; `points` has room for them. */
static void sequence_points(const taut_children *c, taut_point at, taut_point *points)
{
    taut_tensor x = at.x;
    for (int i = 0; i < c->count; i++) {
        points[i] = next_point(c->module[i], x, &at.trace);
        if (i + 1 < c->count) x = taut_take_tensor(&at.trace, taut_plan_of(c->module[i], x.shape).out);
    }
}

typedef struct {
    taut_point point[128];
    taut_real *buffer[2];
    taut_span mark;
} walk;

static walk walk_begin(const taut_children *c, taut_run *run, taut_point at)
{
    walk w = { .mark = run->scratch };
    int64_t between = 0;
    sequence_points(c, at, w.point);
    for (int i = 1; i < c->count; i++) between = larger(between, taut_len(w.point[i].x.shape));
    for (int b = 0; b < 2; b++) w.buffer[b] = taut_take(&run->scratch, between);
    return w;
}

static void sequence_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const taut_children *c = &((const sequence *)m)->of;
    const walk w = walk_begin(c, run, at);
    for (int i = 0; i < c->count; i++) {
        const taut_tensor out = i + 1 == c->count ? ty : (taut_tensor){ w.buffer[i % 2], w.point[i + 1].x.shape };
        taut_jvp(c->module[i], run, out, tx, w.point[i]);
        tx = out;
    }
    run->scratch = w.mark;
}

static void sequence_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const taut_children *c = &((const sequence *)m)->of;
    const walk w = walk_begin(c, run, at);
    for (int i = c->count - 1; i >= 0; i--) {
        const taut_tensor out = i == 0 ? gx : (taut_tensor){ w.buffer[i % 2], w.point[i].x.shape };
        taut_vjp(c->module[i], run, out, gy, w.point[i]);
        gy = out;
    }
    run->scratch = w.mark;
}

static taut_bound sequence_bound(const taut_module *m, taut_region in)
{
    const taut_children *c = &((const sequence *)m)->of;
    taut_bound whole = { { 1 }, in };
    taut_point point[128];
    const bool centred = in.centre.x.data != NULL;
    if (centred) sequence_points(c, in.centre, point);
    for (int i = 0; i < c->count; i++) {
        if (c->module[i]->ops->trains_only) continue;
        if (centred) whole.out = taut_region_at(whole.out, point[i]);
        const taut_bound b = taut_bound_named(c->module[i], c->name[i], whole.out);
        whole = (taut_bound){ whole.lip.v == 1 ? b.lip : up_mul(whole.lip, b.lip), b.out };
    }
    return whole;
}

static const taut_module_ops sequence_ops;

/* A single child, but for those that only matter in training, is asked about the mix itself. */
static taut_bound sequence_bound_mixed(const taut_module *m, taut_region in, double keep, double mix)
{
    const taut_children *c = &((const sequence *)m)->of;
    int real = 0, at = 0;
    for (int i = 0; i < c->count; i++)
        if (!c->module[i]->ops->trains_only) {
            real++;
            at = i;
        }
    if (real == 1 && c->module[at]->ops != &sequence_ops) {
        taut_point point[128];
        if (in.centre.x.data) sequence_points(c, in.centre, point), in.centre = point[at];
        return taut_bound_mixed(c->module[at], c->name[at], in, keep, mix);
    }
    return taut_bound_triangle(sequence_bound(m, in), in, keep, mix);
}

static void sequence_params(taut_module *m, taut_visitor *v) { taut_children_params(&((sequence *)m)->of, v); }

static void sequence_parts(const taut_module *m, taut_point at, taut_tour *tour)
{
    const taut_children *c = &((const sequence *)m)->of;
    taut_point point[128];
    sequence_points(c, at, point);
    for (int i = 0; i < c->count; i++) taut_tour_child(tour, c->name[i], c->module[i], point[i]);
}

static void sequence_free(taut_module *m)
{
    taut_children_free(&((sequence *)m)->of);
    free(m);
}

static void sequence_describe(const taut_module *m, taut_ledger *l)
{
    const taut_children *c = &((const sequence *)m)->of;
    for (int i = 0; i < c->count; i++) taut_describe(c->module[i], c->name[i], l);
}

static const taut_module_ops sequence_ops = {
    .kind = "sequence",
    .inlined = true,
    .plan = sequence_plan,
    .forward = sequence_forward,
    .jvp = sequence_jvp,
    .vjp = sequence_vjp,
    .bound = sequence_bound,
    .bound_mixed = sequence_bound_mixed,
    .params = sequence_params,
    .parts = sequence_parts,
    .describe = sequence_describe,
    .free = sequence_free,
};

taut_module *taut_sequence(int count, const char *const *names, taut_module *const *children)
{
    TAUT_CHECK(1 <= count && count <= 128, "sequence: 1 to 128 children (nest them for more)");
    taut_children of = taut_children_adopt(count, names, children);
    sequence *s = of.count < 0 ? NULL : taut_malloc(sizeof *s);
    if (!s) {
        taut_children_free(&of);
        return NULL;
    }
    *s = (sequence){ { &sequence_ops }, of };
    return &s->base;
}
