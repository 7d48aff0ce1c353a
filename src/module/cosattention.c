/* Scaled cosine attention (LipsFormer):
 *     q = W_Q x + b_Q, k = W_K x + b_K, v = W_V x + b_V         (q and k turned by their positions with RoPE)
 *     o = softmax(tau n(q).n(k) + mask + alibi) v   per head, or n(v),     y = out * W_O o + b_O
 *     n(z) = z / sqrt(|z|^2 + eps) for each head's vector, eps inside the root
 *
 * jvp    the same maps on tangents around the slope of n, (I - n n^T) / sqrt(|z|^2 + eps), and attention_jvp
 * vjp    the same maps backwards; the slope of n is symmetric
 * Bound  bound/cosine.c
 * Trace  sqrt(dh) n(q), sqrt(dh) n(k), v or sqrt(dh) n(v), o, each row's log-sum-exp, the slopes' factors.
 * The normalise kernel divides by the root mean square: it gives sqrt(dh) n(z), and the factors 1/dh of the
 * logits and 1/sqrt(dh) of the values go where tau and out are multiplied anyway. */
#include "base/float32.h"
#include "bound/cosine.h"
#include "module/kind.h"
#include "module/strays_attention.h"

typedef struct {
    taut_module base;
    taut_cosattention_spec spec;
    taut_qkv qkv; /* its out is less by the sqrt(dh) that normalised values have too much */
} cosattention;

typedef struct {
    taut_inside in;
    taut_real *lse, *sq, *sk, *sv; /* sq, sk, sv: 1 / sqrt(mean square + eps / dh) of every head's vector */
    taut_attn attn;
} kept;

static kept kept_at(const cosattention *s, taut_point at)
{
    const taut_cosattention_spec *a = &s->spec;
    const taut_shape x = at.x.shape;
    const int64_t vectors = taut_rows(x) * a->heads, dh = a->width / a->heads;
    kept t = { .in = qkv_take(&s->qkv, &at.trace, at.x) };
    t.lse = taut_take(&at.trace, vectors);
    t.sq = taut_take(&at.trace, vectors);
    t.sk = taut_take(&at.trace, vectors);
    t.sv = a->values ? taut_take(&at.trace, vectors) : NULL;
    t.attn = (taut_attn){ x.n, a->heads, x.t, x.t, dh, a->tau / (double)dh, a->causal, a->alibi, 0 };
    return t;
}

static taut_plan cosattention_plan(const taut_module *m, taut_shape in)
{
    const cosattention *s = (const cosattention *)m;
    TAUT_CHECK(in.d == s->spec.width, "cosattention: width of the input");
    const int64_t vectors = taut_rows(in) * s->spec.heads;
    return (taut_plan){ in, 4 * taut_len(in) + (s->spec.values ? 4 : 3) * vectors, 4 * taut_len(in), 0 };
}

static double base_of(const taut_cosattention_spec *a) { return a->rope ? a->rope_base : 0; }

/* sqrt(dh) n(z) in the place of z, which holds queries, keys or values; their factors; NULL: they stay as they are */
static void normalise(const cosattention *s, const taut_kernels *k, taut_tensor z, taut_real *factor)
{
    const int64_t heads = s->spec.heads, dh = s->spec.width / heads;
    if (factor)
        k->normalise(z.data, factor, NULL, z.data, taut_rows(z.shape) * heads, dh, false, s->spec.eps / (double)dh);
}

/* Tangents or cotangents through n; it is symmetric. */
static void slope(const cosattention *s, const taut_kernels *k, taut_tensor t, taut_tensor z, const taut_real *factor)
{
    const int64_t heads = s->spec.heads;
    if (factor)
        k->normalise_slope(t.data, t.data, NULL, z.data, factor, taut_rows(t.shape) * heads, s->spec.width / heads,
                           false);
}

static void cosattention_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const cosattention *s = (const cosattention *)m;
    const kept t = kept_at(s, at);
    qkv_enter(&s->qkv, run->k, &t.in, at.x, true);
    qkv_turn(run->k, &t.in, s->spec.heads, base_of(&s->spec), 1);
    normalise(s, run->k, t.in.q, t.sq);
    normalise(s, run->k, t.in.k, t.sk);
    normalise(s, run->k, t.in.v, t.sv);
    run->k->attention(t.in.o.data, t.lse, t.in.q.data, t.in.k.data, t.in.v.data, &t.attn);
    qkv_out(&s->qkv, run->k, y, t.in.o, true);
}

static void cosattention_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const cosattention *s = (const cosattention *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_inside d = qkv_take(&s->qkv, &run->scratch, tx);
    qkv_enter(&s->qkv, k, &d, tx, false);
    qkv_turn(k, &d, s->spec.heads, base_of(&s->spec), 1);
    slope(s, k, d.q, t.in.q, t.sq);
    slope(s, k, d.k, t.in.k, t.sk);
    slope(s, k, d.v, t.in.v, t.sv);
    k->attention_jvp(d.o.data, d.q.data, d.k.data, d.v.data, t.in.q.data, t.in.k.data, t.in.v.data, &t.attn);
    qkv_out(&s->qkv, k, ty, d.o, false);
    run->scratch = mark;
}

