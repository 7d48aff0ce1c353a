/* Multi-head softmax attention:
 *     q = W_Q x + b_Q, k = W_K x + b_K, v = W_V x + b_V   (with RoPE, q and k are then rotated by their positions)
 *     o = softmax(scale q.k + mask + alibi) v   per head,      y = out * W_O o + b_O
 * Self-attention, or with `queries` = m cross-attention: the first m tokens ask, the others are read.
 * A bare module is some heads of another attention module: it shares that one's weights, visits none, and answers
 * y = o, the heads' outputs side by side (W_O = I, out = 1, b_O = 0).
 *
 * jvp    the same affine maps without biases and the same rotation, around the kernel's attention_jvp
 * vjp    the transposed maps; a rotation's transpose rotates the other way.  A watcher of the run sees q and k and may
 *        add to their gradients
 * Bound  bound/attention.c, for all tokens of at most the region's size; around a centre, for one example of
 *        self-attention, the smaller of that and bound/local.c
 * Trace  q, k, v, o, the rows' log-sum-exp; in cross-attention also the input split in two. */
#include "base/float32.h"
#include "bound/local.h"
#include "bound/rounding.h"
#include "module/kind.h"
#include "module/qkv.h"
#include "module/strays_attention.h"

typedef struct {
    taut_module base;
    taut_attention_spec spec;
    taut_qkv qkv;
} attention;

typedef struct {
    taut_inside in;
    taut_real *lse;
    taut_attn attn;
} kept;

static kept kept_at(const attention *s, taut_point at)
{
    const taut_attention_spec *a = &s->spec;
    kept t = { .in = qkv_take(&s->qkv, &at.trace, at.x) };
    const taut_shape sq = t.in.q.shape;
    t.lse = taut_take(&at.trace, sq.n * a->heads * sq.t);
    t.attn = (taut_attn){ sq.n, a->heads, sq.t, t.in.k.shape.t, sq.d / a->heads, a->scale, a->causal, a->alibi, 0 };
    return t;
}

static taut_plan attention_plan(const taut_module *m, taut_shape in)
{
    const attention *s = (const attention *)m;
    TAUT_CHECK(in.d == s->spec.width && in.t >= s->spec.queries, "attention: shape of the input");
    const taut_shape sq = qkv_queries(&s->qkv, in), out = { sq.n, sq.t, s->qkv.bare ? sq.d : s->spec.width };
    const int64_t inside = qkv_room(&s->qkv, in);
    return (taut_plan){ out, inside + sq.n * s->spec.heads * sq.t, inside, 0 };
}

static double base_of(const taut_attention_spec *a) { return a->rope ? a->rope_base : 0; }

static void attention_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const attention *s = (const attention *)m;
    const taut_kernels *k = run->k;
    const kept t = kept_at(s, at);
    qkv_enter(&s->qkv, k, &t.in, at.x, true);
    qkv_turn(k, &t.in, s->spec.heads, base_of(&s->spec), 1);
    k->attention(t.in.o.data, t.lse, t.in.q.data, t.in.k.data, t.in.v.data, &t.attn);
    qkv_out(&s->qkv, k, y, t.in.o, true);
}

static void attention_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const attention *s = (const attention *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_inside d = qkv_take(&s->qkv, &run->scratch, tx);
    qkv_enter(&s->qkv, k, &d, tx, false);
    qkv_turn(k, &d, s->spec.heads, base_of(&s->spec), 1);
    k->attention_jvp(d.o.data, d.q.data, d.k.data, d.v.data, t.in.q.data, t.in.k.data, t.in.v.data, &t.attn);
    qkv_out(&s->qkv, k, ty, d.o, false);
    run->scratch = mark;
}

static void attention_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const attention *s = (const attention *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_inside d = qkv_take(&s->qkv, &run->scratch, gx);
    qkv_out_back(&s->qkv, run, d.o, gy, t.in.o);
    k->attention_vjp(d.q.data, d.k.data, d.v.data, d.o.data, t.in.o.data, t.lse, t.in.q.data, t.in.k.data, t.in.v.data,
                     &t.attn);
    if (run->watch && run->watch->rows)
        run->watch->rows(run->watch->arg, k, d.q.data, d.k.data, t.in.q.data, t.in.k.data, &t.attn);
    qkv_turn(k, &d, s->spec.heads, base_of(&s->spec), -1);
    qkv_leave(&s->qkv, run, gx, &d, &t.in);
    run->scratch = mark;
}

/* W_O of a bare module, (width, inner): the identity, and rows of zeros below it.  NULL: no memory. */
static double *identity(const attention *s)
{
    double *w = taut_calloc((size_t)(s->spec.width * s->qkv.inner), sizeof *w);
    for (int64_t i = 0; w && i < s->qkv.inner; i++) w[i * s->qkv.inner + i] = 1;
    return w;
}

/* The constant around a centre: every token may move by the radius, which holds in both norms.  +inf: none is known. */
static taut_up up_near(const taut_attention_weights *w, taut_ask in)
{
    const int64_t t = in.centre.x.shape.t;
    if (!in.centre.x.data || w->cross || in.centre.x.shape.n != 1) return UP_NONE;
    double *far = taut_malloc((size_t)t * sizeof *far);
    if (!far) return UP_NONE;
    for (int64_t i = 0; i < t; i++) far[i] = in.radius.v;
    const taut_local_at at = { .xk = (const double *)in.centre.x.data, .dk = far, .keys = t };
    const taut_local_bound b = up_attention_local(w, &at, NULL);
    free(far);
    return in.norm == TAUT_NORM_FLAT ? b.flat : b.tokens;
}

