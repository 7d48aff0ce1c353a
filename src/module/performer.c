/* Performer (FAVOR+): softmax attention estimated by positive random features, in linear time.  Per head, with
 *     q = sqrt(scale) (W_Q x + b_Q), k = sqrt(scale) (W_K x + b_K), v = W_V x + b_V,     y = out W_O o + b_O
 *     phi_r(z) = exp(w_r.z - |z|^2/2),    o_i = sum_r phi_r(q_i) sum_j phi_r(k_j) v_j / sum_r phi_r(q_i) sum_j phi_r(k_j)
 * exp(q.k) is the mean of phi_r(q) phi_r(k) over normal w_r.  The w_r are drawn once, from the seed, in blocks of orthogonal
 * ones, the same for all heads.  |q_i|^2 drops out, and what is left is two softmax attentions, neither of which can overflow:
 *     vbar_r = sum_j P_rj v_j,  P_r = softmax over j of w_r.k_j - |k_j|^2/2,  l_r = the log-sum-exp of that row
 *     o_i    = sum_r softmax_r(w_r.q_i + l_r) vbar_r
 * as attention of [w_r, 1] to [k_j, -|k_j|^2/2] (lift.c) and of [q_i, 1] to [w_r, l_r].
 *
 * jvp       of both attentions; tl_r = sum_j P_rj (the tangent of row r's logits)
 * vjp       backwards.  The slot takes go.o from the output that it is given: with -1 in a column of vbar where the values
 *           have 0, the cotangent of l_r goes through as that column of go
 * Bound     docs/modules/performer.md; finite
 * Trace     q, k, v, o, and what the two attentions read and wrote, heads one behind the other.
 * Causal masks would need a sum for every token. */
#include <math.h>
#include <stdlib.h>

#include "base/float32.h"
#include "base/rng.h"
#include "module/core.h"
#include "module/reach.h"
#include "module/strays_attention.h"

typedef struct {
    taut_cored out;
    int64_t features;
    taut_constant w; /* [w_r, 1] (features, dh + 1), then dh + 1 ones, then -1 */
} performer;

typedef struct {
    int64_t many, tq, tk, m, dh, wide; /* many = heads n; wide = dh + 1 */
} sizes;

static sizes sizes_of(const performer *s, taut_shape q, taut_shape k)
{
    const int64_t heads = s->out.around.heads, dh = q.d / heads;
    return (sizes){ heads * q.n, q.t, k.t, s->features, dh, dh + 1 };
}

static taut_attn first(const sizes *z) { return (taut_attn){ z->many, 1, z->m, z->tk, z->wide, 1, 0, 0, 0 }; }
static taut_attn second(const sizes *z) { return (taut_attn){ z->many, 1, z->tq, z->m, z->wide, 1, 0, 0, 0 }; }

/* lk = [k, -|k|^2/2], lv = [v, 0], rk = [w, l], rv = [vbar, .], lq = [q, 1], lo = [o, .]; primal, tangent or cotangent */
typedef struct {
    taut_real *k, *lk, *lv, *rk, *rv, *lq, *lo;
} parts;

static int64_t parts_len(const sizes *z)
{
    return z->many * (z->tk * z->dh + z->wide * (2 * z->tk + 2 * z->m + 2 * z->tq));
}

static parts take_parts(taut_span *from, const sizes *z)
{
    parts p;
    p.k = taut_take(from, z->many * z->tk * z->dh);
    p.lk = taut_take(from, z->many * z->tk * z->wide);
    p.lv = taut_take(from, z->many * z->tk * z->wide);
    p.rk = taut_take(from, z->many * z->m * z->wide);
    p.rv = taut_take(from, z->many * z->m * z->wide);
    p.lq = taut_take(from, z->many * z->tq * z->wide);
    p.lo = taut_take(from, z->many * z->tq * z->wide);
    return p;
}

/* Beside parts: the features once for every head, as many once more, and a row of tokens. */
static taut_core_room performer_room(const taut_module *m, taut_shape q, taut_shape k)
{
    const sizes z = sizes_of((const performer *)m, q, k);
    return (taut_core_room){ parts_len(&z) + z.many * (z.m + z.tq),
                             parts_len(&z) + z.many * (2 * z.m * z.wide + z.m + z.tk * z.wide) };
}

