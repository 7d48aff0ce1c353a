/* Multi-head softmax attention:
 *     q = W_Q x + b_Q, k = W_K x + b_K, v = W_V x + b_V   (q and k turned by their positions with RoPE)
 *     o = softmax(scale q.k + mask + alibi) v   per head,      y = out * W_O o + b_O
 * Self-attention, or with `queries` = m cross-attention: the first m tokens ask, the others are read.
 * Bare: some of the heads of another attention module, whose weights it shares; y = o, their outputs side by side
 * (W_O = I, out = 1, b_O = 0).  It has no weights of its own to visit.
 *
 * jvp    the same maps on tangents around the kernel's attention_jvp
 * vjp    the same maps backwards; RoPE is orthogonal, so its adjoint turns the other way.  With run->jasmin the gradient of
 *        that penalty on the rows of softmax is added on the way
 * Bound  joint matrices over all heads, bound/attention.c (global: every token within the region's size)
 * Trace  q, k, v, o, the rows' log-sum-exp; in cross-attention also the input split in two.
 * run->lengths masks keys in self-attention; in cross-attention it is not read. */
#include "bound/local.h"
#include "bound/rounding.h"
#include "module/leaf.h"

typedef struct {
    taut_param weight, bias;
} affine;

typedef struct {
    taut_module base;
    taut_attention_spec spec;
    int64_t inner; /* features of all its heads together */
    bool bare;
    affine q, k, v, o;
} attention;

typedef struct {
    taut_tensor xq, xk, q, k, v, o;
    taut_real *lse;
    taut_attn attn;
} kept;

static taut_shape query_shape(const attention *s, taut_shape in)
{
    return (taut_shape){ in.n, s->spec.queries ? s->spec.queries : in.t, s->inner };
}

static taut_shape key_shape(const attention *s, taut_shape in)
{
    return (taut_shape){ in.n, in.t - s->spec.queries, s->inner };
}

/* The same tokens with the features of the input, or of the output where it is wider. */
static taut_shape wide(const attention *s, taut_shape in) { return (taut_shape){ in.n, in.t, s->spec.width }; }

static kept kept_at(const attention *s, const taut_run *run, taut_point at)
{
    const taut_attention_spec *a = &s->spec;
    const taut_shape sq = query_shape(s, at.x.shape), sk = key_shape(s, at.x.shape);
    kept t = { .xq = at.x, .xk = at.x };
    t.q = taut_take_tensor(&at.trace, sq);
    t.k = taut_take_tensor(&at.trace, sk);
    t.v = taut_take_tensor(&at.trace, sk);
    t.o = taut_take_tensor(&at.trace, sq);
    t.lse = taut_take(&at.trace, sq.n * a->heads * sq.t);
    if (a->queries) {
        t.xq = taut_take_tensor(&at.trace, wide(s, sq));
        t.xk = taut_take_tensor(&at.trace, wide(s, sk));
    }
    t.attn = (taut_attn){ sq.n,     a->heads,  sq.t,     sk.t, s->inner / a->heads,
                          a->scale, a->causal, a->alibi, 0,    a->queries ? NULL : run->lengths };
    return t;
}

static taut_plan attention_plan(const taut_module *m, taut_shape in)
{
    const attention *s = (const attention *)m;
    TAUT_CHECK(in.d == s->spec.width && in.t >= s->spec.queries, "attention: shape of the input");
    const taut_shape sq = query_shape(s, in), sk = key_shape(s, in);
    const int64_t projected = 2 * taut_len(sq) + 2 * taut_len(sk), split = s->spec.queries ? taut_len(in) : 0;
    return (taut_plan){ s->bare ? sq : wide(s, sq), projected + sq.n * s->spec.heads * sq.t + split,
                        projected + split };
}

/* Cross-attention: x (n, m + t, d) to and from its two parts. */
static void split(const taut_kernels *k, taut_tensor xq, taut_tensor xk, taut_tensor x)
{
    const int64_t all = x.shape.t * x.shape.d, part = xq.shape.t * x.shape.d;
    k->copy_rows(xq.data, part, x.data, all, x.shape.n, part);
    k->copy_rows(xk.data, all - part, taut_at(k, x.data, part), all, x.shape.n, all - part);
}

