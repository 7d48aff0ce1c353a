/* LayerNorm:  y = g * z + b,  z = (x - mean) / sqrt(var + eps), var with 1/d, for every token.
 * RMSNorm:    y = g * z,      z = x / sqrt(mean square + eps).
 *
 * jvp    ty = g * S tx,  S = (C - z z^T/d) / sqrt(var + eps), C = I - 11^T/d (RMSNorm: C = I); S is symmetric
 * vjp    gx = S (g * gy);  gg += sum gy * z;  gb += sum gy
 * Bound  Lip = ||diag(g) C|| / sqrt(eps), attained at constant tokens; +inf when eps = 0.
 *        |y| <= ||diag(g) C|| min(sqrt(d), X / sqrt(X^2/d + eps)) + |b| for |x| <= X.
 * Trace  z and the row's 1/sqrt(var + eps). */
#include "base/float32.h"
#include "bound/normlayer.h"
#include "bound/range.h"
#include "bound/rounding.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    taut_param gain, bias;
    bool centre; /* LayerNorm; RMSNorm neither centres nor shifts */
    double eps;
} layernorm;

typedef struct {
    taut_real *z, *rstd;
} kept;

static kept kept_at(taut_point at)
{
    kept t;
    t.z = taut_take(&at.trace, taut_len(at.x.shape));
    t.rstd = taut_take(&at.trace, taut_rows(at.x.shape));
    return t;
}

static taut_plan layernorm_plan(const taut_module *m, taut_shape in)
{
    TAUT_CHECK(in.d == ((const layernorm *)m)->gain.cols, "layernorm: width of the input");
    return (taut_plan){ .out = in, .trace = taut_len(in) + taut_rows(in) };
}

static void layernorm_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const layernorm *s = (const layernorm *)m;
    const taut_kernels *k = run->k;
    const int64_t rows = taut_rows(y.shape), d = y.shape.d;
    const kept t = kept_at(at);
    const taut_scaled out = { y.data, s->gain.value, s->centre ? s->bias.value : NULL };
    k->normalise(t.z, t.rstd, &out, at.x.data, rows, d, s->centre, s->eps);
}

static void layernorm_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const layernorm *s = (const layernorm *)m;
    const int64_t rows = taut_rows(ty.shape), d = ty.shape.d;
    const kept t = kept_at(at);
    run->k->normalise_slope(ty.data, tx.data, NULL, t.z, t.rstd, rows, d, s->centre);
    run->k->mul_rows(ty.data, ty.data, s->gain.value, rows, d);
}

static void layernorm_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const layernorm *s = (const layernorm *)m;
    const taut_kernels *k = run->k;
    const int64_t rows = taut_rows(gy.shape), d = gy.shape.d;
    const kept t = kept_at(at);
    k->normalise_slope(gx.data, gy.data, s->gain.value, t.z, t.rstd, rows, d, s->centre);
    if (!run->param_grads) return;
    k->dot_rows(s->gain.grad, s->centre ? s->bias.grad : NULL, gy.data, t.z, rows, d);
}

/* Around a centre: the steepest of its tokens, each in its ball; and, with one end at the centre, the furthest. */
static void near_centre(const layernorm *s, taut_up norm, taut_ask in, taut_answer *b)
{
    const taut_shape x = in.centre.x.shape;
    taut_up lip = UP_ZERO, pointed = UP_ZERO;
    for (int64_t t = 0; t < taut_rows(x); t++) {
        const taut_lo size = lo_centred_norm((const double *)in.centre.x.data + t * x.d, x.d, s->centre);
        lip = up_max(lip, up_normlayer_ball(norm, x.d, s->eps, size, in.radius));
        pointed = up_max(pointed, up_normlayer_pointed(norm, x.d, s->eps, size, in.radius));
    }
    b->lip = up_min(b->lip, lip);
    b->move = up_mul(pointed, in.radius);
}

