/* Attention over distances:  P^h = row softmax of -|q_i - q_j|^2/sqrt(dh), q = W_Q x, keys are the queries;
 *     tied (Kim et al.)  y = W_O concat_h( U_h sum_j P_ij q_j ),   U_h = W_V^h W_Q^hT / sqrt(dh)
 *     else               y = W_O concat_h( sum_j P_ij W_V^h x_j )
 *
 * jvp    the same maps on tangents around lift_jvp and attention_jvp; vjp them backwards
 * Bound  tied: bound/l2attention.c, for every input.  Not tied: +inf, for it is not Lipschitz: W_Q = e_1, W_V = e_2,
 *        x = ((0.4, 0), (-0.4, t)) has a slope that grows with t (docs/modules/l2attention.md)
 * Trace  q, [q, 1], [q, -|q|^2/2], values one longer than dh, o, the rows' log-sum-exp, what W_O is applied to.
 * The kernel's heads are dh + 1 wide: a last entry makes distances of products (kernels/ref/lift.c). */
#include <math.h>

#include "base/float32.h"
#include "bound/l2attention.h"
#include "module/kind.h"
#include "module/leaf.h"
#include "module/strays_attention.h"

typedef struct {
    taut_module base;
    taut_l2attention_spec spec;
    taut_param q, v, o;
} l2attention;

typedef struct {
    int64_t rows, width, heads, dh; /* tokens of the batch */
    taut_real *q, *left, *right, *value, *out, *lse, *mixed;
    taut_attn attn;
} kept;

static double root_of(const l2attention *s) { return sqrt((double)(s->spec.width / s->spec.heads)); }

static kept kept_at(const l2attention *s, taut_point at)
{
    const taut_shape x = at.x.shape;
    kept t = { taut_rows(x), x.d, s->spec.heads, x.d / s->spec.heads, NULL, NULL, NULL, NULL, NULL, NULL, NULL, { 0 } };
    const int64_t longer = t.rows * (t.width + t.heads);
    t.q = taut_take(&at.trace, t.rows * t.width);
    t.left = taut_take(&at.trace, longer);
    t.right = taut_take(&at.trace, longer);
    t.value = s->spec.tied ? t.right : taut_take(&at.trace, longer);
    t.out = taut_take(&at.trace, longer);
    t.lse = taut_take(&at.trace, t.rows * t.heads);
    t.mixed = taut_take(&at.trace, t.rows * t.width);
    t.attn = (taut_attn){ .n = x.n, .heads = t.heads, .tq = x.t, .tk = x.t, .dh = t.dh + 1 };
    t.attn.scale = taut_float32(2 / root_of(s));
    return t;
}

static taut_plan l2attention_plan(const taut_module *m, taut_shape in)
{
    const l2attention *s = (const l2attention *)m;
    TAUT_CHECK(in.d == s->spec.width, "l2attention: width of the input");
    const int64_t len = taut_len(in), rows = taut_rows(in), longer = len + rows * s->spec.heads;
    const int64_t dh = in.d / s->spec.heads;
    return (taut_plan){ in, 2 * len + (s->spec.tied ? 3 : 4) * longer + rows * s->spec.heads,
                        2 * len + 5 * longer + 2 * rows * dh + 2 * dh * dh, 0 };
}

/* y = x W^T for a square weight */
static void project(const taut_kernels *k, taut_real *y, const taut_param *w, const taut_real *x, int64_t rows)
{
    k->gemm(y, x, w->value, rows, w->rows, w->cols, false, true, 1, 0);
}

/* Heads of dh, side by side, into heads of dh + 1 with a 0 behind; and back. */
static void widen(const taut_kernels *k, taut_real *y, const taut_real *x, const kept *t)
{
    k->axpby(y, 0, NULL, 0, t->rows * (t->width + t->heads));
    k->copy_rows(y, t->dh + 1, x, t->dh, t->rows * t->heads, t->dh);
}

static void narrow(const taut_kernels *k, taut_real *y, const taut_real *x, const kept *t)
{
    k->copy_rows(y, t->dh, x, t->dh + 1, t->rows * t->heads, t->dh);
}

/* U_h */
static void inner_map(const l2attention *s, const taut_kernels *k, taut_real *u, int64_t h, const kept *t)
{
    const int64_t at = h * t->dh * t->width;
    k->gemm(u, taut_at(k, s->v.value, at), taut_at(k, s->q.value, at), t->dh, t->dh, t->width, false, true,
            1 / root_of(s), 0);
}