static void join(const taut_kernels *k, taut_tensor x, taut_tensor xq, taut_tensor xk)
{
    const int64_t all = x.shape.t * x.shape.d, part = xq.shape.t * x.shape.d;
    k->copy_rows(x.data, all, xq.data, part, x.shape.n, part);
    k->copy_rows(taut_at(k, x.data, part), all, xk.data, all - part, x.shape.n, all - part);
}

/* y = W x, or with `bias` y = W x + b */
static void project(const attention *s, const taut_kernels *k, taut_tensor y, const affine *a, taut_tensor x, bool bias)
{
    k->gemm(y.data, x.data, a->weight.value, taut_rows(x.shape), s->inner, s->spec.width, false, true, 1, 0);
    if (bias && s->spec.bias) k->add_rows(y.data, y.data, a->bias.value, taut_rows(y.shape), y.shape.d, 1);
}

static void turn(const attention *s, const taut_kernels *k, taut_tensor x, double sign)
{
    const taut_attention_spec *a = &s->spec;
    if (a->rope)
        k->rope(x.data, x.data, taut_rows(x.shape), x.shape.t, a->heads, s->inner / a->heads, a->rope_base, sign);
}

static void output(const attention *s, const taut_kernels *k, taut_tensor y, taut_tensor o)
{
    const int64_t d = s->spec.width;
    if (s->bare)
        k->axpby(y.data, 1, o.data, 0, taut_len(o.shape));
    else
        k->gemm(y.data, o.data, s->o.weight.value, taut_rows(o.shape), d, d, false, true, s->spec.out, 0);
}

static void attention_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const attention *s = (const attention *)m;
    const taut_kernels *k = run->k;
    const kept t = kept_at(s, run, at);
    if (s->spec.queries) split(k, t.xq, t.xk, at.x);
    project(s, k, t.q, &s->q, t.xq, true);
    project(s, k, t.k, &s->k, t.xk, true);
    project(s, k, t.v, &s->v, t.xk, true);
    turn(s, k, t.q, 1);
    turn(s, k, t.k, 1);
    k->attention(t.o.data, t.lse, t.q.data, t.k.data, t.v.data, &t.attn);
    output(s, k, y, t.o);
    if (s->spec.bias && !s->bare) k->add_rows(y.data, y.data, s->o.bias.value, taut_rows(y.shape), y.shape.d, 1);
}

typedef struct {
    taut_tensor q, k, v, o, xq, xk;
} slopes; /* tangents or cotangents of what is kept */

static slopes take_slopes(const attention *s, taut_run *run, const kept *t, taut_tensor x)
{
    slopes d = { .xq = x, .xk = x };
    d.q = taut_take_tensor(&run->scratch, t->q.shape);
    d.k = taut_take_tensor(&run->scratch, t->k.shape);
    d.v = taut_take_tensor(&run->scratch, t->v.shape);
    d.o = taut_take_tensor(&run->scratch, t->o.shape);
    if (!s->spec.queries) return d;
    d.xq = taut_take_tensor(&run->scratch, t->xq.shape);
    d.xk = taut_take_tensor(&run->scratch, t->xk.shape);
    return d;
}

static void attention_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const attention *s = (const attention *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, run, at);
    const slopes d = take_slopes(s, run, &t, tx);
    if (s->spec.queries) split(k, d.xq, d.xk, tx);
    project(s, k, d.q, &s->q, d.xq, false);
    project(s, k, d.k, &s->k, d.xk, false);
    project(s, k, d.v, &s->v, d.xk, false);
    turn(s, k, d.q, 1);
    turn(s, k, d.k, 1);
    k->attention_jvp(d.o.data, d.q.data, d.k.data, d.v.data, t.q.data, t.k.data, t.v.data, &t.attn);
    output(s, k, ty, d.o);
    run->scratch = mark;
}

/* gx = W^T gy (added to gx when `more`), and the gradients of W and b */
static void project_back(const attention *s, const taut_run *run, taut_tensor gx, bool more, taut_tensor gy,
                         const affine *a, taut_tensor x)
{
    const int64_t d = s->spec.width, inner = s->inner, rows = taut_rows(gy.shape);
    run->k->gemm(gx.data, gy.data, a->weight.value, rows, d, inner, false, false, 1, more ? 1 : 0);
    if (!run->param_grads || s->bare) return;
    run->k->gemm(a->weight.grad, gy.data, x.data, d, d, rows, true, false, 1, 1);
    if (s->spec.bias) run->k->sum_rows(a->bias.grad, gy.data, rows, d, 1);
}

