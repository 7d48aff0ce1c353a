/* cosFormer: attention in linear time whose weights are products of features, without a softmax.  Per head,
 *     q = W_Q x + b_Q, k = W_K x + b_K, v = W_V x + b_V,     y = out W_O o + b_O
 *     a_ij = relu(q_i).relu(k_j) cos(u_i - u_j),   u_i = (pi/2) i / M,   M tokens at most, so that every a_ij >= 0
 *     o_i = sum_j a_ij v_j / sqrt(D_i^2 + eps^2),  D_i = sum_j a_ij
 * cos(u - w) = cos u cos w + sin u sin w, so that with features f_i = [relu(q_i) cos u_i, relu(q_i) sin u_i], g_j alike,
 * sum_j g_j [v_j, 1] is one small matrix.  Where all weights are 0 the paper divides by nothing; eps makes it smooth.
 *
 * jvp, vjp  product by product
 * Bound     docs/modules/cosformer.md: finite, with 1/eps in it
 * Trace     q, k, v, o; relu(q), relu(k), f, g, [v, 1], their product, [sum a v, D], 1/sqrt(D^2 + eps^2).
 * The scale of logits does not exist: D divides it away.  Causal masks would need a product for every token. */
#include <math.h>
#include <stdlib.h>

#include "base/float32.h"
#include "module/core.h"
#include "module/reach.h"
#include "module/strays_attention.h"

typedef struct {
    taut_cored out;
    int64_t tokens;
    double eps;
    taut_constant turn; /* cos u_i dh times for every token, then sin u_i, then a 1 */
} cosformer;

/* Heads one behind the other, `many` = heads n of them. */
typedef struct {
    int64_t many, tq, tk, dh;
} sizes;

static sizes sizes_of(const taut_module *m, taut_shape q, taut_shape k)
{
    const int64_t heads = ((const taut_cored *)m)->around.heads;
    return (sizes){ heads * q.n, q.t, k.t, q.d / heads };
}

/* Primal or tangent: r = relu of q or k, f = r turned (t, 2 dh); v1 = [v, 1]; kv = g^T v1 (2 dh, dh + 1);
 * nd = f kv = [N, D]; by = 1/sqrt(D^2 + eps^2) */
typedef struct {
    taut_real *rq, *rk, *f, *g, *v1, *kv, *nd, *by;
} parts;

static int64_t parts_len(const sizes *s)
{
    return s->many * (3 * s->dh * (s->tq + s->tk) + (s->dh + 1) * (s->tk + 2 * s->dh + s->tq) + s->tq);
}

static parts take_parts(taut_span *from, const sizes *s)
{
    parts p;
    p.rq = taut_take(from, s->many * s->tq * s->dh);
    p.rk = taut_take(from, s->many * s->tk * s->dh);
    p.f = taut_take(from, s->many * s->tq * 2 * s->dh);
    p.g = taut_take(from, s->many * s->tk * 2 * s->dh);
    p.v1 = taut_take(from, s->many * s->tk * (s->dh + 1));
    p.kv = taut_take(from, s->many * 2 * s->dh * (s->dh + 1));
    p.nd = taut_take(from, s->many * s->tq * (s->dh + 1));
    p.by = taut_take(from, s->many * s->tq);
    return p;
}

/* Beside parts: an array of tokens with their features twice, the factors of rows, and three columns. */
static taut_core_room cosformer_room(const taut_module *m, taut_shape q, taut_shape k)
{
    const sizes s = sizes_of(m, q, k);
    const int64_t most = s.tq > s.tk ? s.tq : s.tk;
    TAUT_CHECK(most <= ((const cosformer *)m)->tokens, "cosformer: more tokens than it was made for");
    return (taut_core_room){ parts_len(&s),
                             parts_len(&s) + s.many * (most * (s.dh + 1) + 3 * s.tq) + taut_sums_len(s.many * s.tq) };
}

/* y (many, t, 2 dh) = [x cos u, x sin u] of x (many, t, dh); `room` is as large as x.  Its transpose adds up. */
static void turn(const cosformer *s, const taut_kernels *k, taut_real *y, const taut_real *x, int64_t many, int64_t t,
                 int64_t dh, taut_real *room)
{
    for (int64_t half = 0; half < 2; half++) {
        k->mul_rows(room, x, taut_at(k, s->turn.there, half * s->tokens * dh), many, t * dh);
        k->copy_rows(taut_at(k, y, half * dh), 2 * dh, room, dh, many * t, dh);
    }
}

