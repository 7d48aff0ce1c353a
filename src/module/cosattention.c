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
#include "bound/cosine.h"
#include "module/leaf.h"

typedef struct {
    taut_param weight, bias;
} affine;

typedef struct {
    taut_module base;
    taut_cosattention_spec spec;
    affine q, k, v, o;
} cosattention;

typedef struct {
    taut_tensor q, k, v, o;
    taut_real *lse, *sq, *sk, *sv; /* sq, sk, sv: 1 / sqrt(mean square + eps / dh) of every head's vector */
    taut_attn attn;
} kept;

static kept kept_at(const cosattention *s, const taut_run *run, taut_point at)
{
    const taut_cosattention_spec *a = &s->spec;
    const taut_shape x = at.x.shape;
    const int64_t vectors = taut_rows(x) * a->heads, dh = a->width / a->heads;
    kept t = { .q = taut_take_tensor(&at.trace, x) };
    t.k = taut_take_tensor(&at.trace, x);
    t.v = taut_take_tensor(&at.trace, x);
    t.o = taut_take_tensor(&at.trace, x);
    t.lse = taut_take(&at.trace, vectors);
    t.sq = taut_take(&at.trace, vectors);
    t.sk = taut_take(&at.trace, vectors);
    t.sv = a->values ? taut_take(&at.trace, vectors) : NULL;
    t.attn = (taut_attn){ x.n, a->heads, x.t, x.t, dh, a->tau / (double)dh, a->causal, a->alibi, 0, run->lengths };
    return t;
}

static taut_plan cosattention_plan(const taut_module *m, taut_shape in)
{
    const cosattention *s = (const cosattention *)m;
    TAUT_CHECK(in.d == s->spec.width, "cosattention: width of the input");
    const int64_t vectors = taut_rows(in) * s->spec.heads;
    return (taut_plan){ in, 4 * taut_len(in) + (s->spec.values ? 4 : 3) * vectors, 4 * taut_len(in) };
}

/* y = W x */
static void project(const cosattention *s, const taut_kernels *k, taut_tensor y, const affine *a, taut_tensor x)
{
    const int64_t d = s->spec.width;
    k->gemm(y.data, x.data, a->weight.value, taut_rows(x.shape), d, d, false, true, 1, 0);
}

static void turn(const cosattention *s, const taut_kernels *k, taut_tensor x, double sign)
{
    const taut_cosattention_spec *a = &s->spec;
    if (a->rope)
        k->rope(x.data, x.data, taut_rows(x.shape), x.shape.t, a->heads, a->width / a->heads, a->rope_base, sign);
}

/* z = sqrt(dh) n(W x + b), or without `factor` W x + b itself; turned by its position when asked */
static void vectors(const cosattention *s, taut_run *run, taut_tensor z, taut_real *factor, const affine *a,
                    taut_tensor x, bool turned)
{
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const int64_t heads = s->spec.heads, dh = s->spec.width / heads;
    const taut_tensor raw = factor ? taut_take_tensor(&run->scratch, z.shape) : z;
    project(s, k, raw, a, x);
    if (s->spec.bias) k->add_rows(raw.data, raw.data, a->bias.value, taut_rows(raw.shape), s->spec.width, 1);
    if (turned) turn(s, k, raw, 1);
    if (factor) k->normalise(z.data, factor, raw.data, taut_rows(z.shape) * heads, dh, false, s->spec.eps / (double)dh);
    run->scratch = mark;
}

/* Tangents or cotangents through n; it is symmetric. */
static void slope(const cosattention *s, const taut_kernels *k, taut_tensor t, taut_tensor z, const taut_real *factor)
{
    const int64_t heads = s->spec.heads;
    if (factor)
        k->normalise_slope(t.data, t.data, z.data, factor, taut_rows(t.shape) * heads, s->spec.width / heads, false);
}

/* out, less the sqrt(dh) that normalised values have too much */
static double out_factor(const cosattention *s)
{
    return s->spec.values ? s->spec.out / sqrt((double)(s->spec.width / s->spec.heads)) : s->spec.out;
}

static void output(const cosattention *s, const taut_kernels *k, taut_tensor y, taut_tensor o)
{
    const int64_t d = s->spec.width;
    k->gemm(y.data, o.data, s->o.weight.value, taut_rows(o.shape), d, d, false, true, out_factor(s), 0);
}

static void cosattention_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const cosattention *s = (const cosattention *)m;
    const kept t = kept_at(s, run, at);
    vectors(s, run, t.q, t.sq, &s->q, at.x, true);
    vectors(s, run, t.k, t.sk, &s->k, at.x, true);
    vectors(s, run, t.v, t.sv, &s->v, at.x, false);
    run->k->attention(t.o.data, t.lse, t.q.data, t.k.data, t.v.data, &t.attn);
    output(s, run->k, y, t.o);
    if (s->spec.bias) run->k->add_rows(y.data, y.data, s->o.bias.value, taut_rows(y.shape), y.shape.d, 1);
}

typedef struct {
    taut_tensor q, k, v, o;
} slopes; /* tangents or cotangents of what is kept */

static slopes take_slopes(taut_run *run, taut_shape x)
{
    slopes d = { .q = taut_take_tensor(&run->scratch, x) };
    d.k = taut_take_tensor(&run->scratch, x);
    d.v = taut_take_tensor(&run->scratch, x);
    d.o = taut_take_tensor(&run->scratch, x);
    return d;
}

