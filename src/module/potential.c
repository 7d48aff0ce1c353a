/* Convex potential layer:  y = x - (2/s) W^T f(W x + b) for every token;  W is (hidden, width), s one number.
 *
 * jvp    ty = tx - (2/s) W^T (f'(h) * W tx),  h = W x + b, a = f(h)
 * vjp    ga = W gy, gh = -(2/s) f'(h) * ga, gx = gy + W^T gh;
 *        gW += gh x^T - (2/s) a gy^T;  gb += gh;  gs += (2/s^2) ga.a
 * Bound  J = I - (2/s) W^T D W is symmetric: Lip = max(1, |1 - 2 ||W||^2/s|) for slopes in [0, 1], so 1 when
 *        s >= ||W||^2, which training keeps (train/constrain/potential.h); bound/potential.c.
 * Trace  h and a. */
#include "bound/potential.h"
#include "bound/norm.h"
#include "bound/range.h"
#include "bound/rounding.h"
#include "module/curves.h"
#include "module/leaf.h"
#include "module/strays_potential.h"

typedef struct {
    taut_module base;
    taut_param weight, bias, scale;
    bool has_bias;
    taut_curve curve;
} potential;

static taut_shape hidden_shape(const potential *s, taut_shape in) { return (taut_shape){ in.n, in.t, s->weight.rows }; }

static taut_plan potential_plan(const taut_module *m, taut_shape in)
{
    const potential *s = (const potential *)m;
    TAUT_CHECK(in.d == s->weight.cols, "potential: width of the input");
    const int64_t hidden = taut_len(hidden_shape(s, in));
    return (taut_plan){ in, 2 * hidden, hidden + taut_sums_len(1) + taut_sums_len(2), 0 };
}

/* The factor -2/s, in a sum taken from the scratch. */
static taut_factor step_of(const potential *s, taut_run *run)
{
    taut_sum *by = taut_take_sums(&run->scratch, 1);
    run->k->sum_of(by, s->scale.value, 1);
    run->k->sum_op(by, TAUT_SUM_DIV, -2, NULL, by, 1);
    return (taut_factor){ 1, by };
}

/* h = W x */
static void inner(const potential *s, const taut_kernels *k, taut_tensor h, taut_tensor x)
{
    k->gemm(h.data, x.data, s->weight.value, taut_rows(x.shape), s->weight.rows, s->weight.cols, false, true, 1, 0);
}

/* y = x + c W^T a */
static void outer(const potential *s, const taut_kernels *k, taut_tensor y, taut_tensor x, taut_tensor a, taut_factor c)
{
    k->axpby(y.data, 1, x.data, 0, taut_len(y.shape));
    k->gemm_by(y.data, a.data, s->weight.value, taut_rows(a.shape), s->weight.cols, s->weight.rows, false, false, c, 1);
}

static void potential_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const potential *s = (const potential *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const taut_tensor h = taut_take_tensor(&at.trace, hidden_shape(s, at.x.shape));
    const taut_tensor a = taut_take_tensor(&at.trace, h.shape);
    inner(s, k, h, at.x);
    if (s->has_bias) k->add_rows(h.data, h.data, s->bias.value, taut_rows(h.shape), h.shape.d, 1);
    k->pointwise(a.data, h.data, s->curve, taut_len(h.shape));
    outer(s, k, y, at.x, a, step_of(s, run));
    run->scratch = mark;
}

static void potential_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const potential *s = (const potential *)m;
    const taut_span mark = run->scratch;
    const taut_tensor h = taut_take_tensor(&at.trace, hidden_shape(s, at.x.shape));
    const taut_tensor th = taut_take_tensor(&run->scratch, h.shape);
    inner(s, run->k, th, tx);
    run->k->pointwise_slope(th.data, th.data, h.data, s->curve, taut_len(h.shape));
    outer(s, run->k, ty, tx, th, step_of(s, run));
    run->scratch = mark;
}

/* gs += (2/s^2) g.a */
static void add_scale_grad(const potential *s, taut_run *run, const taut_real *g, const taut_real *a, int64_t len)
{
    const taut_kernels *k = run->k;
    taut_sum *by = taut_take_sums(&run->scratch, 2), *dot = taut_sum_at(by, 1);
    k->sum_of(by, s->scale.value, 1);
    k->sum_op(by, TAUT_SUM_MUL, 1, by, by, 1);
    k->sum_op(by, TAUT_SUM_DIV, 2, NULL, by, 1);
    k->dot(dot, g, len, a, len, 1, len);
    k->sum_op(by, TAUT_SUM_MUL, 1, by, dot, 1);
    k->add_sum(s->scale.grad, 1, by, 1);
}

static void potential_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const potential *s = (const potential *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const taut_tensor h = taut_take_tensor(&at.trace, hidden_shape(s, at.x.shape));
    const taut_tensor a = taut_take_tensor(&at.trace, h.shape);
    const taut_tensor g = taut_take_tensor(&run->scratch, h.shape);
    const int64_t rows = taut_rows(gy.shape), len = taut_len(h.shape), hidden = h.shape.d, width = gy.shape.d;
    const taut_factor step = step_of(s, run);
    inner(s, k, g, gy);
    if (run->param_grads) add_scale_grad(s, run, g.data, a.data, len);
    k->pointwise_slope(g.data, g.data, h.data, s->curve, len);
    k->axpby_by(g.data, 0, (taut_factor){ 0, NULL }, NULL, 0, step, 1, len);
    outer(s, k, gx, gy, g, (taut_factor){ 1, NULL });
    if (run->param_grads) {
        k->gemm(s->weight.grad, g.data, at.x.data, hidden, width, rows, true, false, 1, 1);
        k->gemm_by(s->weight.grad, a.data, gy.data, hidden, width, rows, true, false, step, 1);
        if (s->has_bias) k->sum_rows(s->bias.grad, g.data, rows, hidden, 1);
    }
    run->scratch = mark;
}

