/* Two-layer perceptron:  y = W_out c f(W_in x + b_in) + b_out for every token.
 *
 * jvp    ty = W_out (c f'(h) * W_in tx),  h = W_in x + b_in
 * vjp    ga = W_out^T gy,  gh = c f'(h) * ga,  gx = W_in^T gh;  weights and biases as in linear.c
 * Bound  joint over both layers, and over the residual around it when there is one: bound/mlp.c
 * Trace  h and c f(h). */
#include "bound/mlp.h"
#include "base/float32.h"
#include "bound/norm.h"
#include "bound/rounding.h"
#include "module/curves.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    taut_param w_in, b_in, w_out, b_out;
    bool bias;
    taut_curve curve;
    double factor;
} mlp;

static taut_shape hidden_shape(const mlp *s, taut_shape in) { return (taut_shape){ in.n, in.t, s->w_in.rows }; }

static taut_plan mlp_plan(const taut_module *m, taut_shape in)
{
    const mlp *s = (const mlp *)m;
    TAUT_CHECK(in.d == s->w_in.cols, "mlp: width of the input");
    const int64_t hidden = taut_len(hidden_shape(s, in));
    return (taut_plan){ { in.n, in.t, s->w_out.rows }, 2 * hidden, 2 * hidden, 0 };
}

/* y = W x (+ b) */
static void affine(const mlp *s, const taut_kernels *k, taut_tensor y, const taut_param *w, const taut_param *b,
                   taut_tensor x)
{
    k->affine(y.data, x.data, w->value, b && s->bias ? b->value : NULL, taut_rows(x.shape), w->rows, w->cols, 1);
}

static void times_factor(const mlp *s, const taut_kernels *k, taut_tensor y)
{
    if (s->factor != 1) k->axpby(y.data, s->factor, y.data, 0, taut_len(y.shape));
}

static void mlp_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const mlp *s = (const mlp *)m;
    const taut_tensor h = taut_take_tensor(&at.trace, hidden_shape(s, at.x.shape));
    const taut_tensor a = taut_take_tensor(&at.trace, h.shape);
    affine(s, run->k, h, &s->w_in, &s->b_in, at.x);
    run->k->pointwise(a.data, h.data, s->curve, taut_len(h.shape));
    times_factor(s, run->k, a);
    affine(s, run->k, y, &s->w_out, &s->b_out, a);
}

static void mlp_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const mlp *s = (const mlp *)m;
    const taut_span mark = run->scratch;
    const taut_tensor h = taut_take_tensor(&at.trace, hidden_shape(s, at.x.shape));
    const taut_tensor th = taut_take_tensor(&run->scratch, h.shape);
    affine(s, run->k, th, &s->w_in, NULL, tx);
    run->k->pointwise_slope(th.data, th.data, h.data, s->curve, taut_len(h.shape));
    times_factor(s, run->k, th);
    affine(s, run->k, ty, &s->w_out, NULL, th);
    run->scratch = mark;
}

/* gx = W^T gy, and the gradients of W and b */
static void affine_back(const mlp *s, const taut_run *run, taut_tensor gx, taut_tensor gy, const taut_param *w,
                        const taut_param *b, taut_tensor x)
{
    const int64_t rows = taut_rows(gy.shape);
    run->k->gemm(gx.data, gy.data, w->value, rows, w->cols, w->rows, false, false, 1, 0);
    if (!run->param_grads) return;
    run->k->gemm(w->grad, gy.data, x.data, w->rows, w->cols, rows, true, false, 1, 1);
    if (s->bias) run->k->sum_rows(b->grad, gy.data, rows, w->rows, 1);
}