static void attention_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const attention *s = (const attention *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, run, at);
    const slopes d = take_slopes(s, run, &t, gx);
    const int64_t rows = taut_rows(gy.shape), w = s->spec.width;
    if (s->bare)
        k->axpby(d.o.data, 1, gy.data, 0, taut_len(gy.shape));
    else
        k->gemm(d.o.data, gy.data, s->o.weight.value, rows, w, w, false, false, s->spec.out, 0);
    if (run->param_grads && !s->bare) {
        k->gemm(s->o.weight.grad, gy.data, t.o.data, w, w, rows, true, false, s->spec.out, 1);
        if (s->spec.bias) k->sum_rows(s->o.bias.grad, gy.data, rows, w, 1);
    }
    k->attention_vjp(d.q.data, d.k.data, d.v.data, d.o.data, t.o.data, t.lse, t.q.data, t.k.data, t.v.data, &t.attn);
    if (run->jasmin)
        *run->jasmin_sum += run->jasmin->weight *
                            k->attention_jasmin(d.q.data, d.k.data, t.q.data, t.k.data, &t.attn, run->jasmin);
    turn(s, k, d.q, -1);
    turn(s, k, d.k, -1);
    project_back(s, run, d.xq, false, d.q, &s->q, t.xq);
    project_back(s, run, d.xk, !s->spec.queries, d.k, &s->k, t.xk);
    project_back(s, run, d.xk, true, d.v, &s->v, t.xk);
    if (s->spec.queries) join(k, gx, d.xq, d.xk);
    run->scratch = mark;
}

/* W_O of a bare module: the identity on its features, then zeros.  NULL: no memory. */
static double *identity(const attention *s)
{
    double *w = taut_calloc((size_t)(s->spec.width * s->inner), sizeof *w);
    for (int64_t i = 0; w && i < s->inner; i++) w[i * s->inner + i] = 1;
    return w;
}

/* Around a centre: every token within the radius of its place. */
static taut_up up_near(const taut_attention_weights *w, taut_region in)
{
    const int64_t t = in.centre.x.shape.t;
    if (!in.centre.x.data || w->cross || in.padded || in.centre.x.shape.n != 1) return UP_NONE;
    double *far = taut_malloc((size_t)t * sizeof *far);
    if (!far) return UP_NONE;
    for (int64_t i = 0; i < t; i++) far[i] = in.radius.v;
    const taut_local_at at = { .xk = (const double *)in.centre.x.data, .dk = far, .keys = t };
    const taut_local_bound b = up_attention_local(w, &at, NULL);
    free(far);
    return in.norm == TAUT_NORM_FLAT ? b.flat : b.tokens;
}

static taut_bound attention_bound(const taut_module *m, taut_region in)
{
    const attention *s = (const attention *)m;
    const taut_attention_spec *a = &s->spec;
    double *one = s->bare ? identity(s) : NULL;
    if (s->bare && !one) return (taut_bound){ UP_NONE, region_after(in, UP_NONE, UP_NONE) };
    const int64_t tq = a->queries ? a->queries : in.tokens;
    const taut_attention_weights w = {
        .width = a->width,
        .heads = a->heads,
        .dh = s->inner / a->heads,
        .wq = taut_ref_values(&s->q.weight),
        .wk = taut_ref_values(&s->k.weight),
        .wv = taut_ref_values(&s->v.weight),
        .wo = s->bare ? one : taut_ref_values(&s->o.weight),
        .bq = a->bias ? taut_ref_values(&s->q.bias) : NULL,
        .bk = a->bias ? taut_ref_values(&s->k.bias) : NULL,
        .bv = a->bias ? taut_ref_values(&s->v.bias) : NULL,
        .bo = a->bias && !s->bare ? taut_ref_values(&s->o.bias) : NULL,
        .scale = a->scale,
        .out = a->out,
        .rope = a->rope,
        .causal = a->causal,
        .alibi = a->alibi,
        .cross = a->queries != 0,
        .tq = tq,
        .tk = in.tokens - a->queries,
        .keys_min = in.padded && !a->queries ? 0 : in.tokens - a->queries,
    };
    const taut_attention_bound b = up_attention(&w, in.size, in.size, in.ledger);
    const taut_up round = up_round_attention(&w, in.size);
    const taut_up lip = up_min(in.norm == TAUT_NORM_FLAT ? b.flat : b.tokens, up_near(&w, in));
    free(one);
    in.tokens = tq;
    return (taut_bound){ lip, region_after(in, b.growth, round) };
}