/* 1/s as a factor, so that s < 0 turns the slopes round. */
static taut_slopes turned(taut_slopes f, double scale) { return scale < 0 ? (taut_slopes){ -f.hi, -f.lo } : f; }

static taut_answer potential_bound_mixed(const taut_module *m, taut_ask in, double keep, double mix)
{
    const potential *s = (const potential *)m;
    const int64_t hidden = s->weight.rows, width = s->weight.cols;
    const double *w = taut_ref_values(&s->weight), scale = *taut_ref_values(&s->scale);
    const taut_slopes f = taut_curve_slopes(s->curve);
    const taut_up norm = up_state(in.ledger, "norm", up_norm(w, hidden, width));
    const taut_lo over = lo_exact(isfinite(scale) ? scale : 0), root = lo_sqrt(over); /* nothing follows of infinity */
    const taut_up shift_in = s->has_bias ? up_norm_frobenius(taut_ref_values(&s->bias), hidden) : UP_ZERO;
    const taut_up bias = up_state(in.ledger, "bias", shift_in.v == 0 ? UP_ZERO : up_div(shift_in, root));
    const taut_up ratio = up_div(up_mul(norm, norm), over), weight = up_exact(mix);
    const taut_up linear = up_potential_lip(turned(taut_curve_ratio(s->curve), scale), ratio, keep, mix);
    const taut_up shift = up_mul(up_mul((taut_up){ 2 }, weight), up_mul(up_sqrt(ratio), bias));
    const taut_up plain = up_norm_frobenius(w, hidden * width);
    const taut_up round = up_potential_round(width, hidden, f, up_div(plain, root), bias, UP_ZERO, in.size, root,
                                             plain);
    const taut_up size = up_add(up_mul(linear, in.size), shift), kept = up_mul(up_exact(keep), in.size);
    return answer_of(in, up_potential_lip(turned(f, scale), ratio, keep, mix), size,
                     up_add(up_mul(weight, round), up_round_sum(kept, up_add(size, kept))));
}

static taut_answer potential_bound(const taut_module *m, taut_ask in) { return potential_bound_mixed(m, in, 0, 1); }

/* R is 1/s, which the slots make in double and round to a float. */
static taut_up potential_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const potential *s = (const potential *)m;
    const int64_t hidden = s->weight.rows, width = s->weight.cols;
    const double *w = taut_ref_values(&s->weight), scale = *taut_ref_values(&s->scale);
    const double *bias = s->has_bias ? taut_ref_values(&s->bias) : NULL;
    if (!(fabs(scale) < 0x1p90 && fabs(scale) > 0x1p-90)) return UP_NONE;
    const taut_lo root = lo_sqrt(lo_exact(scale));
    const taut_up frobenius = up_norm_frobenius(w, hidden * width), norm = up_norm(w, hidden, width);
    const taut_up most = up_add(up_mul(norm, taut_longest(in)), (taut_up){ bias ? range_max(bias, hidden) : 0 });
    (void)b;
    return strays_potential(
        in, &(taut_strays_potential){ .width = width,
                                      .hidden = hidden,
                                      .curve = s->curve,
                                      .slopes = taut_curve_slopes(s->curve),
                                      .norm = up_div(norm, root),
                                      .frobenius = up_div(frobenius, root),
                                      .plain = frobenius,
                                      .bias = bias ? up_div(up_norm_frobenius(bias, hidden), root) : UP_ZERO,
                                      .root = up_div((taut_up){ 1 }, root),
                                      .delta = { promise_rows(in.table) },
                                      .most = most });
}

static void potential_params(taut_module *m, taut_visitor *v)
{
    potential *s = (potential *)m;
    taut_visit_param(v, &s->weight);
    if (s->has_bias) taut_visit_param(v, &s->bias);
    taut_visit_param(v, &s->scale);
}

static void potential_describe(const taut_module *m, taut_ledger *l)
{
    ledger_word(l, "curve", taut_curve_name(((const potential *)m)->curve));
}

static const taut_module_ops potential_ops = {
    .kind = "potential",
    .plan = potential_plan,
    .forward = potential_forward,
    .jvp = potential_jvp,
    .vjp = potential_vjp,
    .bound = potential_bound,
    .strays = potential_strays,
    .bound_mixed = potential_bound_mixed,
    .params = potential_params,
    .describe = potential_describe,
    .free = leaf_free,
};

taut_module *taut_potential(const taut_potential_spec *spec)
{
    potential *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (potential){ .base = { &potential_ops }, .has_bias = spec->bias, .curve = spec->curve };
    s->weight = (taut_param){
        .name = "weight", .rows = spec->hidden, .cols = spec->width, .init = spec->init, .gain = spec->gain
    };
    s->bias = (taut_param){ .name = "bias", .rows = 1, .cols = spec->hidden, .role = TAUT_VECTOR };
    s->scale = (taut_param){ .name = "scale",
                             .rows = 1,
                             .cols = 1,
                             .role = TAUT_VECTOR,
                             .init = TAUT_INIT_CONSTANT,
                             .gain = spec->init == TAUT_INIT_NORMAL ? 1 : spec->gain * spec->gain,
                             .above = &s->weight };
    return &s->base;
}
