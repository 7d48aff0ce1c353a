/* SLL, the SDP-based Lipschitz layer:  y = x - 2 V^T R f(V x + b),  V (hidden, width), R = diag(1/t),
 *     t_i = eps + sum_j |G_ij| q_j/q_i,   G = V V^T,   q = exp(log_q) learned,   eps = 2^-40.
 *
 * jvp    ty = tx - 2 V^T (R f'(h) * V tx),  h = V x + b, a = f(h)
 * vjp    ga = V gy, gh = -2 R f'(h) * ga, gx = gy + V^T gh;  gV += gh x^T - 2 (R a) gy^T;  gb += gh;
 *        gr = -2 sum over tokens of ga * a, then through r = 1/t to G, so gV += (gG + gG^T) V, and to log_q
 * Bound  G <= T by diagonal dominance whatever V and q are: Lip = 1 for slopes in [0, 1]; bound/potential.c.
 * Trace  h, a, r, G.   eps keeps t > 0 for a row of zeros, and T >= G all the same. */
#include <math.h>

#include "bound/potential.h"
#include "bound/range.h"
#include "bound/rounding.h"
#include "module/curves.h"
#include "module/leaf.h"
#include "module/strays_potential.h"

static const double EPS = 0x1p-40;

typedef struct {
    taut_module base;
    taut_param weight, bias, log_q;
    bool has_bias;
    taut_curve curve;
} sll;

typedef struct {
    taut_tensor h, a;
    taut_real *r, *g;
} kept;

static taut_shape hidden_shape(const sll *s, taut_shape in) { return (taut_shape){ in.n, in.t, s->weight.rows }; }

static kept kept_at(const sll *s, taut_point at)
{
    kept t = { .h = taut_take_tensor(&at.trace, hidden_shape(s, at.x.shape)) };
    t.a = taut_take_tensor(&at.trace, t.h.shape);
    t.r = taut_take(&at.trace, s->weight.rows);
    t.g = taut_take(&at.trace, s->weight.rows * s->weight.rows);
    return t;
}

static taut_plan sll_plan(const taut_module *m, taut_shape in)
{
    const sll *s = (const sll *)m;
    TAUT_CHECK(in.d == s->weight.cols, "sll: width of the input");
    const int64_t hidden = s->weight.rows, all = taut_len(hidden_shape(s, in));
    return (taut_plan){ in, 2 * all + hidden + hidden * hidden, all + hidden + hidden * hidden, 0 };
}

/* h = V x */
static void inner(const sll *s, const taut_kernels *k, taut_tensor h, taut_tensor x)
{
    k->gemm(h.data, x.data, s->weight.value, taut_rows(x.shape), s->weight.rows, s->weight.cols, false, true, 1, 0);
}

/* y = x - 2 V^T (r * a); a is overwritten by r * a */
static void outer(const sll *s, const taut_kernels *k, taut_tensor y, taut_tensor x, taut_real *a, const taut_real *r)
{
    const int64_t rows = taut_rows(x.shape), hidden = s->weight.rows, width = s->weight.cols;
    k->mul_rows(a, a, r, rows, hidden);
    k->axpby(y.data, 1, x.data, 0, taut_len(y.shape));
    k->gemm(y.data, a, s->weight.value, rows, width, hidden, false, false, -2, 1);
}

static void sll_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const sll *s = (const sll *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const int64_t hidden = s->weight.rows, len = taut_len(t.h.shape);
    taut_real *scaled = taut_take(&run->scratch, len);
    k->gemm(t.g, s->weight.value, s->weight.value, hidden, hidden, s->weight.cols, false, true, 1, 0);
    k->dominance(t.r, t.g, s->log_q.value, hidden, EPS);
    inner(s, k, t.h, at.x);
    if (s->has_bias) k->add_rows(t.h.data, t.h.data, s->bias.value, taut_rows(t.h.shape), hidden, 1);
    k->pointwise(t.a.data, t.h.data, s->curve, len);
    k->axpby(scaled, 1, t.a.data, 0, len);
    outer(s, k, y, at.x, scaled, t.r);
    run->scratch = mark;
}

static void sll_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const sll *s = (const sll *)m;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_tensor th = taut_take_tensor(&run->scratch, t.h.shape);
    inner(s, run->k, th, tx);
    run->k->pointwise_slope(th.data, th.data, t.h.data, s->curve, taut_len(t.h.shape));
    outer(s, run->k, ty, tx, th.data, t.r);
    run->scratch = mark;
}

/* The gradients that come through r: gr = -2 sum of ga * a, then log_q, and G = V V^T. */
static void add_dominance(const sll *s, taut_run *run, const kept *t, taut_tensor ga)
{
    const taut_kernels *k = run->k;
    const int64_t hidden = s->weight.rows, width = s->weight.cols;
    taut_real *gr = taut_take(&run->scratch, hidden), *gg = taut_take(&run->scratch, hidden * hidden);
    k->axpby(gr, 0, gr, 0, hidden);
    k->dot_rows(gr, NULL, ga.data, t->a.data, taut_rows(ga.shape), hidden);
    k->axpby(gr, -2, gr, 0, hidden);
    k->dominance_vjp(gg, s->log_q.grad, gr, t->r, t->g, s->log_q.value, hidden);
    for (int turn = 0; turn < 2; turn++)
        k->gemm(s->weight.grad, gg, s->weight.value, hidden, width, hidden, turn, false, 1, 1);
}