static taut_real *ones(const performer *s, const taut_kernels *k, const sizes *z)
{
    return taut_at(k, s->w.there, z->m * z->wide);
}

/* Column dh of rows of dh + 1: from numbers that are `stride` apart. */
static void set_column(const taut_kernels *k, const sizes *z, taut_real *rows, const taut_real *c, int64_t stride,
                       int64_t count)
{
    k->copy_rows(taut_at(k, rows, z->dh), z->wide, c, stride, count, 1);
}

/* The features once for every head and example. */
static void repeat(const performer *s, const taut_kernels *k, const sizes *z, taut_real *to)
{
    k->copy_rows(to, z->m * z->wide, s->w.there, 0, z->many, z->m * z->wide);
}

static void spread(const performer *s, const taut_kernels *k, const sizes *z, taut_real *to, taut_tensor x, double by)
{
    const int64_t len = z->many * x.shape.t * z->wide;
    k->axpby(to, 0, to, 0, len);
    core_split(k, to, z->wide, x, s->out.around.heads);
    if (by != 1) k->axpby(to, by, to, 0, len);
}

static void performer_forward(const taut_module *m, taut_run *run, const taut_inside *t, taut_span trace)
{
    const performer *s = (const performer *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const sizes z = sizes_of(s, t->q.shape, t->k.shape);
    const taut_attn a = first(&z), b = second(&z);
    const parts p = take_parts(&trace, &z);
    taut_real *l = taut_take(&trace, z.many * z.m), *lse = taut_take(&trace, z.many * z.tq);
    taut_real *w = taut_take(&run->scratch, z.many * z.m * z.wide),
              *room = taut_take(&run->scratch, z.many * z.tk * z.wide);
    const double root = sqrt(s->out.around.scale);
    const taut_real *one = ones(s, k, &z);
    core_split(k, p.k, z.dh, t->k, s->out.around.heads);
    k->axpby(p.k, root, p.k, 0, z.many * z.tk * z.dh);
    k->lift(room, p.lk, p.k, z.many * z.tk, z.dh);
    spread(s, k, &z, p.lv, t->v, 1);
    spread(s, k, &z, p.lq, t->q, root);
    set_column(k, &z, p.lq, one, 0, z.many * z.tq);
    repeat(s, k, &z, w);
    repeat(s, k, &z, p.rk);
    k->attention(p.rv, l, w, p.lk, p.lv, &a);
    set_column(k, &z, p.rk, l, 1, z.many * z.m);
    set_column(k, &z, p.rv, taut_at(k, one, z.wide), 0, z.many * z.m);
    k->attention(p.lo, lse, p.lq, p.rk, p.rv, &b);
    core_join(k, t->o, p.lo, z.wide, s->out.around.heads);
    run->scratch = mark;
}

static void performer_jvp(const taut_module *m, taut_run *run, const taut_inside *d, const taut_inside *t,
                          taut_span trace)
{
    const performer *s = (const performer *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const sizes z = sizes_of(s, t->q.shape, t->k.shape);
    const taut_attn a = first(&z), b = second(&z);
    const parts p = take_parts(&trace, &z), e = take_parts(&run->scratch, &z);
    taut_real *w = taut_take(&run->scratch, z.many * z.m * z.wide),
              *mean = taut_take(&run->scratch, z.many * z.m * z.wide);
    taut_real *l = taut_take(&run->scratch, z.many * z.m), *room = taut_take(&run->scratch, z.many * z.tk * z.wide);
    const double root = sqrt(s->out.around.scale);
    core_split(k, e.k, z.dh, d->k, s->out.around.heads);
    k->axpby(e.k, root, e.k, 0, z.many * z.tk * z.dh);
    k->lift_jvp(room, e.lk, e.k, p.k, z.many * z.tk, z.dh);
    spread(s, k, &z, e.lv, d->v, 1);
    spread(s, k, &z, e.lq, d->q, root);
    repeat(s, k, &z, w);
    k->axpby(e.rk, 0, e.rk, 0, z.many * z.m * z.wide);
    k->attention_jvp(e.rv, e.rk, e.lk, e.lv, w, p.lk, p.lv, &a);
    k->attention(mean, l, w, p.lk, e.lk, &a);
    k->mul_rows(mean, mean, s->w.there, z.many, z.m * z.wide);
    k->gemm(l, mean, ones(s, k, &z), z.many * z.m, 1, z.wide, false, false, 1, 0);
    set_column(k, &z, e.rk, l, 1, z.many * z.m);
    k->attention_jvp(e.lo, e.lq, e.rk, e.rv, p.lq, p.rk, p.rv, &b);
    core_join(k, d->o, e.lo, z.wide, s->out.around.heads);
    run->scratch = mark;
}

static void performer_vjp(const taut_module *m, taut_run *run, const taut_inside *d, const taut_inside *t,
                          taut_span trace)
{
    const performer *s = (const performer *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const sizes z = sizes_of(s, t->q.shape, t->k.shape);
    const taut_attn a = first(&z), b = second(&z);
    const parts p = take_parts(&trace, &z), g = take_parts(&run->scratch, &z);
    const taut_real *l = taut_take(&trace, z.many * z.m), *lse = taut_take(&trace, z.many * z.tq);
    taut_real *w = taut_take(&run->scratch, z.many * z.m * z.wide),
              *gw = taut_take(&run->scratch, z.many * z.m * z.wide);
    taut_real *room = taut_take(&run->scratch, z.many * z.tk * z.wide);
    const int64_t heads = s->out.around.heads;
    const double root = sqrt(s->out.around.scale);
    spread(s, k, &z, g.lo, d->o, 1);
    k->attention_vjp(g.lq, g.rk, g.rv, g.lo, p.lo, lse, p.lq, p.rk, p.rv, &b);
    set_column(k, &z, g.rv, taut_at(k, g.rk, z.dh), z.wide, z.many * z.m);
    repeat(s, k, &z, w);
    k->attention_vjp(gw, g.lk, g.lv, g.rv, p.rv, l, w, p.lk, p.lv, &a);
    k->axpby(room, 0, room, 0, z.many * z.tk * z.wide);
    k->lift_vjp(g.k, room, g.lk, p.k, z.many * z.tk, z.dh);
    core_join(k, d->k, g.k, z.dh, heads);
    core_join(k, d->v, g.lv, z.wide, heads);
    core_join(k, d->q, g.lq, z.wide, heads);
    k->axpby(d->k.data, root, d->k.data, 0, taut_len(d->k.shape));
    k->axpby(d->q.data, root, d->q.data, 0, taut_len(d->q.shape));
    run->scratch = mark;
}

static taut_up longest(const performer *s)
{
    const int64_t dh = s->out.around.width / s->out.around.heads;
    taut_up most = UP_ZERO;
    for (int64_t r = 0; r < s->features; r++) most = up_max(most, up_norm_frobenius(s->w.reals + r * (dh + 1), dh));
    return most;
}

/* How wrong a mean with weights within exp(+-x) is, relative to its values; never more than 2. */
static taut_up wrong_by(taut_up x) { return x.v <= 0.5 ? up_add(x, up_mul(x, x)) : (taut_up){ 2 }; }

static taut_answer performer_bound(const taut_module *m, taut_ask in)
{
    const performer *s = (const performer *)m;
    const taut_qkv *x = &s->out.qkv;
    const int64_t tq = x->queries ? x->queries : in.tokens, tk = in.tokens - x->queries;
    const int64_t dh = x->width / s->out.around.heads;
    const taut_reach q = qkv_reach(x, &x->q, in.ledger, in.size), k = qkv_reach(x, &x->k, in.ledger, in.size),
                     v = qkv_reach(x, &x->v, in.ledger, in.size);
    const taut_up root = up_sqrt(up_exact(s->out.around.scale)), w = up_state(in.ledger, "longest", longest(s)),
                  kk = up_mul(root, k.size);
    const taut_up heads = up_sqrt(up_int(s->out.around.heads)), rows = up_sqrt(up_int(tq));
    const taut_up ask = up_mul(up_mul(v.size, root), w), read = up_mul(up_mul(v.size, root), up_add(w, kk));
    const taut_up keys = up_add(v.norm, up_mul(up_mul((taut_up){ 2 }, read), k.norm));
    const taut_up lip = up_add(up_mul(in.norm == TAUT_NORM_FLAT ? rows : heads, keys), up_mul(ask, q.norm));
    /* the logits of both attentions are wrong by what comes in and by little of the largest they can be */
    const taut_up far = up_add(up_mul(w, up_add(kk, up_mul(root, q.size))), up_add(up_mul(kk, kk), up_int(64)));
    const taut_up come = up_mul(root, up_add(up_mul(up_add(w, kk), k.round), up_mul(w, q.round)));
    const taut_up sums = up_gamma(tk + s->features + dh + 64);
    const taut_up logit = up_mul((taut_up){ 4 }, up_add(come, up_mul(sums, far)));
    const taut_up mean = up_mul(up_felt(up_add(v.size, v.round)),
                                up_mul((taut_up){ 2 }, up_add(wrong_by(up_add(logit, sums)), sums)));
    const taut_up round = up_mul(heads, up_add(v.round, mean));
    return core_answer(&s->out, in, lip, up_mul(heads, v.size), round);
}

/* sqrt(scale) z: an axpby. */
static taut_strayed rooted(taut_ask one, taut_up root, taut_strayed z)
{
    const taut_up own = strays_of(one, promise_axpby(one.table), up_mul(root, strayed_size(z)));
    return (taut_strayed){ up_mul(root, z.size), up_add(up_mul(root, z.wrong), own) };
}

/* A token, docs/modules/performer.md: the keys' lengths, the logits of the features, their means and log-sum-exps, the logits of
 * the queries, and the mean of means.  Logits are products of dh + 1 entries; what underflows in one counts with its slot. */
static taut_up performer_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const performer *s = (const performer *)m;
    const taut_qkv *a = &s->out.qkv;
    const taut_ask one = strays_token(in);
    const taut_promise *p = in.table;
    const int64_t tk = in.tokens - a->queries, dh = a->inner / s->out.around.heads, wide = dh + 1;
    const taut_up x = taut_longest(in), heads = up_sqrt(up_int(s->out.around.heads)), w = longest(s),
                  root = up_sqrt(up_exact(s->out.around.scale));
    const taut_strayed q = rooted(one, root, strays_reach(&a->q, one, a->bias, 1, x)),
                       k = rooted(one, root, strays_reach(&a->k, one, a->bias, 1, x)),
                       v = strays_reach(&a->v, one, a->bias, 1, x);
    const taut_up ks = strayed_size(k), vs = strayed_size(v), square = up_mul(ks, ks);
    const taut_up least = up_mul(up_int(2 * wide + 8), (taut_up){ PROMISE_LEAST });
    const taut_up lift = up_add(up_mul(k.wrong, ks), up_mul((taut_up){ promise_lift(p, dh) }, square));
    const taut_up first = up_add(up_mul(w, k.wrong), strays_sum(one, lift, square, dh, 1));
    const taut_up far = up_add(up_mul(w, ks), square), product = { promise_logit(p, wide) };
    const taut_up own = up_add(up_mul(product, far), least);
    const taut_up mean = strays_sum(one, strays_mean(one, first, own, vs, vs, tk, wide), vs, tk, (double)dh);
    const taut_up bar = up_add(v.wrong, mean), bars = up_add(v.size, bar);
    const taut_up l = up_add(far, (taut_up){ 1 + log((double)tk + 1) });
    const taut_up l_wrong = up_add(up_add(first, own), (taut_up){ promise_lse(p, tk, l.v) });
    const taut_up second = up_add(up_mul(w, q.wrong), l_wrong),
                  further = up_add(up_mul(w, strayed_size(q)), up_add(l, l_wrong));
    const taut_up slot = up_add(up_mul(product, further), least);
    const taut_up each = strays_mean(one, second, slot, bars, up_max(bars, (taut_up){ 1 }), s->features, wide);
    const taut_up wrong = strays_sum(one, up_mul(heads, up_add(bar, each)), bars, s->features, (double)a->inner);
    return strays_out_of(a, in, b->tokens, (taut_strayed){ up_mul(heads, bars), wrong });
}

static void performer_params(taut_module *m, taut_visitor *v)
{
    qkv_params(&((performer *)m)->out.qkv, v);
    taut_visit_constant(v, &((performer *)m)->w);
}

static void performer_free(taut_module *m)
{
    taut_constant_free(&((performer *)m)->w);
    free(m);
}

static void performer_describe(const taut_module *m, taut_ledger *l)
{
    const performer *s = (const performer *)m;
    const int64_t dh = s->out.around.width / s->out.around.heads;
    double *w = taut_malloc((size_t)(s->features * dh) * sizeof *w);
    core_describe(&s->out, l);
    ledger_exact(l, "scale", s->out.around.scale);
    for (int64_t i = 0; i < s->features * dh && w; i++) w[i] = s->w.reals[i / dh * (dh + 1) + i % dh];
    ledger_list(l, "directions", w, w ? (int)(s->features * dh) : 0);
    free(w);
}

static const taut_core performer_core = { performer_room, performer_forward, performer_jvp, performer_vjp };
static const taut_module_ops performer_ops = {
    .kind = "performer",
    .plan = core_plan,
    .forward = core_forward,
    .jvp = core_jvp,
    .vjp = core_vjp,
    .bound = performer_bound,
    .strays = performer_strays,
    .params = performer_params,
    .describe = performer_describe,
    .free = performer_free,
};

/* Row r: a direction orthogonal to the others of its block of dh, as long as a normal vector of its own. */
static void draw_row(double *w, int64_t r, int64_t dh, uint64_t seed)
{
    const uint64_t key = taut_rng_key(seed, TAUT_RNG_HASH, (uint64_t)r);
    double *row = w + r * (dh + 1), size = 0, length = 0;
    for (int64_t c = 0; c < dh; c++) row[c] = taut_rng_normal(key, (uint64_t)c);
    for (int64_t b = r - r % dh; b < r; b++) {
        const double *other = w + b * (dh + 1);
        double along = 0, square = 0;
        for (int64_t c = 0; c < dh; c++) along += row[c] * other[c], square += other[c] * other[c];
        for (int64_t c = 0; c < dh; c++) row[c] -= along / square * other[c];
    }
    for (int64_t c = 0; c < dh; c++) {
        const double normal = taut_rng_normal(key, (uint64_t)(dh + c));
        length += normal * normal, size += row[c] * row[c];
    }
    for (int64_t c = 0; c < dh; c++) row[c] *= sqrt(length / size);
    row[dh] = 1;
}

taut_module *taut_performer(const taut_around *around, int64_t features, uint64_t seed)
{
    TAUT_CHECK(features > 0 && around->scale >= 0 && !around->causal, "performer: features and scale, and no mask");
    const int64_t dh = around->width / around->heads, len = (features + 1) * (dh + 1) + 1;
    performer *s = taut_malloc(sizeof *s);
    double *w = taut_malloc((size_t)len * sizeof *w);
    if (!s || !w) {
        free(s), free(w);
        return NULL;
    }
    for (int64_t r = 0; r < features; r++) draw_row(w, r, dh, seed);
    for (int64_t i = 0; i < features * (dh + 1); i++) w[i] = taut_float32(w[i]);
    for (int64_t i = features * (dh + 1); i < len; i++) w[i] = i == len - 1 ? -1 : 1;
    *s = (performer){ cored_of(&performer_ops, &performer_core, around), features, { .len = len, .reals = w } };
    return &s->out.base;
}

static const taut_key performer_keys[] = {
    { "performer_features", TAUT_KEY_INT, 0, 64, 1, 1 << 16, .help = "random features a head" },
};

static taut_module *performer_build(const taut_attention_choice *c, const taut_site *s)
{
    const taut_around around = around_of(s);
    return taut_performer(&around, *(const int64_t *)(const void *)c->own.bytes, s->index);
}

const taut_attention_kind taut_kind_performer = {
    .name = "performer",
    .page = "performer",
    .can = TAUT_CAN_CROSS | TAUT_CAN_SCALE,
    .not_causal = "its sums are over all keys",
    .keys = performer_keys,
    .count = sizeof performer_keys / sizeof *performer_keys,
    .build = performer_build,
};
