/* CenterNorm (LipsFormer):  y = g * d/(d-1) (x - mean) + b for every token.  Affine: no division by a spread.
 *
 * jvp    ty = g * r C tx,  r = fl32(d/(d-1)), C = I - 11^T/d
 * vjp    gx = r C (g * gy);  gg += sum gy * (r C x);  gb += sum gy
 * Bound  Lip = r ||diag(g) C|| in both norms, finite whatever the input;  |y| <= Lip |x| + |b|.
 * Trace  r C x.   d = 1 has no CenterNorm. */
#include "base/float32.h"
#include "bound/norm.h"
#include "bound/normlayer.h"
#include "bound/range.h"
#include "bound/rounding.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    taut_param gain, bias;
    double ratio;
} centernorm;

static taut_plan centernorm_plan(const taut_module *m, taut_shape in)
{
    TAUT_CHECK(in.d == ((const centernorm *)m)->gain.cols, "centernorm: width of the input");
    return (taut_plan){ .out = in, .trace = taut_len(in) };
}

/* y = r C x */
static void centre(const centernorm *s, const taut_kernels *k, taut_real *y, const taut_real *x, taut_shape in)
{
    k->centre_rows(y, x, taut_rows(in), in.d);
    k->axpby(y, s->ratio, y, 0, taut_len(in));
}

static void centernorm_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const centernorm *s = (const centernorm *)m;
    const int64_t rows = taut_rows(y.shape), d = y.shape.d;
    taut_real *z = taut_take(&at.trace, taut_len(y.shape));
    centre(s, run->k, z, at.x.data, y.shape);
    run->k->mul_rows(y.data, z, s->gain.value, rows, d);
    run->k->add_rows(y.data, y.data, s->bias.value, rows, d, 1);
}

static void centernorm_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const centernorm *s = (const centernorm *)m;
    (void)at;
    centre(s, run->k, ty.data, tx.data, ty.shape);
    run->k->mul_rows(ty.data, ty.data, s->gain.value, taut_rows(ty.shape), ty.shape.d);
}

static void centernorm_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const centernorm *s = (const centernorm *)m;
    const int64_t rows = taut_rows(gy.shape), d = gy.shape.d;
    run->k->mul_rows(gx.data, gy.data, s->gain.value, rows, d);
    centre(s, run->k, gx.data, gx.data, gx.shape);
    if (!run->param_grads) return;
    run->k->dot_rows(s->gain.grad, s->bias.grad, gy.data, taut_take(&at.trace, taut_len(gy.shape)), rows, d);
}

static taut_answer centernorm_bound(const taut_module *m, taut_ask in)
{
    const centernorm *s = (const centernorm *)m;
    const int64_t d = s->gain.cols;
    const double *gain = taut_ref_values(&s->gain);
    const taut_up norm = up_state(in.ledger, "norm", up_diag_centre_norm(gain, d, true));
    const taut_up lip = up_mul(up_exact(s->ratio), norm), size = up_mul(lip, in.size);
    const taut_up shift = up_state(in.ledger, "bias", up_norm_frobenius(taut_ref_values(&s->bias), d));
    const taut_up round = up_add(up_round_centre(gain, d, in.size), up_round_sum(size, shift));
    return answer_of(in, lip, up_add(size, shift), round);
}

static void centernorm_params(taut_module *m, taut_visitor *v)
{
    taut_visit_param(v, &((centernorm *)m)->gain);
    taut_visit_param(v, &((centernorm *)m)->bias);
}

static void centernorm_describe(const taut_module *m, taut_ledger *l)
{
    ledger_exact(l, "factor", ((const centernorm *)m)->ratio);
}

static taut_up centernorm_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const centernorm *s = (const centernorm *)m;
    const int64_t d = s->gain.cols;
    const taut_up x = strays_in(in), gain = { range_max(taut_ref_values(&s->gain), d) };
    const taut_up shift = up_mul(strays_root(in), up_norm_frobenius(taut_ref_values(&s->bias), d));
    const taut_up factor = up_mul(up_exact(s->ratio), gain), sums = up_mul(up_sqrt(up_int(d)), x);
    const taut_up centred = up_add(up_mul((taut_up){ promise_normalise(in.table) }, x),
                                   up_add(up_mul((taut_up){ promise_normalise_sums(d) }, sums),
                                          (taut_up){ 64 * PROMISE_LEAST * (double)(d * in.tokens) }));
    const taut_up y = up_add(up_mul(factor, up_add(x, centred)),
                             shift); /* the factor, the gain and the shift: three slots */
    (void)b;
    const taut_up last = up_mul((taut_up){ 1.1 * promise_axpby(in.table) + 2.2 * promise_rows(in.table) }, y);
    return strays_sum(in, up_add(up_mul(factor, centred), last), y, 8, (double)d);
}

static const taut_module_ops centernorm_ops = {
    .kind = "centernorm",
    .plan = centernorm_plan,
    .forward = centernorm_forward,
    .jvp = centernorm_jvp,
    .vjp = centernorm_vjp,
    .bound = centernorm_bound,
    .strays = centernorm_strays,
    .params = centernorm_params,
    .describe = centernorm_describe,
    .free = leaf_free,
};

taut_module *taut_centernorm(int64_t d)
{
    TAUT_CHECK(d > 1, "centernorm: one feature has no spread");
    centernorm *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->base.ops = &centernorm_ops;
    s->gain = (taut_param){ .name = "weight", .rows = 1, .cols = d, .role = TAUT_VECTOR, .init = TAUT_INIT_ONE };
    s->bias = (taut_param){ .name = "bias", .rows = 1, .cols = d, .role = TAUT_VECTOR };
    s->ratio = taut_float32((double)d / (double)(d - 1));
    return &s->base;
}