static taut_answer layernorm_bound(const taut_module *m, taut_ask in)
{
    const layernorm *s = (const layernorm *)m;
    const int64_t d = s->gain.cols;
    const double *gain = taut_ref_values(&s->gain), *shift = s->centre ? taut_ref_values(&s->bias) : NULL;
    const taut_up norm = up_state(in.ledger, "norm", up_diag_centre_norm(gain, d, s->centre));
    const taut_up real = up_normlayer_radius(norm, shift, d, s->eps, in.size);
    const taut_up round = up_round_normlayer(gain, shift, d, s->eps, in.size);
    /* eps = 0: 0/0 at a constant token */
    taut_answer b = answer_of(in, s->eps > 0 ? up_normlayer_global(norm, s->eps) : UP_NONE, real, round);
    if (in.centre.x.data) near_centre(s, norm, in, &b);
    /* whatever the rounding, a computed z is no longer than sqrt(d) (1 + 2^-20), centred or not */
    b.size = up_max(real, up_min(b.size, up_round_size(gain, shift, d)));
    return b;
}

static void layernorm_params(taut_module *m, taut_visitor *v)
{
    layernorm *s = (layernorm *)m;
    taut_visit_param(v, &s->gain);
    if (s->centre) taut_visit_param(v, &s->bias);
}

static void layernorm_describe(const taut_module *m, taut_ledger *l)
{
    const layernorm *s = (const layernorm *)m;
    ledger_exact(l, "eps", s->eps);
    ledger_exact(l, "centred", s->centre);
}

/* z is off by promise_normalise of itself and by promise_normalise_sums of max |x| rstd (1 + |z|), entry by entry, where
 * rstd <= 1/sqrt(eps); gain and bias are one rounding each. */
static taut_up layernorm_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const layernorm *s = (const layernorm *)m;
    const int64_t d = s->gain.cols;
    const taut_up root = up_sqrt(up_int(d)), gain = { range_max(taut_ref_values(&s->gain), d) };
    const taut_up shift = s->centre ? up_norm_frobenius(taut_ref_values(&s->bias), d) : UP_ZERO;
    (void)b;
    if (!(s->eps > 0)) return UP_NONE;
    const taut_up steep = up_div(up_mul(root, taut_longest(in)), lo_sqrt(lo_exact(s->eps)));
    const taut_up z = up_mul(root, (taut_up){ 1 + 0x1p-20 });
    const taut_up wrong = up_add(up_mul((taut_up){ promise_normalise(in.table) + PROMISE_LEAST }, z),
                                 up_mul((taut_up){ promise_normalise_sums(d) }, up_mul((taut_up){ 2 }, steep)));
    const taut_up last = up_mul((taut_up){ 2.1 * promise_rows(in.table) },
                                up_add(up_mul(gain, up_add(z, wrong)), shift));
    const taut_up token = up_add(up_mul(gain, wrong), last);
    return strays_sum(in, up_mul(strays_root(in), token), up_add(steep, token), 8, (double)d);
}

static const taut_module_ops layernorm_ops = {
    .kind = "layernorm",
    .plan = layernorm_plan,
    .forward = layernorm_forward,
    .jvp = layernorm_jvp,
    .vjp = layernorm_vjp,
    .bound = layernorm_bound,
    .strays = layernorm_strays,
    .params = layernorm_params,
    .describe = layernorm_describe,
    .free = leaf_free,
};

static taut_module *create(int64_t d, double eps, bool centre)
{
    layernorm *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->base.ops = &layernorm_ops;
    s->gain = (taut_param){ .name = "weight", .rows = 1, .cols = d, .role = TAUT_VECTOR, .init = TAUT_INIT_ONE };
    s->bias = (taut_param){ .name = "bias", .rows = 1, .cols = d, .role = TAUT_VECTOR };
    s->centre = centre;
    s->eps = taut_float32(eps);
    return &s->base;
}

taut_module *taut_layernorm(int64_t d, double eps) { return create(d, eps, true); }

taut_module *taut_rmsnorm(int64_t d, double eps) { return create(d, eps, false); }
