/* Residual mix:  y = keep x + mix f(x):  plain (1, 1) or convex (1 - a, a).
 *
 * Bound  what f knows of the mix (an MLP knows a joint bound), else the triangle inequality:
 *        Lip(y) <= |keep| + |mix| Lip(f)  and  |y| <= |keep| |x| + |mix| |f(x)|.
 * keep and mix are floats, so kernel and bound speak of the same numbers. */
#include "base/float32.h"
#include "module/leaf.h"

typedef struct {
    taut_module base;
    taut_module *f;
    double keep, mix;
} residual;

static taut_plan mix_plan(const taut_module *m, taut_shape in)
{
    taut_plan p = taut_plan_of(((const residual *)m)->f, in);
    TAUT_CHECK(taut_same_shape(p.out, in), "mix: f must keep the shape");
    p.scratch += taut_len(in); /* vjp's scaled cotangent */
    return p;
}

/* y = keep x + mix y; f alone has nothing to add. */
static void add(const residual *s, const taut_kernels *k, taut_tensor y, taut_tensor x)
{
    if (s->keep != 0 || s->mix != 1) k->axpby(y.data, s->keep, x.data, s->mix, taut_len(y.shape));
}

static void mix_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const residual *s = (const residual *)m;
    taut_forward(s->f, run, y, at);
    add(s, run->k, y, at.x);
}

static void mix_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const residual *s = (const residual *)m;
    taut_jvp(s->f, run, ty, tx, at);
    add(s, run->k, ty, tx);
}

static void mix_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const residual *s = (const residual *)m;
    const int64_t len = taut_len(gy.shape);
    const taut_span mark = run->scratch;
    taut_tensor g = gy;
    if (s->mix != 1) { /* before f: its weights need the factor too */
        g = taut_take_tensor(&run->scratch, gy.shape);
        run->k->axpby(g.data, s->mix, gy.data, 0, len);
    }
    taut_vjp(s->f, run, gx, g, at);
    if (s->keep != 0) run->k->axpby(gx.data, s->keep, gy.data, 1, len);
    run->scratch = mark;
}

static taut_answer mix_bound(const taut_module *m, taut_ask in)
{
    const residual *s = (const residual *)m;
    return taut_bound_mixed(s->f, "", in, s->keep, s->mix);
}

static void mix_params(taut_module *m, taut_visitor *v) { taut_visit_child(v, "", ((residual *)m)->f); }

static void mix_parts(const taut_module *m, taut_point at, taut_tour *tour)
{
    taut_tour_child(tour, "", ((const residual *)m)->f, at);
}

static void mix_free(taut_module *m)
{
    taut_module_free(((residual *)m)->f);
    free(m);
}

static void mix_describe(const taut_module *m, taut_ledger *l)
{
    const residual *s = (const residual *)m;
    ledger_exact(l, "keep", s->keep);
    ledger_exact(l, "mix", s->mix);
    if (s->f->ops->inlined)
        s->f->ops->describe(s->f, l);
    else
        taut_describe(s->f, "", l);
}

static const taut_module_ops mix_ops = {
    .kind = "mix",
    .composes = true,
    .plan = mix_plan,
    .forward = mix_forward,
    .jvp = mix_jvp,
    .vjp = mix_vjp,
    .bound = mix_bound,
    .params = mix_params,
    .parts = mix_parts,
    .describe = mix_describe,
    .free = mix_free,
};

taut_module *taut_mix(taut_module *f, double keep, double mix)
{
    residual *s = f ? taut_malloc(sizeof *s) : NULL;
    if (!s) {
        taut_module_free(f);
        return NULL;
    }
    *s = (residual){ { &mix_ops }, f, taut_float32(keep), taut_float32(mix) };
    return &s->base;
}
