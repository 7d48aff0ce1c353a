/* Attention by position alone:
 *     v = W_V x,   o_i^h = g_h sum_j q^h_ij v_j^h,   y = W_O o + b_O
 * q^h_ij = softmax over the keys of i of w[h][i - j], a learned table of logits by distance; g_h a constant.  The input
 * decides nothing but the values, so the map is affine.  On a torus i - j is a shift round it, and all tokens are there.
 *
 * jvp    the same maps on tangents, without b_O
 * vjp    the same maps backwards;  gw by the adjoint of the softmax
 * Bound  bound/posattention.c: no radius enters it, so b_O and w are free
 * Trace  p = g q, v, o. */
#include <math.h>

#include "base/float32.h"
#include "bound/norm.h"
#include "bound/posattention.h"
#include "module/kind.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    taut_posattention_spec spec;
    taut_param v, o, bias, table;
    taut_constant gain;
} posattention;

typedef struct {
    taut_tensor v, o;
    taut_real *p;
    taut_distance a;
} kept;

int64_t taut_offset(int64_t head, bool far, int64_t context)
{
    const int64_t offset = !far || head == 0 ? head : (int64_t)1 << (head < 40 ? head : 40);
    return offset < context ? offset : context - 1;
}

static int64_t weights_len(const posattention *s, taut_shape in) { return s->spec.heads * in.t * in.t; }

static kept kept_at(const posattention *s, taut_point at)
{
    const taut_shape in = at.x.shape;
    kept t = { .v = taut_take_tensor(&at.trace, in), .o = taut_take_tensor(&at.trace, in) };
    t.p = taut_take(&at.trace, weights_len(s, in));
    t.a = (taut_distance){ .n = in.n,
                           .heads = s->spec.heads,
                           .t = in.t,
                           .dh = in.d / s->spec.heads,
                           .span = s->table.cols,
                           .causal = s->spec.causal,
                           .row = s->spec.row,
                           .gain = s->gain.there };
    return t;
}

static taut_plan posattention_plan(const taut_module *m, taut_shape in)
{
    const posattention *s = (const posattention *)m;
    TAUT_CHECK(in.d == s->spec.width && in.t <= s->spec.context && (!s->spec.row || in.t == s->spec.context),
               "posattention: shape of the input");
    const int64_t both = 2 * taut_len(in) + weights_len(s, in);
    return (taut_plan){ in, both, both, 0 };
}

/* y = W x (+ b) */
static void apply(const taut_kernels *k, taut_tensor y, const taut_param *w, const taut_param *b, taut_tensor x)
{
    k->affine(y.data, x.data, w->value, b ? b->value : NULL, taut_rows(x.shape), w->rows, w->cols, 1);
}

static void posattention_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const posattention *s = (const posattention *)m;
    const taut_kernels *k = run->k;
    const kept t = kept_at(s, at);
    k->distance_softmax(t.p, s->table.value, &t.a);
    apply(k, t.v, &s->v, NULL, at.x);
    k->distance_mix(t.o.data, t.p, t.v.data, &t.a, false);
    apply(k, y, &s->o, s->spec.bias ? &s->bias : NULL, t.o);
}

static void posattention_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const posattention *s = (const posattention *)m;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_tensor tv = taut_take_tensor(&run->scratch, tx.shape), to = taut_take_tensor(&run->scratch, tx.shape);
    apply(run->k, tv, &s->v, NULL, tx);
    run->k->distance_mix(to.data, t.p, tv.data, &t.a, false);
    apply(run->k, ty, &s->o, NULL, to);
    run->scratch = mark;
}

/* gx = W^T gy, and the gradient of W */
static void back(const taut_run *run, taut_tensor gx, taut_tensor gy, const taut_param *w, taut_tensor x)
{
    const int64_t rows = taut_rows(gy.shape);
    run->k->gemm(gx.data, gy.data, w->value, rows, w->cols, w->rows, false, false, 1, 0);
    if (run->param_grads) run->k->gemm(w->grad, gy.data, x.data, w->rows, w->cols, rows, true, false, 1, 1);
}

static void posattention_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const posattention *s = (const posattention *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_tensor go = taut_take_tensor(&run->scratch, gx.shape), gv = taut_take_tensor(&run->scratch, gx.shape);
    back(run, go, gy, &s->o, t.o);
    if (run->param_grads) {
        taut_real *gp = taut_take(&run->scratch, weights_len(s, gx.shape));
        k->distance_mix_vjp(gp, go.data, t.v.data, &t.a);
        k->distance_softmax_vjp(s->table.grad, gp, t.p, &t.a);
        if (s->spec.bias) k->sum_rows(s->bias.grad, gy.data, taut_rows(gy.shape), gy.shape.d, 1);
    }
    k->distance_mix(gv.data, t.p, go.data, &t.a, true);
    back(run, gx, gv, &s->v, at.x);
    run->scratch = mark;
}