static void mlp_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const mlp *s = (const mlp *)m;
    const taut_span mark = run->scratch;
    const taut_tensor h = taut_take_tensor(&at.trace, hidden_shape(s, at.x.shape));
    const taut_tensor a = taut_take_tensor(&at.trace, h.shape);
    const taut_tensor g = taut_take_tensor(&run->scratch, h.shape);
    affine_back(s, run, g, gy, &s->w_out, &s->b_out, a);
    run->k->pointwise_slope(g.data, g.data, h.data, s->curve, taut_len(h.shape));
    times_factor(s, run->k, g);
    affine_back(s, run, gx, g, &s->w_in, &s->b_in, at.x);
    run->scratch = mark;
}

/* The slopes of the hidden units near token x: unit k moves by at most |row k| r, and is computed with width + 2 roundings. */
static void unit_slopes(const mlp *s, taut_slopes *unit, const double *x, double r)
{
    const int64_t width = s->w_in.cols;
    const taut_up size = up_norm_frobenius(x, width);
    for (int64_t k = 0; k < s->w_in.rows; k++) {
        const double *w = taut_ref_values(&s->w_in) + k * width, b = s->bias ? taut_ref_values(&s->b_in)[k] : 0;
        const taut_up row = up_norm_frobenius(w, width), mass = up_add(up_mul(row, size), up_exact(b));
        double z = b;
        for (int64_t i = 0; i < width; i++) z += w[i] * x[i];
        unit[k] = taut_curve_near(s->curve, z, up_add(up_mul(row, (taut_up){ r }), up_rounded(width + 2, mass)).v);
    }
}

/* Around a centre: the steepest of its tokens; no more than `most`, which holds everywhere. */
static taut_up up_near(const mlp *s, const taut_mlp_weights *w, taut_ask in, taut_up most)
{
    const taut_shape x = in.centre.x.shape;
    taut_slopes *unit = taut_malloc((size_t)(w->hidden + 1) * sizeof *unit);
    taut_up lip = unit ? UP_ZERO : most;
    for (int64_t t = 0; t < taut_rows(x) && lip.v < most.v; t++) {
        unit_slopes(s, unit, (const double *)in.centre.x.data + t * x.d, in.radius.v);
        lip = up_max(lip, up_mlp_near(w, unit));
    }
    free(unit);
    return up_min(lip, most);
}

static taut_answer mlp_bound_mixed(const taut_module *m, taut_ask in, double keep, double mix)
{
    const mlp *s = (const mlp *)m;
    const taut_mlp_weights w = {
        .width = s->w_in.cols,
        .hidden = s->w_in.rows,
        .out = s->w_out.rows,
        .w_in = taut_ref_values(&s->w_in),
        .b_in = s->bias ? taut_ref_values(&s->b_in) : NULL,
        .w_out = taut_ref_values(&s->w_out),
        .b_out = s->bias ? taut_ref_values(&s->b_out) : NULL,
        .slopes = taut_curve_slopes(s->curve),
        .ratio = taut_curve_ratio(s->curve),
        .factor = s->factor,
        .keep = keep,
        .mix = mix,
        .ledger = in.ledger,
    };
    taut_mlp_numbers n = up_mlp_numbers(&w);
    n.norm_out = up_state(in.ledger, "norm_out", n.norm_out);
    n.scaled_in = up_state(in.ledger, "scaled_in", n.scaled_in);
    n.scaled_out = up_state(in.ledger, "scaled_out", n.scaled_out);
    n.joint = up_state(in.ledger, "joint", n.joint);
    n.joint_half = up_state(in.ledger, "joint_half", n.joint_half);
    n.bias_in = up_state(in.ledger, "bias_in", n.bias_in);
    n.bias_out = up_state(in.ledger, "bias_out", n.bias_out);
    const taut_up size = up_mlp_growth(&w, &n, in.size), kept = up_mul(up_exact(keep), in.size);
    const taut_up round = up_mul(up_exact(mix), up_round_mlp(&w, in.size)); /* |mix f(x)| <= |y| + |keep x| */
    const taut_up lip = up_mlp_lip(&w, &n);
    return answer_of(in, in.centre.x.data ? up_near(s, &w, in, lip) : lip, size,
                     up_add(round, up_round_sum(kept, up_add(size, kept))));
}

