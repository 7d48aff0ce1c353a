/* Nystromformer: softmax attention through m landmarks, in linear time.  Per head, with
 *     q = W_Q x + b_Q, k = W_K x + b_K, v = W_V x + b_V,     y = out W_O o + b_O
 * and landmarks q~, k~ the means of m runs of queries and of keys, as equally long as can be,
 *     o = F Z (G v),   F = softmax(scale q k~^T),  A = softmax(scale q~ k~^T),  G = softmax(scale q~ k^T),
 * Z is near the pseudo-inverse of A:  Z_0 = A^T/m,  Z' = Z (13 I - A Z (15 I - A Z (7 I - A Z)))/4, `steps` times.
 * The paper begins with A^T / (||A||_1 ||A||_inf), which is at least that and has kinks; two or three more steps make up for it.
 *
 * jvp, vjp  product by product, step by step
 * Bound     Lip +inf: Z is as steep as A is near to singular, and no constant of any use is known.  Region: all
 *           singular values of A Z stay in [0, 1], so a step lengthens Z by 13/4 at most:
 *           |o| <= sqrt(H) (13/4)^steps V, V the length of the values
 * Trace     q, k, v, o; the landmarks, G v, Z G v, A, every Z (as its transpose X), log-sum-exps.
 * Causal masks do not exist: a landmark is a mean over tokens on both sides. */
#include <math.h>
#include <stdlib.h>

#include "base/float32.h"
#include "module/core.h"
#include "module/reach.h"

typedef struct {
    taut_cored out;
    int64_t landmarks;
    int steps;
    taut_constant one; /* the identity, (landmarks, wide) */
} nystrom;

typedef struct {
    int64_t n, heads, many, tq, tk, m, dh, d, wide, square; /* many = heads n; wide = max(m, dh); square = many m m */
} sizes;

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static sizes sizes_of(const nystrom *s, taut_shape q, taut_shape k)
{
    const int64_t heads = s->out.around.heads, few = q.t < k.t ? q.t : k.t, m = few < s->landmarks ? few : s->landmarks;
    const int64_t dh = q.d / heads, many = heads * q.n;
    return (sizes){ q.n, heads, many, q.t, k.t, m, dh, q.d, most(m, dh), many * m * m };
}

/* Primal, tangent or cotangent: landmarks (n, m, d), gv = G v and zgv = Z G v alike; a = A, x = X of one step (many, m, m) */
typedef struct {
    taut_tensor q, k, gv, zgv;
    taut_real *a, *x;
} parts;

static parts take_parts(taut_span *from, const sizes *z, int64_t xs)
{
    const taut_shape few = { z->n, z->m, z->d };
    parts p = { .q = taut_take_tensor(from, few) };
    p.k = taut_take_tensor(from, few);
    p.gv = taut_take_tensor(from, few);
    p.zgv = taut_take_tensor(from, few);
    p.a = taut_take(from, z->square);
    p.x = taut_take(from, xs * z->square);
    return p;
}

static int64_t parts_len(const sizes *z, int64_t xs) { return 4 * z->n * z->m * z->d + (1 + xs) * z->square; }

static taut_attn attn_of(const nystrom *s, const sizes *z, int64_t tq, int64_t tk)
{
    return (taut_attn){ z->n, z->heads, tq, tk, z->dh, s->out.around.scale, 0, 0, 0 };
}
/* A as attention to the identity, each head an example of its own. */
static taut_attn attn_small(const nystrom *s, const sizes *z)
{
    return (taut_attn){ z->many, 1, z->m, z->m, z->wide, s->out.around.scale, 0, 0, 0 };
}

/* Beside parts with two X: six arrays of landmarks `wide` (landmarks and identity, primal and not, A and what
 * it came from), nine squares of the steps, two of values by head, and one of tokens and one of landmarks for means. */
static taut_core_room nystrom_room(const taut_module *m, taut_shape q, taut_shape k)
{
    const nystrom *s = (const nystrom *)m;
    const sizes z = sizes_of(s, q, k);
    return (taut_core_room){ parts_len(&z, s->steps + 1) + z.many * (2 * z.m + z.tq),
                             parts_len(&z, 2) + 9 * z.many * z.m * z.wide + 9 * z.square + 3 * z.n * z.m * z.d +
                                 most(z.tq, z.tk) * z.n * z.d + 2 * z.many * z.m };
}

/* y (n, m, d) = means over runs of tokens; with `back` x += its transpose applied to y.  The first t % m runs are longer by 1:
 * they are brought together, and then the others. */