static void turn_back(const cosformer *s, const taut_kernels *k, taut_real *x, const taut_real *y, int64_t many,
                      int64_t t, int64_t dh, taut_real *room)
{
    for (int64_t half = 0; half < 2; half++) {
        k->copy_rows(room, dh, taut_at(k, y, half * dh), 2 * dh, many * t, dh);
        k->mul_rows(room, room, taut_at(k, s->turn.there, half * s->tokens * dh), many, t * dh);
        k->axpby(x, 1, room, half ? 1 : 0, many * t * dh);
    }
}

/* Column dh of rows of dh + 1, out and in. */
static void column(const taut_kernels *k, taut_real *c, taut_real *rows, int64_t count, int64_t dh, bool in)
{
    if (in)
        k->copy_rows(taut_at(k, rows, dh), dh + 1, c, 1, count, 1);
    else
        k->copy_rows(c, 1, taut_at(k, rows, dh), dh + 1, count, 1);
}

/* Every row of y (rows, cols) times its factor. */
static void scale_rows(taut_run *run, taut_real *y, const taut_real *factor, int64_t rows, int64_t cols)
{
    const taut_span mark = run->scratch;
    taut_sum *by = taut_take_sums(&run->scratch, rows);
    run->k->sum_of(by, factor, rows);
    run->k->axpby_by(y, cols, (taut_factor){ 0, NULL }, NULL, 0, (taut_factor){ 1, by }, rows, cols);
    run->scratch = mark;
}