static void cosattention_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const cosattention *s = (const cosattention *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_inside d = qkv_take(&s->qkv, &run->scratch, gx);
    qkv_out_back(&s->qkv, run, d.o, gy, t.in.o);
    k->attention_vjp(d.q.data, d.k.data, d.v.data, d.o.data, t.in.o.data, t.lse, t.in.q.data, t.in.k.data, t.in.v.data,
                     &t.attn);
    slope(s, k, d.q, t.in.q, t.sq);
    slope(s, k, d.k, t.in.k, t.sk);
    slope(s, k, d.v, t.in.v, t.sv);
    qkv_turn(k, &d, s->spec.heads, base_of(&s->spec), -1);
    qkv_leave(&s->qkv, run, gx, &d, &t.in);
    run->scratch = mark;
}

static taut_answer cosattention_bound(const taut_module *m, taut_ask in)
{
    const cosattention *s = (const cosattention *)m;
    const taut_cosattention_spec *a = &s->spec;
    const taut_cosine_weights w = {
        .width = a->width,
        .heads = a->heads,
        .dh = a->width / a->heads,
        .wq = taut_ref_values(&s->qkv.q.weight),
        .wk = taut_ref_values(&s->qkv.k.weight),
        .wv = taut_ref_values(&s->qkv.v.weight),
        .wo = taut_ref_values(&s->qkv.o.weight),
        .bq = a->bias ? taut_ref_values(&s->qkv.q.bias) : NULL,
        .bk = a->bias ? taut_ref_values(&s->qkv.k.bias) : NULL,
        .bv = a->bias ? taut_ref_values(&s->qkv.v.bias) : NULL,
        .bo = a->bias ? taut_ref_values(&s->qkv.o.bias) : NULL,
        .tau = a->tau,
        .eps = a->eps,
        .out = a->out,
        .values = a->values,
        .causal = a->causal,
        .alibi = a->alibi,
        .rope = a->rope,
        .tokens = in.tokens,
        .keys_min = in.tokens,
    };
    const taut_attention_bound b = up_cosine(&w, in.size, in.ledger);
    return answer_of(in, in.norm == TAUT_NORM_FLAT ? b.flat : b.tokens, b.growth, up_cosine_round(&w, in.size));
}

/* sqrt(dh) n(z) of a head, z = W x + b, turned perhaps.  What is off relative to z, by delta of its length, moves n(z) by
 * delta / (1 - delta) at most, since n is 1/|z|-Lipschitz beyond z; all else by 1/sqrt(eps) of itself.  The slot is off by
 * promise_normalise of the result and promise_normalise_sums of max |z| rstd (1 + |n|), rstd <= sqrt(dh / eps). */
static taut_strayed strays_unit(const cosattention *s, const taut_affine *a, taut_ask one, bool turned)
{
    const int64_t d = s->spec.width, dh = d / s->spec.heads;
    const double *w = taut_ref_values(&a->weight), *b = s->spec.bias ? taut_ref_values(&a->bias) : NULL;
    const taut_up x = taut_longest(one), root = up_sqrt(up_int(dh));
    const taut_up steep = up_div(root, lo_sqrt(lo_exact(s->spec.eps)));
    const double turn = turned ? 2 * promise_rope(one.table, one.tokens) : 0;
    const taut_up delta = { (promise_product_result(one.table) * (1 + turn) + turn) * (1 + 0x1p-40) };
    if (!(delta.v < 0x1p-7)) return (taut_strayed){ UP_NONE, UP_NONE };
    const taut_up sums = up_mul((taut_up){ 1 + turn }, strays_affine(one, w, b, d, d, 1, x, UP_ZERO));
    const taut_up moved = up_add(up_mul((taut_up){ 1.01 * delta.v }, root), up_mul(steep, sums));
    const taut_up z = up_mul((taut_up){ 1.01 }, up_add(strays_reach(a, one, s->spec.bias, 1, x).size, sums));
    const taut_up own = up_add(up_mul((taut_up){ promise_normalise(one.table) + 0x1p-50 }, root),
                               up_mul((taut_up){ 2 * promise_normalise_sums(dh) }, up_mul(z, up_mul(steep, root))));
    return (taut_strayed){ root, strays_sum(one, up_mul((taut_up){ 1.01 }, up_add(moved, own)), z, 8, (double)dh) };
}