/* mixed_h = U_h o_h, o is (rows, heads, dh + 1), mixed (rows, heads, dh); tied only */
static void apply_inner(const l2attention *s, taut_run *run, taut_real *mixed, const taut_real *o, const kept *t)
{
    const taut_kernels *k = run->k;
    taut_span rest = run->scratch;
    taut_real *u = taut_take(&rest, t->dh * t->dh), *in = taut_take(&rest, t->rows * t->dh);
    taut_real *out = taut_take(&rest, t->rows * t->dh);
    for (int64_t h = 0; h < t->heads; h++) {
        inner_map(s, k, u, h, t);
        k->copy_rows(in, t->dh, taut_at(k, o, h * (t->dh + 1)), t->width + t->heads, t->rows, t->dh);
        k->gemm(out, in, u, t->rows, t->dh, t->dh, false, true, 1, 0);
        k->copy_rows(taut_at(k, mixed, h * t->dh), t->width, out, t->dh, t->rows, t->dh);
    }
}

static void mix_heads(const l2attention *s, taut_run *run, taut_real *mixed, const taut_real *o, const kept *t)
{
    if (s->spec.tied)
        apply_inner(s, run, mixed, o, t);
    else
        narrow(run->k, mixed, o, t);
}

static void l2attention_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const l2attention *s = (const l2attention *)m;
    const taut_kernels *k = run->k;
    const kept t = kept_at(s, at);
    project(k, t.q, &s->q, at.x.data, t.rows);
    k->lift(t.left, t.right, t.q, t.rows * t.heads, t.dh);
    if (!s->spec.tied) {
        project(k, t.mixed, &s->v, at.x.data, t.rows);
        widen(k, t.value, t.mixed, &t);
    }
    k->attention(t.out, t.lse, t.left, t.right, t.value, &t.attn);
    mix_heads(s, run, t.mixed, t.out, &t);
    project(k, y.data, &s->o, t.mixed, t.rows);
}

static void l2attention_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const l2attention *s = (const l2attention *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const int64_t len = t.rows * t.width, longer = len + t.rows * t.heads;
    taut_real *tq = taut_take(&run->scratch, len), *left = taut_take(&run->scratch, longer);
    taut_real *right = taut_take(&run->scratch, longer), *out = taut_take(&run->scratch, longer);
    taut_real *value = s->spec.tied ? right : taut_take(&run->scratch, longer);
    project(k, tq, &s->q, tx.data, t.rows);
    k->lift_jvp(left, right, tq, t.q, t.rows * t.heads, t.dh);
    if (!s->spec.tied) {
        project(k, tq, &s->v, tx.data, t.rows);
        widen(k, value, tq, &t);
    }
    k->attention_jvp(out, left, right, value, t.left, t.right, t.value, &t.attn);
    mix_heads(s, run, tq, out, &t);
    project(k, ty.data, &s->o, tq, t.rows);
    run->scratch = mark;
}

/* go_h = U_h^T g_h into heads of dh + 1, and the gradients of the weights in U_h */
static void inner_back(const l2attention *s, taut_run *run, taut_real *go, const taut_real *g, const kept *t)
{
    const taut_kernels *k = run->k;
    taut_span rest = run->scratch;
    taut_real *u = taut_take(&rest, t->dh * t->dh), *gu = taut_take(&rest, t->dh * t->dh);
    taut_real *in = taut_take(&rest, t->rows * t->dh), *out = taut_take(&rest, t->rows * t->dh);
    const double by = 1 / root_of(s);
    k->axpby(go, 0, NULL, 0, t->rows * (t->width + t->heads));
    for (int64_t h = 0; h < t->heads; h++) {
        const int64_t at = h * t->dh * t->width;
        taut_real *gq = taut_at(k, s->q.grad, at), *gv = taut_at(k, s->v.grad, at);
        inner_map(s, k, u, h, t);
        k->copy_rows(in, t->dh, taut_at(k, g, h * t->dh), t->width, t->rows, t->dh);
        k->gemm(out, in, u, t->rows, t->dh, t->dh, false, false, 1, 0);
        k->copy_rows(taut_at(k, go, h * (t->dh + 1)), t->width + t->heads, out, t->dh, t->rows, t->dh);
        if (!run->param_grads) continue;
        k->copy_rows(out, t->dh, taut_at(k, t->out, h * (t->dh + 1)), t->width + t->heads, t->rows, t->dh);
        k->gemm(gu, in, out, t->dh, t->dh, t->rows, true, false, by, 0);
        k->gemm(gv, gu, taut_at(k, s->q.value, at), t->dh, t->width, t->dh, false, false, 1, 1);
        k->gemm(gq, gu, taut_at(k, s->v.value, at), t->dh, t->width, t->dh, true, false, 1, 1);
    }
}