static void means(taut_run *run, taut_real *y, taut_real *x, taut_shape in, int64_t m, bool back)
{
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const int64_t longer = in.t % m;
    const taut_factor one = { 1, NULL };
    if (!longer && !back) {
        k->mean_tokens(y, x, in.n * m, in.t / m, in.d);
        return;
    }
    taut_real *tokens = taut_take(&run->scratch, taut_len(in)), *marks = taut_take(&run->scratch, in.n * m * in.d);
    for (int more = longer > 0; more >= 0; more--) {
        const int64_t len = in.t / m + more, count = more ? longer : m - longer, runs = count * in.d, all = len * runs;
        taut_real *few = taut_at(k, y, more ? 0 : longer * in.d), *many = taut_at(k, x, more ? 0 : in.t * in.d - all);
        if (back) {
            k->copy_rows(marks, runs, few, m * in.d, in.n, runs);
            k->spread_tokens(tokens, marks, in.n * count, len, in.d);
            k->axpby_by(many, in.t * in.d, one, tokens, all, one, in.n, all);
            continue;
        }
        k->copy_rows(tokens, all, many, in.t * in.d, in.n, all);
        k->mean_tokens(marks, tokens, in.n * count, len, in.d);
        k->copy_rows(few, m * in.d, marks, runs, in.n, runs);
    }
    run->scratch = mark;
}

/* many identities (m, wide), one behind the other */
static void identities(const nystrom *s, const taut_kernels *k, const sizes *z, taut_real *to)
{
    const int64_t wide = most(s->landmarks, z->dh), rows = z->m == s->landmarks ? z->m : 1;
    for (int64_t i = 0; i < z->m; i += rows)
        k->copy_rows(taut_at(k, to, i * z->wide), z->m * z->wide, taut_at(k, s->one.there, i * wide), 0, z->many,
                     rows * z->wide);
}

static void pad(const taut_kernels *k, const sizes *z, taut_real *to, taut_tensor x)
{
    k->axpby(to, 0, to, 0, z->many * z->m * z->wide);
    core_split(k, to, z->wide, x, z->heads);
}

/* What A is made of, and the squares that a step needs. */
typedef struct {
    taut_real *q, *k, *one, *a; /* (many, m, wide) */
    taut_real *unit, *b, *c1, *c2, *c3;
} small;

static small take_small(const nystrom *s, const taut_kernels *k, taut_span *from, const sizes *z, const parts *p)
{
    small w;
    taut_real **const wide[] = { &w.q, &w.k, &w.one, &w.a }, **const square[] = { &w.unit, &w.b, &w.c1, &w.c2, &w.c3 };
    for (int i = 0; i < 4; i++) *wide[i] = taut_take(from, z->many * z->m * z->wide);
    for (int i = 0; i < 5; i++) *square[i] = taut_take(from, z->square);
    pad(k, z, w.q, p->q);
    pad(k, z, w.k, p->k);
    identities(s, k, z, w.one);
    k->copy_rows(w.unit, z->m, w.one, z->wide, z->many * z->m, z->m);
    return w;
}

/* c = alpha op(a) op(b) + beta p, for all squares */
static void times(const taut_kernels *k, const sizes *z, taut_real *c, const taut_real *p, const taut_real *a, bool ta,
                  const taut_real *b, bool tb, double alpha, double beta)
{
    k->gemm_each(c, p, a, b, z->many, z->m, z->m, z->m, ta, tb, alpha, beta);
}

/* B = A X^T, C1 = 7 I - B, C2 = 15 I - B C1, C3 = 13 I - B C2;  the next X is C3^T X / 4 */
static void prepare(const taut_kernels *k, const sizes *z, const small *w, const taut_real *a, const taut_real *x)
{
    times(k, z, w->b, w->b, a, false, x, true, 1, 0);
    times(k, z, w->c1, w->unit, a, false, x, true, -1, 7);
    times(k, z, w->c2, w->unit, w->b, false, w->c1, false, -1, 15);
    times(k, z, w->c3, w->unit, w->b, false, w->c2, false, -1, 13);
}

static taut_real *x_at(const taut_kernels *k, const sizes *z, const parts *p, int i)
{
    return taut_at(k, p->x, i * z->square);
}