static void sll_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const sll *s = (const sll *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_tensor g = taut_take_tensor(&run->scratch, t.h.shape);
    const int64_t rows = taut_rows(gy.shape), hidden = s->weight.rows, width = s->weight.cols;
    inner(s, k, g, gy);
    if (run->param_grads) add_dominance(s, run, &t, g);
    k->pointwise_slope(g.data, g.data, t.h.data, s->curve, taut_len(t.h.shape));
    outer(s, k, gx, gy, g.data, t.r);
    if (run->param_grads) { /* g is now R f'(h) * ga, lacking the factor -2 */
        k->gemm(s->weight.grad, g.data, at.x.data, hidden, width, rows, true, false, -2, 1);
        k->axpby(g.data, -2, g.data, 0, taut_len(g.shape));
        if (s->has_bias) k->sum_rows(s->bias.grad, g.data, rows, hidden, 1);
        k->mul_rows(g.data, t.a.data, t.r, rows, hidden);
        k->gemm(s->weight.grad, g.data, gy.data, hidden, width, rows, true, false, -2, 1);
    }
    run->scratch = mark;
}

static taut_answer sll_bound_mixed(const taut_module *m, taut_ask in, double keep, double mix)
{
    const sll *s = (const sll *)m;
    const int64_t hidden = s->weight.rows, width = s->weight.cols;
    const taut_slopes f = taut_curve_slopes(s->curve);
    const taut_sll_numbers n = up_sll(taut_ref_values(&s->weight), s->has_bias ? taut_ref_values(&s->bias) : NULL,
                                      taut_ref_values(&s->log_q), hidden, width, EPS);
    const taut_up ratio = n.ratio, weight = up_exact(mix);
    const taut_up bias = up_state(in.ledger, "bias", n.bias);
    const taut_up linear = up_potential_lip(taut_curve_ratio(s->curve), ratio, keep, mix);
    const taut_up shift = up_mul(up_mul((taut_up){ 2 }, weight), bias);
    /* ||T^-1/2 V||_F^2 = sum |v_i|^2 / t_i <= hidden */
    const taut_up plain = up_norm_frobenius(taut_ref_values(&s->weight), hidden * width);
    const taut_up round = up_potential_round(width, hidden, f, up_sqrt(up_int(hidden)), bias, n.delta, in.size,
                                             lo_sqrt(lo_exact(EPS)), plain);
    const taut_up size = up_add(up_mul(linear, in.size), shift), kept = up_mul(up_exact(keep), in.size);
    return answer_of(in, up_potential_lip(f, ratio, keep, mix), size,
                     up_add(up_mul(weight, round), up_round_sum(kept, up_add(size, kept))));
}

static taut_answer sll_bound(const taut_module *m, taut_ask in) { return sll_bound_mixed(m, in, 0, 1); }

/* ||R^1/2 V|| <= 1, and its Frobenius norm is sqrt(hidden) at most (above). */
static taut_up sll_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const sll *s = (const sll *)m;
    const int64_t hidden = s->weight.rows, width = s->weight.cols;
    const double *v = taut_ref_values(&s->weight), *l = taut_ref_values(&s->log_q);
    const double *bias = s->has_bias ? taut_ref_values(&s->bias) : NULL;
    const double spread = range_max(l, hidden);
    const taut_sll_off by = { { promise_product(in.table, width) },
                              { (double)(2 * width + 8) * PROMISE_LEAST },
                              { promise_product_result(in.table) + promise_dominance(in.table, hidden, spread) } };
    taut_up row = UP_ZERO;
    for (int64_t i = 0; i < hidden; i++) row = up_max(row, up_norm_frobenius(v + i * width, width));
    const taut_up most = up_add(up_mul(row, taut_longest(in)), (taut_up){ bias ? range_max(bias, hidden) : 0 });
    (void)b;
    return strays_potential(in, &(taut_strays_potential){ .width = width,
                                                          .hidden = hidden,
                                                          .curve = s->curve,
                                                          .slopes = taut_curve_slopes(s->curve),
                                                          .norm = { 1 },
                                                          .frobenius = up_sqrt(up_int(hidden)),
                                                          .plain = up_norm_frobenius(v, hidden * width),
                                                          .bias = up_sll(v, bias, l, hidden, width, EPS).bias,
                                                          .root = { 1 / sqrt(EPS) },
                                                          .delta = up_sll_delta(v, l, hidden, width, EPS, by),
                                                          .most = most });
}

static void sll_params(taut_module *m, taut_visitor *v)
{
    sll *s = (sll *)m;
    taut_visit_param(v, &s->weight);
    if (s->has_bias) taut_visit_param(v, &s->bias);
    taut_visit_param(v, &s->log_q);
}

static void sll_describe(const taut_module *m, taut_ledger *l)
{
    ledger_word(l, "curve", taut_curve_name(((const sll *)m)->curve));
}

static const taut_module_ops sll_ops = {
    .kind = "sll",
    .plan = sll_plan,
    .forward = sll_forward,
    .jvp = sll_jvp,
    .vjp = sll_vjp,
    .bound = sll_bound,
    .strays = sll_strays,
    .bound_mixed = sll_bound_mixed,
    .params = sll_params,
    .describe = sll_describe,
    .free = leaf_free,
};

taut_module *taut_sll(const taut_potential_spec *spec)
{
    sll *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (sll){ .base = { &sll_ops }, .has_bias = spec->bias, .curve = spec->curve };
    s->weight = (taut_param){
        .name = "weight", .rows = spec->hidden, .cols = spec->width, .init = spec->init, .gain = spec->gain
    };
    s->bias = (taut_param){ .name = "bias", .rows = 1, .cols = spec->hidden, .role = TAUT_VECTOR };
    s->log_q = (taut_param){ .name = "log_q", .rows = 1, .cols = spec->hidden, .role = TAUT_VECTOR };
    return &s->base;
}