/* gx (+)= g W, gW += g^T x */
static void project_back(const taut_run *run, taut_real *gx, bool more, const taut_real *g, const taut_param *w,
                         const taut_real *x, int64_t rows)
{
    run->k->gemm(gx, g, w->value, rows, w->cols, w->rows, false, false, 1, more ? 1 : 0);
    if (run->param_grads) run->k->gemm(w->grad, g, x, w->rows, w->cols, rows, true, false, 1, 1);
}

static void l2attention_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const l2attention *s = (const l2attention *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const int64_t len = t.rows * t.width, longer = len + t.rows * t.heads;
    taut_real *g = taut_take(&run->scratch, len), *gq = taut_take(&run->scratch, len);
    taut_real *go = taut_take(&run->scratch, longer), *left = taut_take(&run->scratch, longer);
    taut_real *right = taut_take(&run->scratch, longer), *value = taut_take(&run->scratch, longer);
    project_back(run, g, false, gy.data, &s->o, t.mixed, t.rows);
    if (s->spec.tied)
        inner_back(s, run, go, g, &t);
    else
        widen(k, go, g, &t);
    k->attention_vjp(left, right, value, go, t.out, t.lse, t.left, t.right, t.value, &t.attn);
    if (s->spec.tied) k->axpby(right, 1, value, 1, longer);
    k->lift_vjp(gq, left, right, t.q, t.rows * t.heads, t.dh);
    project_back(run, gx.data, false, gq, &s->q, at.x.data, t.rows);
    if (!s->spec.tied) {
        narrow(k, g, value, &t);
        project_back(run, gx.data, true, g, &s->v, at.x.data, t.rows);
    }
    run->scratch = mark;
}

static taut_answer l2attention_bound(const taut_module *m, taut_ask in)
{
    const l2attention *s = (const l2attention *)m;
    const taut_l2attention_weights w = {
        .width = s->spec.width,
        .heads = s->spec.heads,
        .dh = s->spec.width / s->spec.heads,
        .tokens = in.tokens,
        .wq = taut_ref_values(&s->q),
        .wv = taut_ref_values(&s->v),
        .wo = taut_ref_values(&s->o),
    };
    if (!s->spec.tied) return answer_of(in, UP_NONE, UP_NONE, UP_NONE);
    const taut_l2attention_bound b = up_l2attention(&w, in.size, in.ledger);
    return answer_of(in, in.norm == TAUT_NORM_FLAT ? b.flat : b.tokens, up_mul(b.growth, in.size), b.round);
}

/* U_h o_h of a head, o_h a mean of q = W x.  Logits are scale (q_i.q_j - |q_j|^2/2): with q off by e, the first term is off by
 * e (|q~| + |q|) and the second by e |q~| and what lift promises.  Values are [q, -|q|^2/2], whose last entry is for the
 * slot only.  U_h is a product of two matrices, alpha = 1/sqrt(dh) is rounded to double. */
static taut_strayed strays_head(const l2attention *s, taut_ask one, int64_t h)
{
    const int64_t d = s->spec.width, dh = d / s->spec.heads;
    const double *wq = taut_ref_values(&s->q) + h * dh * d, *wv = taut_ref_values(&s->v) + h * dh * d;
    const taut_up x = taut_longest(one), two = { 2 }, half = { 0.5 };
    const taut_up norm = up_norm(wq, dh, d), scale = up_exact(taut_float32(2 / root_of(s)));
    taut_strayed q = { up_mul(norm, x), UP_ZERO };
    q.wrong = strays_affine(one, wq, NULL, dh, d, 1, x, q.size);
    const taut_up qs = strayed_size(q), square = up_mul(qs, qs), lift = { promise_lift(one.table, dh) };
    const taut_up last = up_mul(up_mul(half, square), up_add((taut_up){ 1 }, lift)); /* |q|^2/2 */
    const taut_up apart = up_add(up_mul(up_mul(two, qs), q.wrong), up_mul(q.size, q.wrong));
    const taut_up ds = up_mul(scale, up_add(apart, up_mul(lift, square)));
    const taut_up slot = up_mul(up_mul((taut_up){ promise_logit(one.table, dh + 1) }, scale), up_add(square, last));
    const taut_up mean = strays_mean(one, ds, slot, qs, up_max(qs, last), one.tokens, dh + 1);
    const taut_up eo = strays_sum(one, up_add(q.wrong, mean), up_max(qs, last), one.tokens, (double)(dh + 1));
    const taut_up o = up_add(qs, eo);
    const taut_lo root = lo_sqrt(lo_exact((double)dh));
    const taut_up both = up_mul(up_norm_frobenius(wv, dh * d),
                                up_norm_frobenius(wq, dh * d)); /* |W_V| |W_Q|^T, or more */
    const taut_up inner = up_div(both, root), u = up_div(up_mul(up_norm(wv, dh, d), norm), root);
    const double made = promise_product(one.table, d) + promise_product_result(one.table) + 0x1p-50;
    const taut_up eu = strays_sum(one, up_mul((taut_up){ made }, inner), inner, d, (double)(dh * dh));
    const taut_up mass = up_mul(up_add(inner, eu), o);
    const taut_up use = up_mul((taut_up){ promise_product(one.table, dh) + promise_product_result(one.table) }, mass);
    const taut_up wrong = up_add(up_add(up_mul(u, eo), up_mul(eu, o)), strays_sum(one, use, mass, dh, (double)dh));
    return (taut_strayed){ up_mul(u, q.size), wrong };
}