static taut_posattention_weights weights_at(const posattention *s, int64_t tokens)
{
    return (taut_posattention_weights){ .width = s->spec.width,
                                        .heads = s->spec.heads,
                                        .tokens = tokens,
                                        .wv = taut_ref_values(&s->v),
                                        .wo = taut_ref_values(&s->o),
                                        .bo = s->spec.bias ? taut_ref_values(&s->bias) : NULL,
                                        .table = taut_ref_values(&s->table),
                                        .gain = s->gain.reals,
                                        .span = s->table.cols,
                                        .causal = s->spec.causal,
                                        .torus = s->spec.row > 0 };
}

static taut_answer posattention_bound(const taut_module *m, taut_ask in)
{
    const taut_posattention_weights w = weights_at((const posattention *)m, in.tokens);
    const taut_posattention_bound b = up_posattention(&w, in.norm == TAUT_NORM_FLAT, in.size, in.ledger);
    const taut_up round = up_round_posattention(&w, taut_longest(in));
    if (in.norm != TAUT_NORM_FLAT) return answer_of(in, b.lip, b.growth, round); /* lip says nothing of all together */
    const taut_up bias = w.bo ? up_norm_frobenius(w.bo, w.width) : UP_ZERO;
    const taut_up whole = up_add(up_mul(b.lip, taut_whole(in)), up_mul(up_sqrt(up_int(in.tokens)), bias));
    return answer_within(in, b.lip, b.growth, round, whole);
}

static void posattention_describe(const taut_module *m, taut_ledger *l)
{
    const taut_posattention_spec *s = &((const posattention *)m)->spec;
    ledger_exact(l, "heads", (double)s->heads);
    ledger_exact(l, "causal", s->causal);
    ledger_exact(l, "far", s->far);
    if (s->row) ledger_exact(l, "row", (double)s->row);
    if (!s->row && s->fade != 0.5) ledger_list(l, "gain", ((const posattention *)m)->gain.reals, (int)s->heads);
}

static void posattention_params(taut_module *m, taut_visitor *v)
{
    posattention *s = (posattention *)m;
    taut_visit_param(v, &s->v);
    taut_visit_param(v, &s->o);
    if (s->spec.bias) taut_visit_param(v, &s->bias);
    taut_visit_param(v, &s->table);
    taut_visit_constant(v, &s->gain);
}

static void posattention_free(taut_module *m)
{
    taut_constant_free(&((posattention *)m)->gain);
    free(m);
}

/* The mean of a head in norm flat acts on the tokens with norm g_h sqrt(c_h), also on their absolute values: all its weights are
 * positive.  In norm tokens a mean is no longer than the longest value, head by head. */
static taut_up posattention_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const posattention *s = (const posattention *)m;
    const taut_posattention_weights w = weights_at(s, in.tokens);
    const int64_t d = w.width;
    taut_up means = UP_ZERO;
    for (int64_t h = 0; h < w.heads; h++) {
        const taut_up gain = up_exact(w.gain[h]);
        if (in.norm == TAUT_NORM_FLAT)
            means = up_max(means, up_mul(gain, up_sqrt(w.torus ? up_int(1) : up_posattention_column(&w, h))));
        else
            means = up_hypot(means, gain);
    }
    const taut_up norm_o = up_norm(w.wo, d, d), v = up_mul(up_norm(w.wv, d, d), strays_in(in));
    const taut_up ev = strays_affine(in, w.wv, NULL, d, d, 1, strays_in(in), v), vs = up_add(v, ev);
    const double p = promise_distance_softmax(in.table, in.tokens), mix = promise_distance_mix(in.table, in.tokens);
    const taut_up once = { (p + mix + p * mix) * (1 + 0x1p-40) }, o = up_mul(means, vs);
    const taut_up least = up_mul(up_mul(up_int(in.tokens), (taut_up){ PROMISE_LEAST }),
                                 vs); /* of what underflows in p */
    const taut_up mixed = strays_sum(in, up_add(up_mul(once, o), least), o, in.tokens, (double)d);
    const taut_up eo = up_add(up_mul(means, ev), mixed);
    const taut_up carried = up_mul(norm_o, eo), y = up_add(strays_out(in, b), carried);
    return up_add(carried, strays_affine(in, w.wo, w.bo, d, d, 1, up_add(o, eo), y));
}

static const taut_module_ops posattention_ops = {
    .kind = "posattention",
    .plan = posattention_plan,
    .forward = posattention_forward,
    .jvp = posattention_jvp,
    .vjp = posattention_vjp,
    .bound = posattention_bound,
    .strays = posattention_strays,
    .describe = posattention_describe,
    .params = posattention_params,
    .free = posattention_free,
};