static taut_answer attention_bound(const taut_module *m, taut_ask in)
{
    const attention *s = (const attention *)m;
    const taut_attention_spec *a = &s->spec;
    double *one = s->qkv.bare ? identity(s) : NULL;
    if (s->qkv.bare && !one) return answer_of(in, UP_NONE, UP_NONE, UP_NONE);
    const int64_t tq = a->queries ? a->queries : in.tokens;
    const taut_attention_weights w = {
        .width = a->width,
        .heads = a->heads,
        .dh = s->qkv.inner / a->heads,
        .wq = taut_ref_values(&s->qkv.q.weight),
        .wk = taut_ref_values(&s->qkv.k.weight),
        .wv = taut_ref_values(&s->qkv.v.weight),
        .wo = s->qkv.bare ? one : taut_ref_values(&s->qkv.o.weight),
        .bq = a->bias ? taut_ref_values(&s->qkv.q.bias) : NULL,
        .bk = a->bias ? taut_ref_values(&s->qkv.k.bias) : NULL,
        .bv = a->bias ? taut_ref_values(&s->qkv.v.bias) : NULL,
        .bo = a->bias && !s->qkv.bare ? taut_ref_values(&s->qkv.o.bias) : NULL,
        .scale = a->scale,
        .out = a->out,
        .rope = a->rope,
        .rope_base = a->rope_base,
        .causal = a->causal,
        .alibi = a->alibi,
        .cross = a->queries != 0,
        .tq = tq,
        .tk = in.tokens - a->queries,
        .keys_min = in.tokens - a->queries,
    };
    const taut_attention_bound b = up_attention(&w, in.size, in.size, in.ledger);
    const taut_up round = up_round_attention(&w, in.size);
    const taut_up lip = up_min(in.norm == TAUT_NORM_FLAT ? b.flat : b.tokens, up_near(&w, in));
    free(one);
    in.tokens = tq;
    return answer_of(in, lip, b.growth, round);
}

static void attention_params(taut_module *m, taut_visitor *v) { qkv_params(&((attention *)m)->qkv, v); }

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

static taut_up attention_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const attention *s = (const attention *)m;
    const taut_attention_spec *a = &s->spec;
    return strays_softmax(&s->qkv, in, b->tokens,
                          (taut_strays_logits){ a->heads, in.tokens - a->queries, a->scale, a->rope, a->alibi });
}

static const taut_module_ops attention_ops = {
    .kind = "attention",
    .plan = attention_plan,
    .forward = attention_forward,
    .jvp = attention_jvp,
    .vjp = attention_vjp,
    .bound = attention_bound,
    .strays = attention_strays,
    .params = attention_params,
    .describe = attention_describe,
    .free = leaf_free,
};

taut_module *taut_attention(const taut_attention_spec *spec)
{
    const int64_t d = spec->width;
    TAUT_CHECK(spec->heads > 0 && d % spec->heads == 0, "attention: width must be a multiple of heads");
    TAUT_CHECK(!spec->rope || d / spec->heads % 2 == 0, "attention: RoPE turns pairs, heads must have an even width");
    attention *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (attention){ { &attention_ops },
                      *spec,
                      qkv_of(d, spec->queries, spec->bias, spec->out, spec->init, spec->gain, spec->out_gain) };
    s->spec.scale = taut_float32(spec->scale);
    s->spec.out = taut_float32(spec->out);
    return &s->base;
}

bool taut_is_attention(const taut_module *m) { return m->ops == &attention_ops; }

taut_attention_view taut_attention_look(const taut_module *m)
{
    TAUT_CHECK(m->ops == &attention_ops && !((const attention *)m)->qkv.bare, "this is no attention module");
    const attention *s = (const attention *)m;
    return (taut_attention_view){ &s->spec,
                                  { &s->qkv.q.weight, &s->qkv.k.weight, &s->qkv.v.weight, &s->qkv.o.weight },
                                  { &s->qkv.q.bias, &s->qkv.k.bias, &s->qkv.v.bias, &s->qkv.o.bias } };
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
    s->qkv.bare = true;
    s->qkv.inner = count * head;
    s->spec.heads = count;
    s->spec.out = 1;
    taut_affine *const all[] = { &s->qkv.q, &s->qkv.k, &s->qkv.v };
    for (int i = 0; i < 3; i++) {
        all[i]->weight.value = taut_at(k, all[i]->weight.value, first * head * a->width);
        if (a->bias) all[i]->bias.value = taut_at(k, all[i]->bias.value, first * head);
    }
    return &s->base;
}

static taut_module *softmax_build(const taut_attention_choice *c, const taut_site *s)
{
    (void)c;
    return taut_attention(&(taut_attention_spec){ .width = s->width,
                                                  .heads = s->heads,
                                                  .queries = s->queries,
                                                  .scale = s->scale,
                                                  .out = s->out,
                                                  .causal = s->causal,
                                                  .alibi = s->alibi,
                                                  .rope = s->rope,
                                                  .bias = s->bias,
                                                  .rope_base = s->rope_base,
                                                  .gain = s->gain,
                                                  .out_gain = s->out_gain,
                                                  .init = s->init });
}

const taut_attention_kind taut_kind_softmax = {
    .name = "softmax",
    .page = "attention",
    .can = TAUT_CAN_CAUSAL | TAUT_CAN_CROSS | TAUT_CAN_ROPE | TAUT_CAN_ALIBI | TAUT_CAN_SCALE | TAUT_CAN_PENALTY |
           TAUT_CAN_JASMIN,
    .build = softmax_build,
};
