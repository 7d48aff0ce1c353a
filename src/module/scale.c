/* Scale:  y = c x  (the logit scale).   Lip = |c| in both norms, attained everywhere. */
#include "base/float32.h"
#include "bound/rounding.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    double factor;
} scale;

static taut_plan scale_plan(const taut_module *m, taut_shape in)
{
    (void)m;
    return (taut_plan){ .out = in };
}

static void scale_linear(const taut_module *m, taut_run *run, taut_tensor y, taut_tensor t, taut_point at)
{
    (void)at;
    run->k->axpby(y.data, ((const scale *)m)->factor, t.data, 0, taut_len(y.shape));
}

static void scale_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    scale_linear(m, run, y, at.x, at);
}

static taut_answer scale_bound(const taut_module *m, taut_ask in)
{
    const taut_up factor = up_exact(((const scale *)m)->factor);
    return answer_of(in, factor, up_mul(factor, in.size), up_round_sum(up_mul(factor, in.size), UP_ZERO));
}

static void scale_describe(const taut_module *m, taut_ledger *l)
{
    ledger_exact(l, "factor", ((const scale *)m)->factor);
}

static taut_up scale_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    (void)m;
    return strays_of(in, promise_axpby(in.table), strays_out(in, b));
}

static const taut_module_ops scale_ops = {
    .kind = "scale",
    .plan = scale_plan,
    .forward = scale_forward,
    .jvp = scale_linear,
    .vjp = scale_linear,
    .bound = scale_bound,
    .strays = scale_strays,
    .params = leaf_no_params,
    .describe = scale_describe,
    .free = leaf_free,
};

taut_module *taut_scale(double factor)
{
    scale *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (scale){ { &scale_ops }, taut_float32(factor) };
    return &s->base;
}
