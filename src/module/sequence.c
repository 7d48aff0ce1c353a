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

/* jvp and vjp pass tangents through two buffers in turn, each as large as the largest activation between children. */
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
        p.host = larger(p.host, child.host);
        if (i + 1 == c->count) break;
        p.trace += taut_len(child.out);
        between = larger(between, taut_len(child.out));
    }
    p.scratch += 2 * between;
    return p;
}

/* Where child i stands; *at was there and moves on: the child's output in the trace is what the next one reads. */
static taut_point stand(const taut_children *c, int i, taut_point *at)
{
    const taut_plan p = taut_plan_of(c->module[i], at->x.shape);
    const taut_point here = { at->x, taut_take_span(&at->trace, p.trace) };
    if (i + 1 < c->count) at->x = taut_take_tensor(&at->trace, p.out);
    return here;
}

static void sequence_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const taut_children *c = &((const sequence *)m)->of;
    for (int i = 0; i < c->count; i++) {
        const taut_point here = stand(c, i, &at);
        taut_forward(c->module[i], run, i + 1 == c->count ? y : at.x, here);
    }
}

/* Two buffers that tangents pass through in turn. */
typedef struct {
    const taut_children *c;
    taut_run *run;
    taut_real *buffer[2];
} relay;

static relay relay_begin(const taut_children *c, taut_run *run, taut_point at)
{
    relay r = { c, run, { NULL } };
    int64_t between = 0;
    for (int i = 0; i + 1 < c->count; i++) {
        (void)stand(c, i, &at);
        between = larger(between, taut_len(at.x.shape));
    }
    for (int b = 0; b < 2; b++) r.buffer[b] = taut_take(&run->scratch, between);
    return r;
}

static void sequence_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const taut_children *c = &((const sequence *)m)->of;
    const taut_span mark = run->scratch;
    const relay r = relay_begin(c, run, at);
    for (int i = 0; i < c->count; i++) {
        const taut_point here = stand(c, i, &at);
        const taut_tensor out = i + 1 == c->count ? ty : (taut_tensor){ r.buffer[i % 2], at.x.shape };
        taut_jvp(c->module[i], run, out, tx, here);
        tx = out;
    }
    run->scratch = mark;
}

/* J^T gy of child i and all behind it, the last of them first: in gx if that is the whole, else in a buffer, or where it was
 * already, if the child hands it on as it is. */
static taut_tensor vjp_from(const relay *r, int i, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const taut_module *m = r->c->module[i];
    const taut_point here = stand(r->c, i, &at);
    if (i + 1 < r->c->count) gy = vjp_from(r, i + 1, gx, gy, at);
    const taut_tensor free = { r->buffer[gy.data == r->buffer[0]], here.x.shape };
    const taut_tensor out = i == 0 ? gx : m->ops->hands_on ? gy : free;
    taut_vjp(m, r->run, out, gy, here);
    return out;
}

static void sequence_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const taut_span mark = run->scratch;
    const relay r = relay_begin(&((const sequence *)m)->of, run, at);
    (void)vjp_from(&r, 0, gx, gy, at);
    run->scratch = mark;
}

static taut_answer sequence_bound(const taut_module *m, taut_ask in)
{
    const taut_children *c = &((const sequence *)m)->of;
    taut_answer whole = { .lip = { 1 }, .size = in.size, .whole = in.whole, .tokens = in.tokens };
    taut_point at = in.centre;
    const bool centred = at.x.data != NULL;
    for (int i = 0; i < c->count; i++) {
        const taut_point here = centred ? stand(c, i, &at) : at;
        if (c->module[i]->ops->trains_only) continue;
        const taut_answer b = taut_bound_named(c->module[i], c->name[i], centred ? taut_ask_at(in, here) : in);
        whole = taut_answer_then(whole, b);
        in = taut_ask_behind(in, b);
    }
    return whole;
}

static const taut_module_ops sequence_ops;

/* A single child, but for those that only matter in training, is asked about the mix itself. */
static taut_answer sequence_bound_mixed(const taut_module *m, taut_ask in, double keep, double mix)
{
    const taut_children *c = &((const sequence *)m)->of;
    int real = 0, only = 0;
    for (int i = 0; i < c->count; i++)
        if (!c->module[i]->ops->trains_only) {
            real++;
            only = i;
        }
    if (real != 1 || c->module[only]->ops == &sequence_ops)
        return taut_bound_triangle(sequence_bound(m, in), in, keep, mix);
    taut_point at = in.centre;
    for (int i = 0; at.x.data && i <= only; i++) in.centre = stand(c, i, &at);
    return taut_bound_mixed(c->module[only], c->name[only], in, keep, mix);
}

static void sequence_params(taut_module *m, taut_visitor *v) { taut_children_params(&((sequence *)m)->of, v); }

static void sequence_parts(const taut_module *m, taut_point at, taut_tour *tour)
{
    const taut_children *c = &((const sequence *)m)->of;
    for (int i = 0; i < c->count; i++) taut_tour_child(tour, c->name[i], c->module[i], stand(c, i, &at));
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
    .composes = true,
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
    TAUT_CHECK(1 <= count, "sequence: at least one child");
    taut_children of = taut_children_adopt(count, names, children);
    sequence *s = of.count < 0 ? NULL : taut_malloc(sizeof *s);
    if (!s) {
        taut_children_free(&of);
        return NULL;
    }
    *s = (sequence){ { &sequence_ops }, of };
    return &s->base;
}