static void attention_params(taut_module *m, taut_visitor *v)
{
    attention *s = (attention *)m;
    affine *all[] = { &s->q, &s->k, &s->v, &s->o };
    for (int i = 0; i < 4 && !s->bare; i++) {
        taut_visit_param(v, &all[i]->weight);
        if (s->spec.bias) taut_visit_param(v, &all[i]->bias);
    }
}

static void attention_describe(const taut_module *m, taut_ledger *l)
{
    const taut_attention_spec *a = &((const attention *)m)->spec;
    ledger_exact(l, "heads", (double)a->heads);
    ledger_exact(l, "scale", a->scale);
    ledger_exact(l, "out", a->out);
    ledger_exact(l, "causal", a->causal);
    ledger_exact(l, "alibi", a->alibi);
    ledger_exact(l, "rope", a->rope ? a->rope_base : 0);
    if (a->queries) ledger_exact(l, "queries", (double)a->queries);
}

static const taut_module_ops attention_ops = {
    .kind = "attention",
    .plan = attention_plan,
    .forward = attention_forward,
    .jvp = attention_jvp,
    .vjp = attention_vjp,
    .bound = attention_bound,
    .params = attention_params,
    .describe = attention_describe,
    .free = leaf_free,
};

static affine affine_of(const char *weight, const char *bias, int64_t d, taut_init init, double gain)
{
    return (affine){ { .name = weight, .rows = d, .cols = d, .init = init, .gain = gain },
                     { .name = bias, .rows = 1, .cols = d, .role = TAUT_VECTOR } };
}

taut_module *taut_attention(const taut_attention_spec *spec)
{
    const int64_t d = spec->width;
    TAUT_CHECK(spec->heads > 0 && d % spec->heads == 0, "attention: width must be a multiple of heads");
    TAUT_CHECK(!spec->rope || d / spec->heads % 2 == 0, "attention: RoPE turns pairs, heads must have an even width");
    attention *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (attention){ { &attention_ops },
                      *spec,
                      d,
                      false,
                      affine_of("q.weight", "q.bias", d, spec->init, spec->gain),
                      affine_of("k.weight", "k.bias", d, spec->init, spec->gain),
                      affine_of("v.weight", "v.bias", d, spec->init, spec->gain),
                      affine_of("o.weight", "o.bias", d, spec->out_gain == 0 ? TAUT_INIT_ZERO : spec->init,
                                spec->out_gain) };
    s->spec.scale = as_float(spec->scale);
    s->spec.out = as_float(spec->out);
    return &s->base;
}

bool taut_is_attention(const taut_module *m) { return m->ops == &attention_ops; }

taut_attention_view taut_attention_look(const taut_module *m)
{
    TAUT_CHECK(m->ops == &attention_ops && !((const attention *)m)->bare, "this is no attention module");
    const attention *s = (const attention *)m;
    return (taut_attention_view){ &s->spec,
                                  { &s->q.weight, &s->k.weight, &s->v.weight, &s->o.weight },
                                  { &s->q.bias, &s->k.bias, &s->v.bias, &s->o.bias } };
}

taut_module *taut_attention_bare(const taut_kernels *k, const taut_module *whole, int64_t first, int64_t count)
{
    const taut_attention_spec *a = taut_attention_look(whole).spec;
    const int64_t head = a->width / a->heads;
    TAUT_CHECK(0 <= first && 0 < count && first + count <= a->heads, "attention: heads that are not there");
    TAUT_CHECK(!a->alibi || count == a->heads, "attention: the slopes of alibi belong to all heads together");
    attention *s = taut_malloc(sizeof *s);
    if (!s) return NULL;
    *s = *(const attention *)whole;
    s->bare = true;
    s->inner = count * head;
    s->spec.heads = count;
    s->spec.out = 1;
    affine *const all[] = { &s->q, &s->k, &s->v };
    for (int i = 0; i < 3; i++) {
        all[i]->weight.value = taut_at(k, all[i]->weight.value, first * head * a->width);
        if (a->bias) all[i]->bias.value = taut_at(k, all[i]->bias.value, first * head);
    }
    return &s->base;
}
