/* Activations:  y = c f(x) entry by entry;  f is GELU (erf or tanh form), ReLU, SiLU, tanh, |x| or ELU.
 *
 * jvp = vjp   ty = c f'(x) tx   (ReLU and |x|: f'(0) = 0)
 * Bound       Lip = |c| max |f'|, proved in bound/curve.c;  |y| <= |c| |x|, since |f(x)| <= |x| for all of them.
 * c is a float, so kernel and bound speak of the same number. */
#include "base/float32.h"
#include "bound/rounding.h"
#include "module/curves.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    taut_curve curve;
    double factor;
} pointwise;

static taut_plan pointwise_plan(const taut_module *m, taut_shape in)
{
    (void)m;
    return (taut_plan){ .out = in };
}

static void times_factor(const pointwise *s, const taut_kernels *k, taut_tensor y)
{
    if (s->factor != 1) k->axpby(y.data, s->factor, y.data, 0, taut_len(y.shape));
}

static void pointwise_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const pointwise *s = (const pointwise *)m;
    run->k->pointwise(y.data, at.x.data, s->curve, taut_len(y.shape));
    times_factor(s, run->k, y);
}

static void pointwise_slope(const taut_module *m, taut_run *run, taut_tensor y, taut_tensor t, taut_point at)
{
    const pointwise *s = (const pointwise *)m;
    run->k->pointwise_slope(y.data, t.data, at.x.data, s->curve, taut_len(y.shape));
    times_factor(s, run->k, y);
}

taut_slopes taut_curve_slopes(taut_curve curve)
{
    switch (curve) {
    case TAUT_GELU:
        return slopes_gelu();
    case TAUT_GELU_TANH:
        return slopes_gelu_tanh();
    case TAUT_RELU:
    case TAUT_ELU: /* from 0, far on the left, to 1 */
        return slopes_relu();
    case TAUT_SILU:
        return slopes_silu();
    case TAUT_TANH:
        return slopes_tanh();
    case TAUT_ABS:
        return slopes_abs();
    }
    return (taut_slopes){ -INFINITY, INFINITY };
}

taut_slopes taut_curve_ratio(taut_curve curve) { return curve == TAUT_ABS ? slopes_abs() : slopes_relu(); }

const char *taut_curve_name(taut_curve curve)
{
    static const char *const names[] = { "gelu", "gelu_tanh", "relu", "silu", "tanh", "abs", "elu" };
    return names[curve];
}

/* Around a centre: the steepest secant of any entry's interval. */
static taut_up up_near(const pointwise *s, taut_ask in)
{
    const double *x = (const double *)in.centre.x.data;
    taut_up most = UP_ZERO;
    for (int64_t i = 0; i < taut_len(in.centre.x.shape); i++)
        most = up_max(most, up_slopes_lip(taut_curve_near(s->curve, x[i], in.radius.v)));
    return most;
}

static taut_answer pointwise_bound(const taut_module *m, taut_ask in)
{
    const pointwise *s = (const pointwise *)m;
    const taut_up factor = up_exact(s->factor), size = up_mul(factor, in.size);
    taut_up slope = up_slopes_lip(taut_curve_slopes(s->curve));
    if (in.centre.x.data) slope = up_min(slope, up_near(s, in));
    const taut_up round = up_round_curve(up_mul(factor, taut_longest(in))), whole = up_mul(factor, taut_whole(in));
    return answer_within(in, up_mul(factor, slope), size, round, whole);
}

static void pointwise_describe(const taut_module *m, taut_ledger *l)
{
    const pointwise *s = (const pointwise *)m;
    ledger_word(l, "curve", taut_curve_name(s->curve));
    ledger_exact(l, "factor", s->factor);
}

static taut_up pointwise_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const pointwise *s = (const pointwise *)m;
    (void)b;
    return strays_curve(in, s->curve, s->factor, strays_in(in), taut_longest(in));
}

static const taut_module_ops pointwise_ops = {
    .kind = "pointwise",
    .plan = pointwise_plan,
    .forward = pointwise_forward,
    .jvp = pointwise_slope,
    .vjp = pointwise_slope,
    .bound = pointwise_bound,
    .strays = pointwise_strays,
    .params = leaf_no_params,
    .describe = pointwise_describe,
    .free = leaf_free,
};

taut_module *taut_pointwise(taut_curve curve, double factor)
{
    pointwise *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (pointwise){ { &pointwise_ops }, curve, taut_float32(factor) };
    return &s->base;
}