static taut_answer mlp_bound(const taut_module *m, taut_ask in) { return mlp_bound_mixed(m, in, 0, 1); }

static void mlp_params(taut_module *m, taut_visitor *v)
{
    mlp *s = (mlp *)m;
    taut_visit_param(v, &s->w_in);
    if (s->bias) taut_visit_param(v, &s->b_in);
    taut_visit_param(v, &s->w_out);
    if (s->bias) taut_visit_param(v, &s->b_out);
}

static void mlp_describe(const taut_module *m, taut_ledger *l)
{
    const mlp *s = (const mlp *)m;
    ledger_word(l, "curve", taut_curve_name(s->curve));
    ledger_exact(l, "factor", s->factor);
}

static taut_up mlp_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const mlp *s = (const mlp *)m;
    const int64_t width = s->w_in.cols, hidden = s->w_in.rows, out = s->w_out.rows;
    const double *w_in = taut_ref_values(&s->w_in), *b_in = s->bias ? taut_ref_values(&s->b_in) : NULL;
    const double *w_out = taut_ref_values(&s->w_out), *b_out = s->bias ? taut_ref_values(&s->b_out) : NULL;
    const taut_up norm_in = up_norm(w_in, hidden, width), norm_out = up_norm(w_out, out, hidden),
                  root = strays_root(in);
    const taut_up bias_in = b_in ? up_norm_frobenius(b_in, hidden) : UP_ZERO;
    const taut_up bias_out = b_out ? up_mul(root, up_norm_frobenius(b_out, out)) : UP_ZERO;
    const taut_up h = up_add(up_mul(norm_in, strays_in(in)), up_mul(root, bias_in)); /* h, a and y: their lengths */
    const taut_up eh = strays_affine(in, w_in, b_in, hidden, width, 1, strays_in(in), h), all = up_add(h, eh);
    const taut_up most = up_min(all, up_add(up_add(up_mul(norm_in, taut_longest(in)), bias_in), eh));
    const taut_up factor = up_exact(s->factor), slope = up_slopes_lip(taut_curve_slopes(s->curve));
    const taut_up ea = up_add(up_mul(up_mul(factor, slope), eh), strays_curve(in, s->curve, s->factor, all, most));
    const taut_up a = up_add(up_mul(factor, h), ea), y = up_add(up_mul(norm_out, a), bias_out);
    (void)b;
    return up_add(up_mul(norm_out, ea), strays_affine(in, w_out, b_out, out, hidden, 1, a, y));
}

static const taut_module_ops mlp_ops = {
    .kind = "mlp",
    .plan = mlp_plan,
    .forward = mlp_forward,
    .jvp = mlp_jvp,
    .vjp = mlp_vjp,
    .bound = mlp_bound,
    .strays = mlp_strays,
    .bound_mixed = mlp_bound_mixed,
    .params = mlp_params,
    .describe = mlp_describe,
    .free = leaf_free,
};

taut_module *taut_mlp(const taut_mlp_spec *spec)
{
    mlp *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    const taut_init out_init = spec->out_gain == 0 ? TAUT_INIT_ZERO : spec->init;
    *s = (mlp){ .base = { &mlp_ops }, .bias = spec->bias, .curve = spec->curve, .factor = taut_float32(spec->factor) };
    s->w_in = (taut_param){
        .name = "in.weight", .rows = spec->hidden, .cols = spec->width, .init = spec->init, .gain = spec->gain
    };
    s->b_in = (taut_param){ .name = "in.bias", .rows = 1, .cols = spec->hidden, .role = TAUT_VECTOR };
    s->w_out = (taut_param){
        .name = "out.weight", .rows = spec->out, .cols = spec->hidden, .init = out_init, .gain = spec->out_gain
    };
    s->b_out = (taut_param){ .name = "out.bias", .rows = 1, .cols = spec->out, .role = TAUT_VECTOR };
    return &s->base;
}
