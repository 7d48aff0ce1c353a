/* Heads:  y = [f_1(x), ..., f_k(x)], the outputs of every child on the same input, side by side.
 *
 * vjp    gx = sum_h J_h^T gy_h
 * Bound  stacked Jacobians: Lip = sqrt(sum Lip_h^2) in both norms, |y| <= sqrt(sum |y_h|^2). */
#include "module/children.h"
#include "module/leaf.h"

typedef struct {
    taut_module base;
    taut_children of;
} heads;

/* Scratch: one child's output (or cotangent), and in vjp one child's gx. */
static taut_plan heads_plan(const taut_module *m, taut_shape in)
{
    const taut_children *c = &((const heads *)m)->of;
    taut_plan p = { .out = { 0, 0, 0 } };
    int64_t widest = 0;
    for (int i = 0; i < c->count; i++) {
        const taut_plan child = taut_plan_of(c->module[i], in);
        TAUT_CHECK(i == 0 || (child.out.n == p.out.n && child.out.t == p.out.t), "heads: token counts differ");
        p.out = (taut_shape){ child.out.n, child.out.t, p.out.d + child.out.d };
        p.trace += child.trace;
        if (child.scratch > p.scratch) p.scratch = child.scratch;
        if (child.host > p.host) p.host = child.host;
        if (taut_len(child.out) > widest) widest = taut_len(child.out);
    }
    p.scratch += widest + taut_len(in);
    return p;
}

/* Runs child after child into scratch and lays the results side by side: forward (tx unused) or jvp. */
static void heads_apply(const taut_module *m, taut_run *run, taut_tensor y, const taut_tensor *tx, taut_point at)
{
    const taut_children *c = &((const heads *)m)->of;
    int64_t column = 0;
    for (int i = 0; i < c->count; i++) {
        const taut_span mark = run->scratch;
        const taut_plan p = taut_plan_of(c->module[i], at.x.shape);
        const taut_point here = { at.x, taut_take_span(&at.trace, p.trace) };
        const taut_tensor part = taut_take_tensor(&run->scratch, p.out);
        if (tx)
            taut_jvp(c->module[i], run, part, *tx, here);
        else
            taut_forward(c->module[i], run, part, here);
        run->k->copy_rows(taut_at(run->k, y.data, column), y.shape.d, part.data, p.out.d, taut_rows(p.out), p.out.d);
        column += p.out.d;
        run->scratch = mark;
    }
}

static void heads_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    heads_apply(m, run, y, NULL, at);
}

static void heads_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    heads_apply(m, run, ty, &tx, at);
}

static void heads_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const taut_children *c = &((const heads *)m)->of;
    int64_t column = 0;
    for (int i = 0; i < c->count; i++) {
        const taut_span mark = run->scratch;
        const taut_plan p = taut_plan_of(c->module[i], at.x.shape);
        const taut_point here = { at.x, taut_take_span(&at.trace, p.trace) };
        const taut_tensor part = taut_take_tensor(&run->scratch, p.out);
        const taut_tensor g = i ? taut_take_tensor(&run->scratch, gx.shape) : gx;
        run->k->copy_rows(part.data, p.out.d, taut_at(run->k, gy.data, column), gy.shape.d, taut_rows(p.out), p.out.d);
        taut_vjp(c->module[i], run, g, part, here);
        if (i) run->k->axpby(gx.data, 1, g.data, 1, taut_len(gx.shape));
        column += p.out.d;
        run->scratch = mark;
    }
}

static taut_answer heads_bound(const taut_module *m, taut_ask in)
{
    const taut_children *c = &((const heads *)m)->of;
    taut_answer all = { .lip = UP_ZERO };
    taut_span trace = in.centre.trace;
    for (int i = 0; i < c->count; i++) {
        if (in.centre.x.data)
            in.centre.trace = taut_take_span(&trace, taut_plan_of(c->module[i], in.centre.x.shape).trace);
        const taut_answer b = taut_bound_named(c->module[i], c->name[i], in);
        all.tokens = b.tokens;
        all.lip = up_hypot(all.lip, b.lip);
        all.size = up_hypot(all.size, b.size);
        all.round = up_hypot(all.round, b.round);
        all.defect = up_hypot(all.defect, b.defect);
    }
    return all;
}

static void heads_params(taut_module *m, taut_visitor *v) { taut_children_params(&((heads *)m)->of, v); }

static void heads_parts(const taut_module *m, taut_point at, taut_tour *tour)
{
    const taut_children *c = &((const heads *)m)->of;
    for (int i = 0; i < c->count; i++) {
        const taut_span own = taut_take_span(&at.trace, taut_plan_of(c->module[i], at.x.shape).trace);
        taut_tour_child(tour, c->name[i], c->module[i], (taut_point){ at.x, own });
    }
}

static void heads_free(taut_module *m)
{
    taut_children_free(&((heads *)m)->of);
    free(m);
}

static void heads_describe(const taut_module *m, taut_ledger *l)
{
    const taut_children *c = &((const heads *)m)->of;
    for (int i = 0; i < c->count; i++) taut_describe(c->module[i], c->name[i], l);
}

static const taut_module_ops heads_ops = {
    .kind = "heads",
    .composes = true,
    .plan = heads_plan,
    .forward = heads_forward,
    .jvp = heads_jvp,
    .vjp = heads_vjp,
    .bound = heads_bound,
    .params = heads_params,
    .parts = heads_parts,
    .describe = heads_describe,
    .free = heads_free,
};

taut_module *taut_heads(int count, taut_module *const *children)
{
    TAUT_CHECK(count >= 1, "heads: at least one child");
    taut_children of = taut_children_adopt(count, NULL, children);
    heads *s = of.count < 0 ? NULL : taut_malloc(sizeof *s);
    if (!s) {
        taut_children_free(&of);
        return NULL;
    }
    *s = (heads){ { &heads_ops }, of };
    return &s->base;
}