/* to (n, m, d) = Z from, Z = X^T, or with `back` X from; head by head */
static void apply(taut_run *run, const sizes *z, taut_tensor to, const taut_real *x, taut_tensor from, bool back,
                  double beta)
{
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    taut_real *a = taut_take(&run->scratch, z->n * z->m * z->d), *b = taut_take(&run->scratch, z->n * z->m * z->d);
    core_split(k, a, z->dh, from, z->heads);
    if (beta != 0) core_split(k, b, z->dh, to, z->heads);
    k->gemm_each(b, b, x, a, z->many, z->m, z->dh, z->m, !back, false, 1, beta);
    core_join(k, to, b, z->dh, z->heads);
    run->scratch = mark;
}

static void nystrom_forward(const taut_module *m, taut_run *run, const taut_inside *t, taut_span trace)
{
    const nystrom *s = (const nystrom *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const sizes z = sizes_of(s, t->q.shape, t->k.shape);
    const parts p = take_parts(&trace, &z, s->steps + 1);
    taut_real *lg = taut_take(&trace, z.many * z.m), *la = taut_take(&trace, z.many * z.m);
    taut_real *lf = taut_take(&trace, z.many * z.tq);
    const taut_attn g = attn_of(s, &z, z.m, z.tk), f = attn_of(s, &z, z.tq, z.m), a = attn_small(s, &z);
    means(run, p.q.data, t->q.data, t->q.shape, z.m, false);
    means(run, p.k.data, t->k.data, t->k.shape, z.m, false);
    k->attention(p.gv.data, lg, p.q.data, t->k.data, t->v.data, &g);
    const small w = take_small(s, k, &run->scratch, &z, &p);
    k->attention(w.a, la, w.q, w.k, w.one, &a);
    k->copy_rows(p.a, z.m, w.a, z.wide, z.many * z.m, z.m);
    k->axpby(p.x, 1 / (double)z.m, p.a, 0, z.square);
    for (int i = 0; i < s->steps; i++) {
        prepare(k, &z, &w, p.a, x_at(k, &z, &p, i));
        times(k, &z, x_at(k, &z, &p, i + 1), p.a, w.c3, true, x_at(k, &z, &p, i), false, 0.25, 0);
    }
    apply(run, &z, p.zgv, x_at(k, &z, &p, s->steps), p.gv, false, 0);
    k->attention(t->o.data, lf, t->q.data, p.k.data, p.zgv.data, &f);
    run->scratch = mark;
}

/* The next tangent of X, into `next`, from ta and tx; room: three squares. */
static void step_jvp(const taut_kernels *k, const sizes *z, const small *w, const taut_real *a, const taut_real *x,
                     taut_real *next, const taut_real *ta, const taut_real *tx, taut_real *const room[3])
{
    taut_real *tb = room[0], *c2 = room[1], *c3 = room[2];
    prepare(k, z, w, a, x);
    times(k, z, tb, tb, ta, false, x, true, 1, 0);
    times(k, z, tb, tb, a, false, tx, true, 1, 1);
    times(k, z, c2, c2, tb, false, w->c1, false, -1, 0);
    times(k, z, c2, c2, w->b, false, tb, false, 1, 1);
    times(k, z, c3, c3, tb, false, w->c2, false, -1, 0);
    times(k, z, c3, c3, w->b, false, c2, false, -1, 1);
    times(k, z, next, next, c3, true, x, false, 0.25, 0);
    times(k, z, next, next, w->c3, true, tx, false, 0.25, 1);
}

static void nystrom_jvp(const taut_module *m, taut_run *run, const taut_inside *d, const taut_inside *t,
                        taut_span trace)
{
    const nystrom *s = (const nystrom *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const sizes z = sizes_of(s, t->q.shape, t->k.shape);
    const parts p = take_parts(&trace, &z, s->steps + 1), e = take_parts(&run->scratch, &z, 2);
    const taut_attn g = attn_of(s, &z, z.m, z.tk), f = attn_of(s, &z, z.tq, z.m), a = attn_small(s, &z);
    const small w = take_small(s, k, &run->scratch, &z, &p);
    const int64_t len = z.many * z.m * z.wide;
    taut_real *tq = taut_take(&run->scratch, len), *tk = taut_take(&run->scratch, len), *room[3];
    for (int i = 0; i < 3; i++) room[i] = taut_take(&run->scratch, z.square);
    means(run, e.q.data, d->q.data, d->q.shape, z.m, false);
    means(run, e.k.data, d->k.data, d->k.shape, z.m, false);
    k->attention_jvp(e.gv.data, e.q.data, d->k.data, d->v.data, p.q.data, t->k.data, t->v.data, &g);
    pad(k, &z, tq, e.q);
    pad(k, &z, tk, e.k);
    taut_real *zero = taut_take(&run->scratch, len);
    k->axpby(zero, 0, zero, 0, len);
    k->attention_jvp(w.a, tq, tk, zero, w.q, w.k, w.one, &a);
    k->copy_rows(e.a, z.m, w.a, z.wide, z.many * z.m, z.m);
    taut_real *now = e.x, *next = taut_at(k, e.x, z.square);
    k->axpby(now, 1 / (double)z.m, e.a, 0, z.square);
    for (int i = 0; i < s->steps; i++) {
        step_jvp(k, &z, &w, p.a, x_at(k, &z, &p, i), next, e.a, now, room);
        taut_real *other = now;
        now = next, next = other;
    }
    apply(run, &z, e.zgv, now, p.gv, false, 0);
    apply(run, &z, e.zgv, x_at(k, &z, &p, s->steps), e.gv, false, 1);
    k->attention_jvp(d->o.data, d->q.data, e.k.data, e.zgv.data, t->q.data, p.k.data, p.zgv.data, &f);
    run->scratch = mark;
}

/* From the cotangent gx of the next X to that of X, into `before`; ga += that of A.  room: two squares. */
static void step_vjp(const taut_kernels *k, const sizes *z, const small *w, const taut_real *a, const taut_real *x,
                     taut_real *before, taut_real *ga, const taut_real *gx, taut_real *const room[3])
{
    taut_real *gc = room[0], *gb = room[1], *g2 = room[2];
    prepare(k, z, w, a, x);
    times(k, z, before, before, w->c3, false, gx, false, 0.25, 0);
    times(k, z, gc, gc, x, false, gx, true, 0.25, 0);
    times(k, z, gb, gb, gc, false, w->c2, true, -1, 0);
    times(k, z, g2, g2, w->b, true, gc, false, -1, 0);
    times(k, z, gb, gb, g2, false, w->c1, true, -1, 1);
    times(k, z, gb, gb, w->b, true, g2, false, 1, 1); /* through C1 = 7 I - B */
    times(k, z, ga, ga, gb, false, x, false, 1, 1);
    times(k, z, before, before, gb, true, a, false, 1, 1);
}

/* gX from those of Z G v:  (Z G v)_h = X^T (G v)_h, so gX = (G v) (its cotangent)^T. */
static void cotangent_x(taut_run *run, const sizes *z, taut_real *gx, taut_tensor gv, taut_tensor g)
{
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    taut_real *a = taut_take(&run->scratch, z->n * z->m * z->d), *b = taut_take(&run->scratch, z->n * z->m * z->d);
    core_split(k, a, z->dh, gv, z->heads);
    core_split(k, b, z->dh, g, z->heads);
    k->gemm_each(gx, gx, a, b, z->many, z->m, z->m, z->dh, false, true, 1, 0);
    run->scratch = mark;
}

/* A's cotangent to those of the landmarks, which are added to. */
static void matrix_vjp(const nystrom *s, taut_run *run, const sizes *z, const small *w, const parts *p, const parts *g,
                       const taut_real *la)
{
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const taut_attn a = attn_small(s, z);
    const int64_t len = z->many * z->m * z->wide;
    taut_real *ga = taut_take(&run->scratch, len), *gq = taut_take(&run->scratch, len);
    taut_real *gk = taut_take(&run->scratch, len), *gone = taut_take(&run->scratch, len);
    k->axpby(w->a, 0, w->a, 0, len);
    k->axpby(ga, 0, ga, 0, len);
    k->copy_rows(w->a, z->wide, p->a, z->m, z->many * z->m, z->m);
    k->copy_rows(ga, z->wide, g->a, z->m, z->many * z->m, z->m);
    k->attention_vjp(gq, gk, gone, ga, w->a, la, w->q, w->k, w->one, &a);
    const taut_tensor q = { ga, g->q.shape }, kk = { gone, g->k.shape }; /* what is no longer needed is room */
    core_join(k, q, gq, z->wide, z->heads);
    core_join(k, kk, gk, z->wide, z->heads);
    k->axpby(g->q.data, 1, q.data, 1, taut_len(q.shape));
    k->axpby(g->k.data, 1, kk.data, 1, taut_len(kk.shape));
    run->scratch = mark;
}

static void nystrom_vjp(const taut_module *m, taut_run *run, const taut_inside *d, const taut_inside *t,
                        taut_span trace)
{
    const nystrom *s = (const nystrom *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const sizes z = sizes_of(s, t->q.shape, t->k.shape);
    const parts p = take_parts(&trace, &z, s->steps + 1), g = take_parts(&run->scratch, &z, 2);
    const taut_real *lg = taut_take(&trace, z.many * z.m), *la = taut_take(&trace, z.many * z.m);
    const taut_real *lf = taut_take(&trace, z.many * z.tq);
    const taut_attn first = attn_of(s, &z, z.m, z.tk), last = attn_of(s, &z, z.tq, z.m);
    const small w = take_small(s, k, &run->scratch, &z, &p);
    taut_real *room[3], *now = g.x, *before = taut_at(k, g.x, z.square);
    for (int i = 0; i < 3; i++) room[i] = taut_take(&run->scratch, z.square);
    k->attention_vjp(d->q.data, g.k.data, g.zgv.data, d->o.data, t->o.data, lf, t->q.data, p.k.data, p.zgv.data, &last);
    cotangent_x(run, &z, now, p.gv, g.zgv);
    apply(run, &z, g.gv, x_at(k, &z, &p, s->steps), g.zgv, true, 0);
    k->axpby(g.a, 0, g.a, 0, z.square);
    for (int i = s->steps; i-- > 0;) {
        step_vjp(k, &z, &w, p.a, x_at(k, &z, &p, i), before, g.a, now, room);
        taut_real *other = now;
        now = before, before = other;
    }
    k->axpby(g.a, 1 / (double)z.m, now, 1, z.square);
    k->attention_vjp(g.q.data, d->k.data, d->v.data, g.gv.data, p.gv.data, lg, p.q.data, t->k.data, t->v.data, &first);
    matrix_vjp(s, run, &z, &w, &p, &g, la);
    means(run, g.q.data, d->q.data, d->q.shape, z.m, true);
    means(run, g.k.data, d->k.data, d->k.shape, z.m, true);
    run->scratch = mark;
}

static taut_answer nystrom_bound(const taut_module *m, taut_ask in)
{
    const nystrom *s = (const nystrom *)m;
    const taut_qkv *x = &s->out.qkv;
    taut_up size = up_mul(up_sqrt(up_int(s->out.around.heads)), qkv_reach(x, &x->v, in.ledger, in.size).size);
    for (int i = 0; i < s->steps; i++) size = up_mul((taut_up){ 3.25 }, size);
    ledger_word(in.ledger, "reason", "the inverse of the landmarks' attention is as steep as that is near to singular");
    taut_answer b = core_answer(&s->out, in, UP_NONE, up_mul(size, (taut_up){ 1 + 0x1p-20 }), UP_ZERO);
    b.round = UP_NONE;
    return b;
}

static void nystrom_params(taut_module *m, taut_visitor *v)
{
    qkv_params(&((nystrom *)m)->out.qkv, v);
    taut_visit_constant(v, &((nystrom *)m)->one);
}

static void nystrom_free(taut_module *m)
{
    taut_constant_free(&((nystrom *)m)->one);
    free(m);
}

static void nystrom_describe(const taut_module *m, taut_ledger *l)
{
    const nystrom *s = (const nystrom *)m;
    core_describe(&s->out, l);
    ledger_exact(l, "scale", s->out.around.scale);
    ledger_exact(l, "landmarks", (double)s->landmarks);
    ledger_exact(l, "steps", s->steps);
}

static const taut_core nystrom_core = { nystrom_room, nystrom_forward, nystrom_jvp, nystrom_vjp };
static const taut_module_ops nystrom_ops = {
    .kind = "nystrom",
    .plan = core_plan,
    .forward = core_forward,
    .jvp = core_jvp,
    .vjp = core_vjp,
    .bound = nystrom_bound,
    .params = nystrom_params,
    .describe = nystrom_describe,
    .free = nystrom_free,
};

taut_module *taut_nystrom(const taut_around *around, int64_t landmarks, int steps)
{
    TAUT_CHECK(landmarks > 0 && steps >= 0 && !around->causal, "nystrom: landmarks and steps, and no mask");
    const int64_t wide = most(landmarks, around->width / around->heads), len = landmarks * wide;
    nystrom *s = taut_malloc(sizeof *s);
    double *one = taut_calloc((size_t)len, sizeof *one);
    if (!s || !one) {
        free(s), free(one);
        return NULL;
    }
    for (int64_t i = 0; i < landmarks; i++) one[i * wide + i] = 1;
    *s = (nystrom){ cored_of(&nystrom_ops, &nystrom_core, around), landmarks, steps, { .len = len, .reals = one } };
    return &s->out.base;
}
