/* A learned factor for every channel:  y_c = a_c x_c  (the strength of a residual branch in LipsFormer).
 *
 * jvp    ty = a * tx
 * vjp    gx = a * gy;  ga += sum over tokens of gy * x
 * Bound  Lip = max |a_c| in both norms;  |y| <= Lip |x|. */
#include "bound/range.h"
#include "bound/rounding.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    taut_param factor;
} channel;

static taut_plan channel_plan(const taut_module *m, taut_shape in)
{
    TAUT_CHECK(in.d == ((const channel *)m)->factor.cols, "channel: width of the input");
    return (taut_plan){ .out = in };
}

static void channel_linear(const taut_module *m, taut_run *run, taut_tensor y, taut_tensor t, taut_point at)
{
    (void)at;
    run->k->mul_rows(y.data, t.data, ((const channel *)m)->factor.value, taut_rows(y.shape), y.shape.d);
}

static void channel_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    channel_linear(m, run, y, at.x, at);
}

static void channel_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    channel_linear(m, run, gx, gy, at);
    if (!run->param_grads) return;
    run->k->dot_rows(((const channel *)m)->factor.grad, NULL, gy.data, at.x.data, taut_rows(gy.shape), gy.shape.d);
}

static taut_answer channel_bound(const taut_module *m, taut_ask in)
{
    const taut_param *a = &((const channel *)m)->factor;
    const taut_up most = { range_max(taut_ref_values(a), a->cols) };
    const taut_up lip = up_state(in.ledger, "norm", most), size = up_mul(lip, in.size);
    return answer_of(in, lip, size, up_round_sum(size, UP_ZERO));
}

static void channel_params(taut_module *m, taut_visitor *v) { taut_visit_param(v, &((channel *)m)->factor); }

static taut_up channel_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    (void)m;
    return strays_of(in, promise_rows(in.table), strays_out(in, b));
}

static const taut_module_ops channel_ops = {
    .kind = "channel",
    .plan = channel_plan,
    .forward = channel_forward,
    .jvp = channel_linear,
    .vjp = channel_vjp,
    .bound = channel_bound,
    .strays = channel_strays,
    .params = channel_params,
    .free = leaf_free,
};

taut_module *taut_channel(int64_t d, double first)
{
    channel *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->base.ops = &channel_ops;
    s->factor = (taut_param){
        .name = "weight", .rows = 1, .cols = d, .role = TAUT_VECTOR, .init = TAUT_INIT_CONSTANT, .gain = first
    };
    return &s->base;
}
