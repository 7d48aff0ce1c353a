/* ProbSparse self-attention (Informer): per head, every query is judged by a few keys drawn at random, those whose scores are
 * most uneven look at all keys, and the others take what all keys give alike.
 *     q = W_Q x + b_Q, k = W_K x + b_K, v = W_V x + b_V,     y = out W_O o + b_O
 *     o_i = softmax(scale q_i.k) v, or the mean of v, or where causal v_0 + ... + v_i      (kernels/ref/sparse.c)
 * factor ceil(ln t) keys are drawn and as many queries look.  The draws are a function of the seed, and in training of the
 * step too.
 *
 * jvp, vjp  who looks counts as a constant
 * Bound     Lip +inf: where another query begins to look, y jumps.  Region: a head's o_i is an average of values, or a sum.
 * Trace     q, k, v, o, who looks. */
#include "base/float32.h"
#include "base/rng.h"
#include "module/kind.h"
#include "module/reach.h"

typedef struct {
    taut_module base;
    taut_probsparse_spec spec;
    taut_qkv qkv;
} probsparse;

static int64_t some(const probsparse *s, int64_t t)
{
    const double many = (double)s->spec.factor * ceil(log((double)t));
    return many < 1 ? 1 : many < (double)t ? (int64_t)many : t;
}

static taut_sparse shape_of(const probsparse *s, const taut_run *run, taut_shape in)
{
    const uint64_t step = run ? run->phase.key : 0;
    return (taut_sparse){ .n = in.n,
                          .heads = s->spec.heads,
                          .tq = in.t,
                          .tk = in.t,
                          .dh = s->spec.width / s->spec.heads,
                          .samples = some(s, in.t),
                          .top = some(s, in.t),
                          .scale = s->spec.scale,
                          .causal = s->spec.causal,
                          .key = taut_rng_key(step, TAUT_RNG_PROBE, s->spec.seed) };
}

static int64_t lookers(const taut_sparse *g) { return g->n * g->heads * g->top; }

static taut_plan probsparse_plan(const taut_module *m, taut_shape in)
{
    const probsparse *s = (const probsparse *)m;
    TAUT_CHECK(in.d == s->spec.width && in.t > 0, "probsparse: shape of the input");
    const taut_sparse g = shape_of(s, NULL, in);
    const int64_t inside = qkv_room(&s->qkv, in);
    return (taut_plan){ in, inside + lookers(&g), inside, 0 };
}

static void probsparse_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const probsparse *s = (const probsparse *)m;
    const taut_kernels *k = run->k;
    const taut_inside t = qkv_take(&s->qkv, &at.trace, at.x);
    const taut_sparse g = shape_of(s, run, at.x.shape);
    taut_real *c = taut_take(&at.trace, lookers(&g));
    qkv_enter(&s->qkv, k, &t, at.x, true);
    k->sparse_pick(c, t.q.data, t.k.data, &g);
    k->sparse(t.o.data, c, t.q.data, t.k.data, t.v.data, &g);
    qkv_out(&s->qkv, k, y, t.o, true);
}

static void probsparse_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const probsparse *s = (const probsparse *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const taut_inside t = qkv_take(&s->qkv, &at.trace, at.x), d = qkv_take(&s->qkv, &run->scratch, tx);
    const taut_sparse g = shape_of(s, run, at.x.shape);
    const taut_real *c = taut_take(&at.trace, lookers(&g));
    qkv_enter(&s->qkv, k, &d, tx, false);
    k->sparse_jvp(d.o.data, d.q.data, d.k.data, d.v.data, c, t.q.data, t.k.data, t.v.data, &g);
    qkv_out(&s->qkv, k, ty, d.o, false);
    run->scratch = mark;
}

static void probsparse_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const probsparse *s = (const probsparse *)m;
    const taut_span mark = run->scratch;
    const taut_inside t = qkv_take(&s->qkv, &at.trace, at.x), d = qkv_take(&s->qkv, &run->scratch, gx);
    const taut_sparse g = shape_of(s, run, at.x.shape);
    const taut_real *c = taut_take(&at.trace, lookers(&g));
    qkv_out_back(&s->qkv, run, d.o, gy, t.o);
    run->k->sparse_vjp(d.q.data, d.k.data, d.v.data, d.o.data, c, t.q.data, t.k.data, t.v.data, &g);
    qkv_leave(&s->qkv, run, gx, &d, &t);
    run->scratch = mark;
}

