/* Linear:  y = W x + b for every token;  W is (out, in), b may be absent.
 *
 * jvp    ty = W tx
 * vjp    gx = W^T gy;  gW += sum gy x^T;  gb += sum gy
 * Bound  Lip = ||W||_2 in both norms (it acts on each token alone);  |y| <= ||W|| |x| + |b|.
 *
 * A tied linear uses a table that belongs to somebody else (the token embedding) as its W. */
#include "bound/norm.h"
#include "bound/rounding.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    taut_param own, bias;
    taut_param *w; /* &own, or the table it is tied to */
    bool has_bias;
} linear;

static taut_plan linear_plan(const taut_module *m, taut_shape in)
{
    const linear *s = (const linear *)m;
    TAUT_CHECK(in.d == s->w->cols, "linear: width of the input");
    return (taut_plan){ .out = { in.n, in.t, s->w->rows } };
}

/* y = W x (+ b) */
static void linear_apply(const linear *s, const taut_kernels *k, taut_tensor y, taut_tensor x, bool bias)
{
    k->affine(y.data, x.data, s->w->value, bias ? s->bias.value : NULL, taut_rows(x.shape), s->w->rows, s->w->cols, 1);
}

static void linear_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const linear *s = (const linear *)m;
    linear_apply(s, run->k, y, at.x, s->has_bias);
}

static void linear_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    (void)at;
    linear_apply((const linear *)m, run->k, ty, tx, false);
}

static void linear_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const linear *s = (const linear *)m;
    const taut_kernels *k = run->k;
    const int64_t rows = taut_rows(gy.shape), out = s->w->rows, in = s->w->cols;
    k->gemm(gx.data, gy.data, s->w->value, rows, in, out, false, false, 1, 0);
    if (!run->param_grads) return;
    k->gemm(s->w->grad, gy.data, at.x.data, out, in, rows, true, false, 1, 1);
    if (s->has_bias) k->sum_rows(s->bias.grad, gy.data, rows, out, 1);
}

static taut_answer linear_bound(const taut_module *m, taut_ask in)
{
    const linear *s = (const linear *)m;
    const double *w = taut_ref_values(s->w), *b = s->has_bias ? taut_ref_values(&s->bias) : NULL;
    const taut_up lip = up_state(in.ledger, "norm", up_norm(w, s->w->rows, s->w->cols));
    const taut_up bias = b ? up_state(in.ledger, "bias", up_norm_frobenius(b, s->bias.cols)) : UP_ZERO;
    const taut_up size = b ? up_add(up_mul(lip, in.size), bias) : up_mul(lip, in.size);
    const taut_up whole = up_add(up_mul(lip, taut_whole(in)), up_mul(up_sqrt(up_int(in.tokens)), bias));
    const taut_up round = up_round_linear(w, b, s->w->rows, s->w->cols, taut_longest(in));
    return answer_within(in, lip, size, round, whole);
}

static void linear_params(taut_module *m, taut_visitor *v)
{
    linear *s = (linear *)m;
    if (s->w == &s->own) taut_visit_param(v, &s->own);
    if (s->has_bias) taut_visit_param(v, &s->bias);
}

static void linear_describe(const taut_module *m, taut_ledger *l)
{
    const linear *s = (const linear *)m;
    ledger_exact(l, "tied", s->w != &s->own); /* to the model's embedding */
}

static taut_up linear_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const linear *s = (const linear *)m;
    const double *bias = s->has_bias ? taut_ref_values(&s->bias) : NULL;
    return strays_affine(in, taut_ref_values(s->w), bias, s->w->rows, s->w->cols, 1, strays_in(in), strays_out(in, b));
}

static const taut_module_ops linear_ops = {
    .kind = "linear",
    .plan = linear_plan,
    .forward = linear_forward,
    .jvp = linear_jvp,
    .vjp = linear_vjp,
    .bound = linear_bound,
    .strays = linear_strays,
    .params = linear_params,
    .describe = linear_describe,
    .free = leaf_free,
};

static taut_param bias_of(int64_t out)
{
    return (taut_param){ .name = "bias", .rows = 1, .cols = out, .role = TAUT_VECTOR };
}

taut_module *taut_linear(int64_t out, int64_t in, bool bias, taut_init init, double gain)
{
    linear *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->base.ops = &linear_ops;
    s->own = (taut_param){ .name = "weight", .rows = out, .cols = in, .init = init, .gain = gain };
    s->bias = bias_of(out);
    s->w = &s->own;
    s->has_bias = bias;
    return &s->base;
}

taut_module *taut_linear_turn(int64_t width)
{
    taut_module *m = taut_linear(width, width, false, TAUT_INIT_ORTHOGONAL, 1);
    if (m) ((linear *)m)->own.orthogonal = true;
    return m;
}

taut_module *taut_linear_unit(int64_t out, int64_t in, bool bias)
{
    taut_module *m = taut_linear(out, in, bias, TAUT_INIT_ORTHOGONAL, 1);
    if (m) ((linear *)m)->own.unit_rows = true;
    return m;
}

taut_module *taut_linear_tied(taut_param *table, bool bias)
{
    linear *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->base.ops = &linear_ops;
    s->bias = bias_of(table->rows);
    s->w = table;
    s->has_bias = bias;
    return &s->base;
}

const taut_param *taut_linear_weight(const taut_module *m)
{
    TAUT_CHECK(m->ops == &linear_ops, "this is no linear module");
    return ((const linear *)m)->w;
}