/* A fade of 1/2 is what a file says nothing of, so checkers take the root for it, which all machines round alike. */
static double gain_of(const taut_posattention_spec *s, int64_t head)
{
    const double away = 1 + (double)taut_offset(head, s->far, s->context);
    return taut_float32(s->fade == 0.5 ? 1 / sqrt(away) : pow(away, -s->fade));
}

taut_module *taut_posattention(const taut_posattention_spec *spec)
{
    const bool torus = spec->row > 0;
    const int64_t d = spec->width, zero = spec->causal || torus ? 0 : spec->context - 1;
    TAUT_CHECK(spec->heads > 0 && d % spec->heads == 0, "posattention: width must be a multiple of heads");
    TAUT_CHECK(!torus || (!spec->causal && !spec->far && spec->context % spec->row == 0), "posattention: its torus");
    posattention *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->gain = (taut_constant){ spec->heads, taut_malloc((size_t)spec->heads * sizeof(double)), NULL, NULL, NULL };
    if (!s->gain.reals) {
        free(s);
        return NULL;
    }
    s->base.ops = &posattention_ops;
    s->spec = *spec;
    const taut_init out_init = spec->out_gain == 0 ? TAUT_INIT_ZERO : spec->init;
    /* the norm tokens looks at each head alone; a torus is for flat, where they count together */
    s->v = (taut_param){ .name = "v.weight",
                         .rows = d,
                         .cols = d,
                         .init = spec->init,
                         .gain = spec->gain,
                         .parts = torus ? 0 : spec->heads };
    s->o = (taut_param){ .name = "o.weight", .rows = d, .cols = d, .init = out_init, .gain = spec->out_gain };
    s->bias = (taut_param){ .name = "o.bias", .rows = 1, .cols = d, .role = TAUT_VECTOR };
    s->table = (taut_param){ .name = "distance.weight",
                             .rows = spec->heads,
                             .cols = zero + spec->context,
                             .role = TAUT_LOGITS,
                             .init = torus       ? TAUT_INIT_TORUS
                                     : spec->far ? TAUT_INIT_FAR
                                                 : TAUT_INIT_NEAR,
                             .gain = (double)(torus ? spec->row : zero) };
    for (int64_t h = 0; h < spec->heads; h++) s->gain.reals[h] = torus ? 1 : gain_of(spec, h);
    return &s->base;
}

bool taut_is_posattention(const taut_module *m) { return m->ops == &posattention_ops; }

taut_posattention_view taut_posattention_look(const taut_module *m)
{
    const posattention *s = (const posattention *)m;
    TAUT_CHECK(taut_is_posattention(m), "posattention: another module");
    return (taut_posattention_view){ &s->spec, &s->table };
}

typedef struct {
    bool torus;
    double fade;
} position_own;

static const taut_key position_keys[] = {
    { "torus", TAUT_KEY_BOOL, offsetof(position_own, torus), .rare = true,
      .help = "the patches of an image lie on a torus instead of a line" },
    { "fade", TAUT_KEY_REAL, offsetof(position_own, fade), .def = 0.5, .hi = 2, .rare = true,
      .help = "a head that starts looking d tokens away is multiplied by (1 + d)^-fade" },
};

static taut_status position_check(taut_attention_choice *c, const taut_site *s)
{
    const position_own *own = (const void *)c->own.bytes;
    if ((double)s->heads * (double)s->context * (double)s->context > 0x1p40)
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.attention = position keeps heads * context^2 numbers per block: "
                         "model.context = %lld is too much",
                         (long long)s->context);
    if (own->torus && (s->front || !s->row))
        return taut_fail(TAUT_BAD_CONFIG, "model.torus = true has a place for patches only: use model.arch = vit and "
                                          "model.pool = concat or mean without model.class_token");
    if (own->torus && own->fade != 0.5)
        return taut_fail(TAUT_BAD_CONFIG, "model.fade would change nothing: with model.torus all heads count alike");
    return TAUT_OK;
}

static taut_module *position_build(const taut_attention_choice *c, const taut_site *s)
{
    const position_own *own = (const void *)c->own.bytes;
    return taut_posattention(&(taut_posattention_spec){ .width = s->width,
                                                        .heads = s->heads,
                                                        .context = s->context,
                                                        .causal = s->causal,
                                                        .bias = s->bias,
                                                        .far = s->index > 0 && !own->torus,
                                                        .fade = own->fade,
                                                        .row = own->torus ? s->row : 0,
                                                        .gain = s->gain,
                                                        .out_gain = s->out_gain,
                                                        .init = s->init });
}

const taut_attention_kind taut_kind_position = {
    .name = "position",
    .page = "posattention",
    .can = TAUT_CAN_CAUSAL,
    .not_placed = "there are no logits to turn or slope",
    .keys = position_keys,
    .count = sizeof position_keys / sizeof *position_keys,
    .check = position_check,
    .build = position_build,
};