static taut_answer probsparse_bound(const taut_module *m, taut_ask in)
{
    const probsparse *s = (const probsparse *)m;
    const taut_qkv *x = &s->qkv;
    taut_up o = up_mul(up_sqrt(up_int(s->spec.heads)), qkv_reach(x, &x->v, in.ledger, in.size).size);
    if (s->spec.causal) o = up_mul(up_int(in.tokens), o);
    ledger_word(in.ledger, "reason", "a query that begins to look makes the output jump");
    const taut_up size = up_mul(qkv_reach(x, &x->o, in.ledger, up_mul(up_exact(x->out), o)).size,
                                (taut_up){ 1 + 0x1p-20 });
    return (taut_answer){ .lip = UP_NONE, .size = size, .round = UP_NONE, .tokens = in.tokens };
}

static void probsparse_params(taut_module *m, taut_visitor *v) { qkv_params(&((probsparse *)m)->qkv, v); }

static void probsparse_describe(const taut_module *m, taut_ledger *l)
{
    const probsparse *s = (const probsparse *)m;
    ledger_exact(l, "heads", (double)s->spec.heads);
    ledger_exact(l, "out", s->qkv.out);
    ledger_exact(l, "scale", s->spec.scale);
    ledger_exact(l, "causal", s->spec.causal);
    ledger_exact(l, "factor", (double)s->spec.factor);
    ledger_exact(l, "seed", (double)s->spec.seed);
}

static const taut_module_ops probsparse_ops = {
    .kind = "probsparse",
    .plan = probsparse_plan,
    .forward = probsparse_forward,
    .jvp = probsparse_jvp,
    .vjp = probsparse_vjp,
    .bound = probsparse_bound,
    .params = probsparse_params,
    .describe = probsparse_describe,
    .free = leaf_free,
};

taut_module *taut_probsparse(const taut_probsparse_spec *spec)
{
    TAUT_CHECK(spec->heads > 0 && spec->width % spec->heads == 0, "probsparse: width must be a multiple of heads");
    TAUT_CHECK(spec->factor > 0, "probsparse: factor");
    probsparse *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (probsparse){ { &probsparse_ops },
                       *spec,
                       qkv_of(spec->width, 0, spec->bias, spec->out, spec->init, spec->gain, spec->out_gain) };
    s->spec.scale = taut_float32(spec->scale);
    return &s->base;
}

typedef struct {
    int64_t factor;
    bool decoder;
} probsparse_own;

static const taut_key probsparse_keys[] = {
    { "sparse_factor", TAUT_KEY_INT, offsetof(probsparse_own, factor), 5, 1, 1 << 20,
      .help = "c: of t tokens, c ceil(ln t) look" },
    { "sparse_decoder", TAUT_KEY_BOOL, offsetof(probsparse_own, decoder), 1,
      .help = "also in the decoder's own attention; false: softmax there" },
};

static taut_status probsparse_check(taut_attention_choice *c, const taut_site *s)
{
    (void)s;
    if (!((const probsparse_own *)(const void *)c->own.bytes)->decoder) c->can &= ~(unsigned)TAUT_CAN_CAUSAL;
    return TAUT_OK;
}

static taut_module *probsparse_build(const taut_attention_choice *c, const taut_site *s)
{
    return taut_probsparse(
        &(taut_probsparse_spec){ .width = s->width,
                                 .heads = s->heads,
                                 .factor = ((const probsparse_own *)(const void *)c->own.bytes)->factor,
                                 .scale = s->scale,
                                 .out = s->out,
                                 .causal = s->causal,
                                 .bias = s->bias,
                                 .seed = 2 * s->index + s->causal,
                                 .init = s->init,
                                 .gain = s->gain,
                                 .out_gain = s->out_gain });
}

const taut_attention_kind taut_kind_probsparse = {
    .name = "probsparse",
    .page = "probsparse",
    .can = TAUT_CAN_CAUSAL | TAUT_CAN_SCALE | TAUT_CAN_PENALTY | TAUT_IS_FORECAST,
    .keys = probsparse_keys,
    .count = sizeof probsparse_keys / sizeof *probsparse_keys,
    .check = probsparse_check,
    .build = probsparse_build,
};
