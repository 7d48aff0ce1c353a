/* A learned token in front of all others (a class token):  y_0 = p,  y_{t+1} = x_t.
 *
 * jvp    ty_0 = 0, the others as they are;   vjp  gx_t = gy_{t+1};  gp += sum over examples of gy_0
 * Bound  Lip = 1 in both norms: y - y' is x - x' behind a zero token.   |y| <= max(|x|, |p|). */
#include "bound/norm.h"
#include "bound/rounding.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    taut_param token;
} prefix;

static taut_plan prefix_plan(const taut_module *m, taut_shape in)
{
    TAUT_CHECK(in.d == ((const prefix *)m)->token.cols, "prefix: width of the input");
    return (taut_plan){ .out = { in.n, in.t + 1, in.d }, .scratch = in.n * in.d };
}

/* The tokens of x behind the first of y. */
static void shift(const taut_kernels *k, taut_tensor y, taut_tensor x)
{
    const int64_t t = x.shape.t, d = x.shape.d;
    k->copy_rows(taut_at(k, y.data, d), (t + 1) * d, x.data, t * d, x.shape.n, t * d);
}

static void prefix_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const taut_shape in = at.x.shape;
    run->k->copy_rows(y.data, (in.t + 1) * in.d, ((const prefix *)m)->token.value, 0, in.n, in.d);
    shift(run->k, y, at.x);
}

static void prefix_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    (void)m;
    (void)at;
    run->k->axpby(ty.data, 0, ty.data, 0, taut_len(ty.shape));
    shift(run->k, ty, tx);
}

static void prefix_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const taut_kernels *k = run->k;
    const taut_shape in = at.x.shape;
    const int64_t wide = (in.t + 1) * in.d;
    k->copy_rows(gx.data, in.t * in.d, taut_at(k, gy.data, in.d), wide, in.n, in.t * in.d);
    if (!run->param_grads) return;
    const taut_span keep = run->scratch;
    taut_real *first = taut_take(&run->scratch, in.n * in.d);
    k->copy_rows(first, in.d, gy.data, wide, in.n, in.d);
    k->sum_rows(((const prefix *)m)->token.grad, first, in.n, in.d, 1);
    run->scratch = keep;
}

static taut_answer prefix_bound(const taut_module *m, taut_ask in)
{
    const taut_param *p = &((const prefix *)m)->token;
    const taut_up token = up_state(in.ledger, "longest", up_norm_frobenius(taut_ref_values(p), p->cols));
    in.tokens++;
    return answer_of(in, (taut_up){ 1 }, up_max(in.size, token), UP_ZERO);
}

static void prefix_params(taut_module *m, taut_visitor *v) { taut_visit_param(v, &((prefix *)m)->token); }

static taut_up prefix_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    (void)m, (void)in, (void)b;
    return UP_ZERO; /* copies */
}

static const taut_module_ops prefix_ops = {
    .kind = "prefix",
    .plan = prefix_plan,
    .forward = prefix_forward,
    .jvp = prefix_jvp,
    .vjp = prefix_vjp,
    .bound = prefix_bound,
    .strays = prefix_strays,
    .params = prefix_params,
    .free = leaf_free,
};

taut_module *taut_prefix(int64_t d, double gain)
{
    prefix *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->base.ops = &prefix_ops;
    s->token = (taut_param){
        .name = "weight", .rows = 1, .cols = d, .role = TAUT_TABLE, .init = TAUT_INIT_NORMAL, .gain = gain
    };
    return &s->base;
}
