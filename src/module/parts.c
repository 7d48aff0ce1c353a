/* Two modules side by side over the tokens:  y = [ f(x_0 .. x_{first-1}), g(x_first ...) ].
 *
 * Bound  Lip = max(Lip f, Lip g) in both norms: each part of the change goes through its own module, and the largest token
 *        as well as the sum of squares of y is made of those of the parts.  What is known around a centre is not used.
 * Trace  the two parts of x, then f's and g's own. */
#include "module/children.h"
#include "module/leaf.h"

typedef struct {
    taut_module base;
    taut_children of;
    int64_t first;
} parts;

typedef struct {
    taut_tensor x[2], y[2];
    taut_plan plan[2];
} halves;

static taut_shape half(const parts *s, taut_shape in, int i)
{
    return (taut_shape){ in.n, i ? in.t - s->first : s->first, in.d };
}

static halves halves_of(const parts *s, taut_shape in)
{
    halves h;
    for (int i = 0; i < 2; i++) {
        h.x[i] = (taut_tensor){ NULL, half(s, in, i) };
        h.plan[i] = taut_plan_of(s->of.module[i], h.x[i].shape);
        h.y[i] = (taut_tensor){ NULL, h.plan[i].out };
    }
    return h;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static taut_plan parts_plan(const taut_module *m, taut_shape in)
{
    const parts *s = (const parts *)m;
    TAUT_CHECK(in.t >= s->first, "parts: not so many tokens");
    const halves h = halves_of(s, in);
    const taut_shape a = h.plan[0].out, b = h.plan[1].out;
    TAUT_CHECK(a.d == b.d, "parts: both sides must have the same features");
    return (taut_plan){ { in.n, a.t + b.t, a.d },
                        taut_len(in) + h.plan[0].trace + h.plan[1].trace,
                        taut_len(in) + taut_len(a) + taut_len(b) + larger(h.plan[0].scratch, h.plan[1].scratch),
                        larger(h.plan[0].host, h.plan[1].host) };
}

/* both[0], both[1] out of all, or with `back` into it */
static void copy(const taut_kernels *k, taut_tensor all, const taut_tensor both[2], bool back)
{
    const int64_t wide = all.shape.t * all.shape.d;
    int64_t at = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t len = both[i].shape.t * all.shape.d;
        taut_real *there = taut_at(k, all.data, at);
        if (back)
            k->copy_rows(there, wide, both[i].data, len, all.shape.n, len);
        else
            k->copy_rows(both[i].data, len, there, wide, all.shape.n, len);
        at += len;
    }
}

static halves kept_at(const parts *s, taut_point at, taut_point point[2])
{
    halves h = halves_of(s, at.x.shape);
    for (int i = 0; i < 2; i++) h.x[i] = taut_take_tensor(&at.trace, h.x[i].shape);
    for (int i = 0; i < 2; i++) point[i] = (taut_point){ h.x[i], taut_take_span(&at.trace, h.plan[i].trace) };
    return h;
}

static void parts_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const parts *s = (const parts *)m;
    taut_point point[2];
    taut_run r = *run;
    halves h = kept_at(s, at, point);
    copy(run->k, at.x, h.x, false);
    for (int i = 0; i < 2; i++) h.y[i] = taut_take_tensor(&r.scratch, h.y[i].shape);
    for (int i = 0; i < 2; i++) taut_forward(s->of.module[i], &r, h.y[i], point[i]);
    copy(run->k, y, h.y, true);
}

/* jvp and vjp alike: `from` in parts, through the modules, `to` from parts */
static void slopes(const parts *s, taut_run *run, taut_tensor to, taut_tensor from, taut_point at, bool back)
{
    taut_point point[2];
    taut_run r = *run;
    const halves h = kept_at(s, at, point);
    taut_tensor a[2], b[2];
    for (int i = 0; i < 2; i++) {
        a[i] = taut_take_tensor(&r.scratch, back ? h.y[i].shape : h.x[i].shape);
        b[i] = taut_take_tensor(&r.scratch, back ? h.x[i].shape : h.y[i].shape);
    }
    copy(run->k, from, a, false);
    for (int i = 0; i < 2; i++) (back ? taut_vjp : taut_jvp)(s->of.module[i], &r, b[i], a[i], point[i]);
    copy(run->k, to, b, true);
}

static void parts_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    slopes((const parts *)m, run, ty, tx, at, false);
}

static void parts_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    slopes((const parts *)m, run, gx, gy, at, true);
}

static taut_answer parts_bound(const taut_module *m, taut_ask in)
{
    const parts *s = (const parts *)m;
    taut_answer b[2];
    for (int i = 0; i < 2; i++) {
        taut_ask part = in;
        part.tokens = i ? in.tokens - s->first : s->first;
        part.centre = (taut_point){ 0 }; /* of all tokens, not of this part's */
        b[i] = taut_bound_named(s->of.module[i], s->of.name[i], part);
    }
    return (taut_answer){ .lip = up_max(b[0].lip, b[1].lip),
                          .size = up_max(b[0].size, b[1].size),
                          .round = in.norm == TAUT_NORM_FLAT ? up_hypot(b[0].round, b[1].round)
                                                             : up_max(b[0].round, b[1].round),
                          .defect = up_hypot(b[0].defect, b[1].defect),
                          .tokens = b[0].tokens + b[1].tokens };
}

static void parts_parts(const taut_module *m, taut_point at, taut_tour *tour)
{
    const parts *s = (const parts *)m;
    taut_point point[2];
    (void)kept_at(s, at, point);
    for (int i = 0; i < 2; i++) taut_tour_child(tour, s->of.name[i], s->of.module[i], point[i]);
}

static void parts_params(taut_module *m, taut_visitor *v) { taut_children_params(&((parts *)m)->of, v); }

static void parts_describe(const taut_module *m, taut_ledger *l)
{
    const parts *s = (const parts *)m;
    ledger_exact(l, "first", (double)s->first);
    for (int i = 0; i < 2; i++) taut_describe(s->of.module[i], s->of.name[i], l);
}

static void parts_free(taut_module *m)
{
    taut_children_free(&((parts *)m)->of);
    free(m);
}

static const taut_module_ops parts_ops = {
    .kind = "parts",
    .composes = true,
    .plan = parts_plan,
    .forward = parts_forward,
    .jvp = parts_jvp,
    .vjp = parts_vjp,
    .bound = parts_bound,
    .params = parts_params,
    .parts = parts_parts,
    .describe = parts_describe,
    .free = parts_free,
};

taut_module *taut_parts(int64_t first, taut_module *f, taut_module *g)
{
    static const char *const names[] = { "first", "rest" };
    taut_children of = taut_children_adopt(2, names, (taut_module *const[]){ f, g });
    parts *s = of.count < 0 ? NULL : taut_malloc(sizeof *s);
    if (!s) {
        taut_children_free(&of);
        return NULL;
    }
    *s = (parts){ { &parts_ops }, of, first };
    return &s->base;
}