static taut_up cosattention_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const cosattention *s = (const cosattention *)m;
    const taut_cosattention_spec *a = &s->spec;
    const taut_ask one = strays_token(in);
    const int64_t dh = a->width / a->heads;
    const taut_up scale = up_div(up_exact(a->tau), lo_exact((double)dh)), heads = up_sqrt(up_int(a->heads));
    const taut_strayed q = strays_unit(s, &s->qkv.q, one, a->rope), k = strays_unit(s, &s->qkv.k, one, a->rope);
    const taut_strayed v = a->values ? strays_unit(s, &s->qkv.v, one, false)
                                     : strays_reach(&s->qkv.v, one, a->bias, 1, taut_longest(in));
    const taut_up product = up_mul(scale, up_mul(strayed_size(q), strayed_size(k))), rounded = { 0x1p-50 };
    const taut_up alibi = { a->alibi ? promise_alibi(in.table) * (double)in.tokens : 0 };
    const taut_up slot = up_add(up_mul((taut_up){ promise_logit(in.table, dh) }, product), alibi);
    const taut_up ds = up_add(strays_logit(scale, q, k), up_mul(rounded, product)); /* tau/dh is rounded to double */
    const taut_up vs = strayed_size(v), o = up_mul(heads, vs);
    const taut_up each = up_add(strays_mean(one, ds, slot, vs, vs, in.tokens, dh), up_mul(rounded, vs)); /* so is out */
    const taut_up wrong = strays_sum(one, up_mul(heads, up_add(v.wrong, each)), vs, in.tokens, (double)a->width);
    return strays_out_of(&s->qkv, in, b->tokens, (taut_strayed){ o, wrong });
}

static void cosattention_params(taut_module *m, taut_visitor *v) { qkv_params(&((cosattention *)m)->qkv, v); }

static void cosattention_describe(const taut_module *m, taut_ledger *l)
{
    const taut_cosattention_spec *a = &((const cosattention *)m)->spec;
    ledger_exact(l, "heads", (double)a->heads);
    ledger_exact(l, "scale", a->tau);
    ledger_exact(l, "out", a->out);
    ledger_exact(l, "causal", a->causal);
    ledger_exact(l, "alibi", a->alibi);
    ledger_exact(l, "rope", a->rope ? a->rope_base : 0);
    ledger_exact(l, "eps", a->eps);
    ledger_exact(l, "values", a->values);
}

static const taut_module_ops cosattention_ops = {
    .kind = "cosattention",
    .plan = cosattention_plan,
    .forward = cosattention_forward,
    .jvp = cosattention_jvp,
    .vjp = cosattention_vjp,
    .bound = cosattention_bound,
    .strays = cosattention_strays,
    .params = cosattention_params,
    .describe = cosattention_describe,
    .free = leaf_free,
};

taut_module *taut_cosattention(const taut_cosattention_spec *spec)
{
    const int64_t d = spec->width;
    TAUT_CHECK(spec->heads > 0 && d % spec->heads == 0, "cosattention: width must be a multiple of heads");
    TAUT_CHECK(!spec->rope || d / spec->heads % 2 == 0,
               "cosattention: RoPE turns pairs, heads must have an even width");
    cosattention *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (cosattention){ { &cosattention_ops },
                         *spec,
                         qkv_of(d, 0, spec->bias, spec->out, spec->init, spec->gain, spec->out_gain) };
    s->spec.tau = taut_float32(spec->tau);
    s->spec.eps = taut_float32(spec->eps);
    s->spec.out = s->qkv.out;
    if (spec->values) s->qkv.out /= sqrt((double)(d / spec->heads));
    return &s->base;
}

typedef struct {
    double tau, eps, nu;
    bool values;
} cosine_own;

static const taut_key cosine_keys[] = {
    { "cosine_tau", TAUT_KEY_REAL, offsetof(cosine_own, tau), 12, 0, 1e6, .help = "tau, the factor of the cosines" },
    { "cosine_eps", TAUT_KEY_REAL, offsetof(cosine_own, eps), 1e-6, 0, 1e6, .help = "eps inside the root of n" },
    { "cosine_nu", TAUT_KEY_REAL, offsetof(cosine_own, nu), 1, 0, 1e6, .help = "c, the factor of the output" },
    { "cosine_values", TAUT_KEY_BOOL, offsetof(cosine_own, values), .help = "values are normalised too" },
};

static taut_module *cosine_build(const taut_attention_choice *c, const taut_site *s)
{
    const cosine_own *own = (const void *)c->own.bytes;
    return taut_cosattention(&(taut_cosattention_spec){ .width = s->width,
                                                        .heads = s->heads,
                                                        .tau = own->tau,
                                                        .eps = own->eps,
                                                        .out = own->nu,
                                                        .values = own->values,
                                                        .causal = s->causal,
                                                        .alibi = s->alibi,
                                                        .rope = s->rope,
                                                        .bias = s->bias,
                                                        .rope_base = s->rope_base,
                                                        .gain = s->gain,
                                                        .out_gain = s->out_gain,
                                                        .init = s->init });
}

const taut_attention_kind taut_kind_cosine = {
    .name = "cosine",
    .page = "cosattention",
    .can = TAUT_CAN_CAUSAL | TAUT_CAN_ROPE | TAUT_CAN_ALIBI,
    .keys = cosine_keys,
    .count = sizeof cosine_keys / sizeof *cosine_keys,
    .build = cosine_build,
};