static taut_up l2attention_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const l2attention *s = (const l2attention *)m;
    const int64_t d = s->spec.width;
    const double *wo = taut_ref_values(&s->o);
    const taut_ask one = strays_token(in);
    taut_strayed mixed = { UP_ZERO, UP_ZERO };
    (void)b;
    if (!s->spec.tied) return UP_NONE; /* it has no constant */
    for (int64_t h = 0; h < s->spec.heads; h++) {
        const taut_strayed head = strays_head(s, one, h);
        mixed = (taut_strayed){ up_hypot(mixed.size, head.size), up_hypot(mixed.wrong, head.wrong) };
    }
    const taut_up norm = up_norm(wo, d, d), all = strayed_size(mixed);
    const taut_up last = strays_affine(one, wo, NULL, d, d, 1, all, up_mul(norm, all));
    return up_mul(strays_root(in), up_add(up_mul(norm, mixed.wrong), last));
}

static void l2attention_params(taut_module *m, taut_visitor *v)
{
    l2attention *s = (l2attention *)m;
    taut_visit_param(v, &s->q);
    taut_visit_param(v, &s->v);
    taut_visit_param(v, &s->o);
}

static void l2attention_describe(const taut_module *m, taut_ledger *l)
{
    const taut_l2attention_spec *a = &((const l2attention *)m)->spec;
    ledger_exact(l, "heads", (double)a->heads);
    ledger_exact(l, "tied", a->tied);
}

static const taut_module_ops l2attention_ops = {
    .kind = "l2attention",
    .plan = l2attention_plan,
    .forward = l2attention_forward,
    .jvp = l2attention_jvp,
    .vjp = l2attention_vjp,
    .bound = l2attention_bound,
    .strays = l2attention_strays,
    .params = l2attention_params,
    .describe = l2attention_describe,
    .free = leaf_free,
};

taut_module *taut_l2attention(const taut_l2attention_spec *spec)
{
    const int64_t d = spec->width;
    TAUT_CHECK(spec->heads > 0 && d % spec->heads == 0, "l2attention: width must be a multiple of heads");
    l2attention *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (l2attention){ .base = { &l2attention_ops }, .spec = *spec };
    const taut_param square = { .rows = d, .cols = d, .init = spec->init, .gain = spec->gain };
    s->q = s->v = s->o = square;
    s->q.name = "q.weight", s->v.name = "v.weight", s->o.name = "o.weight";
    s->o.gain = spec->out_gain;
    if (spec->out_gain == 0) s->o.init = TAUT_INIT_ZERO;
    return &s->base;
}

static taut_module *layer(const taut_site *s, bool tied)
{
    return taut_l2attention(&(taut_l2attention_spec){ .width = s->width,
                                                      .heads = s->heads,
                                                      .tied = tied,
                                                      .init = s->init,
                                                      .gain = s->gain,
                                                      .out_gain = s->out_gain });
}

static taut_module *l2_build(const taut_attention_choice *c, const taut_site *s) { return (void)c, layer(s, true); }
static taut_module *l2_free_build(const taut_attention_choice *c, const taut_site *s)
{
    return (void)c, layer(s, false);
}

const taut_attention_kind taut_kind_l2 = {
    .name = "l2", .page = "l2attention", .can = TAUT_CAN_PENALTY, .build = l2_build
};
const taut_attention_kind taut_kind_l2_free = {
    .name = "l2_free", .page = "l2attention", .can = TAUT_CAN_PENALTY, .build = l2_free_build
};