static void cosformer_forward(const taut_module *m, taut_run *run, const taut_inside *t, taut_span trace)
{
    const cosformer *s = (const cosformer *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const sizes z = sizes_of(m, t->q.shape, t->k.shape);
    const parts p = take_parts(&trace, &z);
    const int64_t heads = s->out.around.heads, most = z.tq > z.tk ? z.tq : z.tk, wide = z.dh + 1;
    taut_real *room = taut_take(&run->scratch, z.many * most * wide), *d = taut_take(&run->scratch, z.many * z.tq);
    core_split(k, p.rq, z.dh, t->q, heads);
    core_split(k, p.rk, z.dh, t->k, heads);
    k->pointwise(p.rq, p.rq, TAUT_RELU, z.many * z.tq * z.dh);
    k->pointwise(p.rk, p.rk, TAUT_RELU, z.many * z.tk * z.dh);
    turn(s, k, p.f, p.rq, z.many, z.tq, z.dh, room);
    turn(s, k, p.g, p.rk, z.many, z.tk, z.dh, room);
    core_split(k, p.v1, wide, t->v, heads);
    k->copy_rows(taut_at(k, p.v1, z.dh), wide, taut_at(k, s->turn.there, 2 * s->tokens * z.dh), 0, z.many * z.tk, 1);
    k->gemm_each(p.kv, p.kv, p.g, p.v1, z.many, 2 * z.dh, wide, z.tk, true, false, 1, 0);
    k->gemm_each(p.nd, p.nd, p.f, p.kv, z.many, z.tq, wide, 2 * z.dh, false, false, 1, 0);
    column(k, d, p.nd, z.many * z.tq, z.dh, false);
    k->normalise(d, p.by, NULL, d, z.many * z.tq, 1, false, s->eps * s->eps);
    k->axpby(room, 1, p.nd, 0, z.many * z.tq * wide);
    scale_rows(run, room, p.by, z.many * z.tq, wide);
    core_join(k, t->o, room, wide, heads);
    run->scratch = mark;
}

/* o = N by, by = (D^2 + eps^2)^(-1/2):  to = by (tN - (by^2 D tD) N).  y becomes it, rows of [o, anything], from y = [tN, tD]. */
static void divide_jvp(taut_run *run, taut_real *y, const parts *p, const sizes *z, taut_real *room)
{
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const int64_t rows = z->many * z->tq;
    taut_real *c = taut_take(&run->scratch, rows), *d = taut_take(&run->scratch, rows);
    column(k, c, y, rows, z->dh, false);
    column(k, d, p->nd, rows, z->dh, false);
    k->mul_rows(c, c, d, 1, rows);
    k->mul_rows(c, c, p->by, 1, rows);
    k->mul_rows(c, c, p->by, 1, rows);
    k->axpby(room, 1, p->nd, 0, rows * (z->dh + 1));
    scale_rows(run, room, c, rows, z->dh + 1);
    k->axpby(y, -1, room, 1, rows * (z->dh + 1));
    scale_rows(run, y, p->by, rows, z->dh + 1);
    run->scratch = mark;
}

static void cosformer_jvp(const taut_module *m, taut_run *run, const taut_inside *d, const taut_inside *t,
                          taut_span trace)
{
    const cosformer *s = (const cosformer *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const sizes z = sizes_of(m, t->q.shape, t->k.shape);
    const parts p = take_parts(&trace, &z), e = take_parts(&run->scratch, &z);
    const int64_t heads = s->out.around.heads, most = z.tq > z.tk ? z.tq : z.tk, wide = z.dh + 1;
    taut_real *room = taut_take(&run->scratch, z.many * most * wide);
    core_split(k, e.rq, z.dh, d->q, heads);
    core_split(k, e.rk, z.dh, d->k, heads);
    k->pointwise_slope(e.rq, e.rq, p.rq, TAUT_RELU, z.many * z.tq * z.dh);
    k->pointwise_slope(e.rk, e.rk, p.rk, TAUT_RELU, z.many * z.tk * z.dh);
    turn(s, k, e.f, e.rq, z.many, z.tq, z.dh, room);
    turn(s, k, e.g, e.rk, z.many, z.tk, z.dh, room);
    k->axpby(e.v1, 0, e.v1, 0, z.many * z.tk * wide);
    core_split(k, e.v1, wide, d->v, heads);
    k->gemm_each(e.kv, e.kv, e.g, p.v1, z.many, 2 * z.dh, wide, z.tk, true, false, 1, 0);
    k->gemm_each(e.kv, e.kv, p.g, e.v1, z.many, 2 * z.dh, wide, z.tk, true, false, 1, 1);
    k->gemm_each(e.nd, e.nd, e.f, p.kv, z.many, z.tq, wide, 2 * z.dh, false, false, 1, 0);
    k->gemm_each(e.nd, e.nd, p.f, e.kv, z.many, z.tq, wide, 2 * z.dh, false, false, 1, 1);
    divide_jvp(run, e.nd, &p, &z, room);
    core_join(k, d->o, e.nd, wide, heads);
    run->scratch = mark;
}

/* y = [go, 0] becomes [gN, gD]:  gN = by go,  gD = -by^3 D (go.N) = -by^2 D (gN.N). */
static void divide_vjp(taut_run *run, taut_real *y, const parts *p, const sizes *z)
{
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const int64_t rows = z->many * z->tq, wide = z->dh + 1;
    taut_real *c = taut_take(&run->scratch, rows), *d = taut_take(&run->scratch, rows);
    taut_sum *sum = taut_take_sums(&run->scratch, rows);
    k->dot(sum, y, wide, p->nd, wide, rows, z->dh);
    k->axpby(c, 0, c, 0, rows);
    k->add_sum(c, -1, sum, rows);
    run->scratch = mark;
    taut_take(&run->scratch, 2 * rows);
    column(k, d, p->nd, rows, z->dh, false);
    k->mul_rows(c, c, d, 1, rows);
    for (int i = 0; i < 3; i++) k->mul_rows(c, c, p->by, 1, rows);
    scale_rows(run, y, p->by, rows, wide);
    column(k, c, y, rows, z->dh, true);
    run->scratch = mark;
}

static void cosformer_vjp(const taut_module *m, taut_run *run, const taut_inside *d, const taut_inside *t,
                          taut_span trace)
{
    const cosformer *s = (const cosformer *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const sizes z = sizes_of(m, t->q.shape, t->k.shape);
    const parts p = take_parts(&trace, &z), g = take_parts(&run->scratch, &z);
    const int64_t heads = s->out.around.heads, most = z.tq > z.tk ? z.tq : z.tk, wide = z.dh + 1;
    taut_real *room = taut_take(&run->scratch, z.many * most * wide);
    k->axpby(g.nd, 0, g.nd, 0, z.many * z.tq * wide);
    core_split(k, g.nd, wide, d->o, heads);
    divide_vjp(run, g.nd, &p, &z);
    k->gemm_each(g.f, g.f, g.nd, p.kv, z.many, z.tq, 2 * z.dh, wide, false, true, 1, 0);
    k->gemm_each(g.kv, g.kv, p.f, g.nd, z.many, 2 * z.dh, wide, z.tq, true, false, 1, 0);
    k->gemm_each(g.g, g.g, p.v1, g.kv, z.many, z.tk, 2 * z.dh, wide, false, true, 1, 0);
    k->gemm_each(g.v1, g.v1, p.g, g.kv, z.many, z.tk, wide, 2 * z.dh, false, false, 1, 0);
    turn_back(s, k, g.rq, g.f, z.many, z.tq, z.dh, room);
    turn_back(s, k, g.rk, g.g, z.many, z.tk, z.dh, room);
    k->pointwise_slope(g.rq, g.rq, p.rq, TAUT_RELU, z.many * z.tq * z.dh);
    k->pointwise_slope(g.rk, g.rk, p.rk, TAUT_RELU, z.many * z.tk * z.dh);
    core_join(k, d->q, g.rq, z.dh, heads);
    core_join(k, d->k, g.rk, z.dh, heads);
    core_join(k, d->v, g.v1, wide, heads);
    run->scratch = mark;
}

/* lip of o: sqrt(H) nv + 2 V T (K nq + Q nk)/eps (tokens), sqrt(tq) nv + 2 V (T K nq + sqrt(tq T) Q nk)/eps (flat), n. the norms
 * of the maps, Q, K, V the lengths of their results, T keys. */
static taut_answer cosformer_bound(const taut_module *m, taut_ask in)
{
    const cosformer *s = (const cosformer *)m;
    const taut_qkv *x = &s->out.qkv;
    const int64_t tq = x->queries ? x->queries : in.tokens, tk = in.tokens - x->queries;
    const int64_t dh = x->width / s->out.around.heads;
    const taut_reach q = qkv_reach(x, &x->q, in.ledger, in.size), k = qkv_reach(x, &x->k, in.ledger, in.size),
                     v = qkv_reach(x, &x->v, in.ledger, in.size);
    const taut_up keys = up_int(tk), heads = up_sqrt(up_int(s->out.around.heads)), rows = up_sqrt(up_int(tq));
    const bool flat = in.norm == TAUT_NORM_FLAT;
    const taut_up steep = up_div(up_mul((taut_up){ 2 }, v.size), lo_exact(s->eps));
    const taut_up ask = up_mul(keys, up_mul(k.size, q.norm));
    const taut_up read = up_mul(flat ? up_mul(rows, up_sqrt(keys)) : keys, up_mul(q.size, k.norm));
    const taut_up lip = up_add(up_mul(flat ? rows : heads, v.norm), up_mul(steep, up_add(ask, read)));
    /* errors of q, k and v go through as changes do; sums and waves are wrong by a little of the largest they can be */
    const taut_up all = up_mul(up_mul(keys, q.size), k.size);
    const taut_up come = up_mul(keys, up_add(up_mul(k.size, q.round), up_mul(q.size, k.round)));
    const taut_up sums = up_add((taut_up){ 1 }, up_add(q.size, up_mul(keys, k.size)));
    const taut_up own = up_mul((taut_up){ 8 }, up_add(up_rounded(tk + 2 * dh + 64, all), up_mul(UP_LOST, sums)));
    const taut_up lost = up_div(up_mul(UP_LOST, up_add(sums, all)), lo_exact(s->eps)); /* of products with v */
    const taut_up round = up_add(up_mul(heads, v.round), up_add(up_mul(steep, up_add(come, own)), lost));
    return core_answer(&s->out, in, lip, up_mul(heads, v.size), round);
}

static void cosformer_params(taut_module *m, taut_visitor *v)
{
    qkv_params(&((cosformer *)m)->out.qkv, v);
    taut_visit_constant(v, &((cosformer *)m)->turn);
}

static void cosformer_free(taut_module *m)
{
    taut_constant_free(&((cosformer *)m)->turn);
    free(m);
}

static void cosformer_describe(const taut_module *m, taut_ledger *l)
{
    const cosformer *s = (const cosformer *)m;
    core_describe(&s->out, l);
    ledger_exact(l, "tokens", (double)s->tokens);
    ledger_exact(l, "eps", s->eps);
}

static const taut_core cosformer_core = { cosformer_room, cosformer_forward, cosformer_jvp, cosformer_vjp };
/* A token.  o moves by (dN + V dD) / eps at most, V the longest value: |N| <= V D, sqrt(D^2 + eps^2) is no less than D and eps
 * and is 1-Lipschitz.  Errors of q and k change D by tk (|q'||k| + |q||k'|), and N by V times that.  What slots do is
 * relative to tk |q||k|, or V times that, the most that is added up: waves that became elements times relu(q), and times
 * relu(k), two products.  The root, the division and the last product are relative to o, which is no longer than V. */
static taut_up cosformer_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const cosformer *s = (const cosformer *)m;
    const taut_qkv *w = &s->out.qkv;
    const taut_ask one = strays_token(in);
    const taut_promise *p = in.table;
    const int64_t tk = in.tokens - w->queries, dh = w->inner / s->out.around.heads;
    const taut_up x = taut_longest(in), heads = up_sqrt(up_int(s->out.around.heads)), keys = up_int(tk), unit = { 1 };
    const taut_strayed q = strays_reach(&w->q, one, w->bias, 1, x), k = strays_reach(&w->k, one, w->bias, 1, x);
    const taut_strayed v = strays_reach(&w->v, one, w->bias, 1, x);
    const taut_up qs = strayed_size(q), ks = strayed_size(k), vs = strayed_size(v), all = up_mul(keys, up_mul(qs, ks));
    if (!(s->eps > 0x1p-60)) return UP_NONE;
    const taut_up steep = up_div(up_mul((taut_up){ 2 }, vs), lo_exact(s->eps));
    const double waves = 4 * (promise_rows(p) + 2 * p->unit + 0x1p-40);
    const double products = promise_product(p, tk) + promise_product(p, 2 * dh) + 2 * promise_product_result(p);
    const taut_up own = up_mul((taut_up){ 1.1 * (waves + products) }, all);
    const taut_up come = up_mul(keys, up_add(up_mul(q.wrong, ks), up_mul(qs, k.wrong)));
    const taut_up grown = up_mul(up_add(unit, qs), up_mul(up_add(unit, ks), up_add(unit, vs)));
    const taut_up least = strays_sum(one, UP_ZERO, up_mul(all, grown), tk + 2 * dh, 4 * (double)(dh * dh));
    const taut_up lost = up_div(up_mul(up_mul(up_int(4 * dh), grown), least), lo_exact(s->eps)); /* what underflows */
    const taut_up moved = up_add(up_add(v.wrong, lost), up_mul(steep, up_add(come, own)));
    const double last = promise_normalise(p) + 2 * promise_normalise_sums(1) + promise_axpby(p) + 0x1p-50;
    const taut_up each = up_add(moved, up_mul((taut_up){ 1.1 * last }, up_add(vs, moved)));
    const taut_up wrong = strays_sum(one, up_mul(heads, each), vs, 8, (double)w->inner);
    return strays_out_of(w, in, b->tokens, (taut_strayed){ up_mul(heads, vs), wrong });
}

static const taut_module_ops cosformer_ops = {
    .kind = "cosformer",
    .plan = core_plan,
    .forward = core_forward,
    .jvp = core_jvp,
    .vjp = core_vjp,
    .bound = cosformer_bound,
    .strays = cosformer_strays,
    .params = cosformer_params,
    .describe = cosformer_describe,
    .free = cosformer_free,
};

taut_module *taut_cosformer(const taut_around *around, int64_t tokens, double eps)
{
    TAUT_CHECK(tokens > 0 && eps > 0 && !around->causal, "cosformer: tokens and eps, and no mask");
    const int64_t dh = around->width / around->heads, len = 2 * tokens * dh + 1;
    cosformer *s = taut_malloc(sizeof *s);
    double *wave = taut_malloc((size_t)len * sizeof *wave);
    if (!s || !wave) {
        free(s), free(wave);
        return NULL;
    }
    for (int64_t i = 0; i < tokens * dh; i++) {
        const double u = 1.5707963267948966 * (double)(i / dh) / (double)tokens;
        wave[i] = cos(u);
        wave[tokens * dh + i] = sin(u);
    }
    wave[len - 1] = 1;
    *s = (cosformer){
        cored_of(&cosformer_ops, &cosformer_core, around), tokens, taut_float32(eps), { .len = len, .reals = wave }
    };
    return &s->out.base;
}

static const taut_key cosformer_keys[] = {
    { "cosformer_eps", TAUT_KEY_REAL, 0, 1e-3, 1e-6, 1e6, .help = "beside the sum of weights, which divides" },
};

static taut_module *cosformer_build(const taut_attention_choice *c, const taut_site *s)
{
    const taut_around around = around_of(s);
    return taut_cosformer(&around, s->queries > s->tokens ? s->queries : s->tokens,
                          *(const double *)(const void *)c->own.bytes);
}

const taut_attention_kind taut_kind_cosformer = {
    .name = "cosformer",
    .page = "cosformer",
    .can = TAUT_CAN_CROSS,
    .not_causal = "its sums are over all keys",
    .keys = cosformer_keys,
    .count = sizeof cosformer_keys / sizeof *cosformer_keys,
    .build = cosformer_build,
};