static void cosattention_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const cosattention *s = (const cosattention *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, run, at);
    const slopes d = take_slopes(run, at.x.shape);
    project(s, k, d.q, &s->q, tx);
    project(s, k, d.k, &s->k, tx);
    project(s, k, d.v, &s->v, tx);
    turn(s, k, d.q, 1);
    turn(s, k, d.k, 1);
    slope(s, k, d.q, t.q, t.sq);
    slope(s, k, d.k, t.k, t.sk);
    slope(s, k, d.v, t.v, t.sv);
    k->attention_jvp(d.o.data, d.q.data, d.k.data, d.v.data, t.q.data, t.k.data, t.v.data, &t.attn);
    output(s, k, ty, d.o);
    run->scratch = mark;
}

/* gx = W^T gy (added to gx when `more`), and the gradients of W and b */
static void project_back(const cosattention *s, const taut_run *run, taut_tensor gx, bool more, taut_tensor gy,
                         const affine *a, taut_tensor x)
{
    const int64_t d = s->spec.width, rows = taut_rows(gy.shape);
    run->k->gemm(gx.data, gy.data, a->weight.value, rows, d, d, false, false, 1, more ? 1 : 0);
    if (!run->param_grads) return;
    run->k->gemm(a->weight.grad, gy.data, x.data, d, d, rows, true, false, 1, 1);
    if (s->spec.bias) run->k->sum_rows(a->bias.grad, gy.data, rows, d, 1);
}

static void cosattention_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const cosattention *s = (const cosattention *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, run, at);
    const slopes d = take_slopes(run, at.x.shape);
    const int64_t rows = taut_rows(gy.shape), w = s->spec.width;
    k->gemm(d.o.data, gy.data, s->o.weight.value, rows, w, w, false, false, out_factor(s), 0);
    if (run->param_grads) {
        k->gemm(s->o.weight.grad, gy.data, t.o.data, w, w, rows, true, false, out_factor(s), 1);
        if (s->spec.bias) k->sum_rows(s->o.bias.grad, gy.data, rows, w, 1);
    }
    k->attention_vjp(d.q.data, d.k.data, d.v.data, d.o.data, t.o.data, t.lse, t.q.data, t.k.data, t.v.data, &t.attn);
    slope(s, k, d.q, t.q, t.sq);
    slope(s, k, d.k, t.k, t.sk);
    slope(s, k, d.v, t.v, t.sv);
    turn(s, k, d.q, -1);
    turn(s, k, d.k, -1);
    project_back(s, run, gx, false, d.q, &s->q, at.x);
    project_back(s, run, gx, true, d.k, &s->k, at.x);
    project_back(s, run, gx, true, d.v, &s->v, at.x);
    run->scratch = mark;
}

static taut_bound cosattention_bound(const taut_module *m, taut_region in)
{
    const cosattention *s = (const cosattention *)m;
    const taut_cosattention_spec *a = &s->spec;
    const taut_cosine_weights w = {
        .width = a->width,
        .heads = a->heads,
        .dh = a->width / a->heads,
        .wq = taut_ref_values(&s->q.weight),
        .wk = taut_ref_values(&s->k.weight),
        .wv = taut_ref_values(&s->v.weight),
        .wo = taut_ref_values(&s->o.weight),
        .bq = a->bias ? taut_ref_values(&s->q.bias) : NULL,
        .bk = a->bias ? taut_ref_values(&s->k.bias) : NULL,
        .bv = a->bias ? taut_ref_values(&s->v.bias) : NULL,
        .bo = a->bias ? taut_ref_values(&s->o.bias) : NULL,
        .tau = a->tau,
        .eps = a->eps,
        .out = a->out,
        .values = a->values,
        .causal = a->causal,
        .alibi = a->alibi,
        .rope = a->rope,
        .tokens = in.tokens,
        .keys_min = in.padded ? 0 : in.tokens,
    };
    const taut_attention_bound b = up_cosine(&w, in.size, in.ledger);
    return (taut_bound){ in.norm == TAUT_NORM_FLAT ? b.flat : b.tokens,
                         region_after(in, b.growth, up_cosine_round(&w, in.size)) };
}

static void cosattention_params(taut_module *m, taut_visitor *v)
{
    cosattention *s = (cosattention *)m;
    affine *all[] = { &s->q, &s->k, &s->v, &s->o };
    for (int i = 0; i < 4; i++) {
        taut_visit_param(v, &all[i]->weight);
        if (s->spec.bias) taut_visit_param(v, &all[i]->bias);
    }
}

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
    .params = cosattention_params,
    .describe = cosattention_describe,
    .free = leaf_free,
};

static affine affine_of(const char *weight, const char *bias, int64_t d, taut_init init, double gain)
{
    return (affine){ { .name = weight, .rows = d, .cols = d, .init = init, .gain = gain },
                     { .name = bias, .rows = 1, .cols = d, .role = TAUT_VECTOR } };
}

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
                         affine_of("q.weight", "q.bias", d, spec->init, spec->gain),
                         affine_of("k.weight", "k.bias", d, spec->init, spec->gain),
                         affine_of("v.weight", "v.bias", d, spec->init, spec->gain),
                         affine_of("o.weight", "o.bias", d, spec->out_gain == 0 ? TAUT_INIT_ZERO : spec->init,
                                   spec->out_gain) };
    s->spec.tau = as_float(spec->tau);
    s->spec.eps = as_float(spec->eps);
    s->spec.out = as_float(spec->out);
    return &s->base;
}
