/* The outside of an attention: queries, keys and values as affine maps of one input, and the way out.
 *     q = W_Q x + b_Q, k = W_K x + b_K, v = W_V x + b_V,     y = out W_O o + b_O
 * With `queries` = m the first m tokens ask and the others are read.  Bare: y = o, and the weights are somebody else's. */
#ifndef TAUT_MODULE_QKV_H
#define TAUT_MODULE_QKV_H
#include "base/float32.h"
#include "module/leaf.h"

typedef struct {
    taut_param weight, bias;
} taut_affine;

typedef struct {
    int64_t width, inner, queries; /* inner: features of all heads together, width unless bare */
    bool bias, bare;
    double out;
    taut_affine q, k, v, o;
} taut_qkv;

/* tokens of a tangent, cotangent or primal on the inside; xq and xk are x itself in self-attention */
typedef struct {
    taut_tensor q, k, v, o, xq, xk;
} taut_inside;

static inline taut_affine qkv_affine(const char *weight, const char *bias, int64_t d, taut_init init, double gain)
{
    return (
        taut_affine){ { .name = weight, .rows = d, .cols = d, .init = gain == 0 ? TAUT_INIT_ZERO : init, .gain = gain },
                      { .name = bias, .rows = 1, .cols = d, .role = TAUT_VECTOR } };
}

static inline taut_qkv qkv_of(int64_t width, int64_t queries, bool bias, double out, taut_init init, double gain,
                              double out_gain)
{
    return (taut_qkv){ width,
                       width,
                       queries,
                       bias,
                       false,
                       taut_float32(out),
                       qkv_affine("q.weight", "q.bias", width, init, gain),
                       qkv_affine("k.weight", "k.bias", width, init, gain),
                       qkv_affine("v.weight", "v.bias", width, init, gain),
                       qkv_affine("o.weight", "o.bias", width, init, out_gain) };
}

/* What the maps called q, k and v inside are called outside: three letters. */
static inline void qkv_name(taut_qkv *s, const char *role)
{
    static const char *const name[][2] = { { "q.weight", "q.bias" },
                                           { "k.weight", "k.bias" },
                                           { "v.weight", "v.bias" } };
    taut_affine *const all[] = { &s->q, &s->k, &s->v };
    for (int i = 0; i < 3; i++) {
        const int at = role[i] == 'q' ? 0 : role[i] == 'k' ? 1 : 2;
        all[i]->weight.name = name[at][0];
        all[i]->bias.name = name[at][1];
    }
}

static inline void qkv_params(taut_qkv *s, taut_visitor *v)
{
    taut_affine *all[] = { &s->q, &s->k, &s->v, &s->o };
    for (int i = 0; i < 4 && !s->bare; i++) {
        taut_visit_param(v, &all[i]->weight);
        if (s->bias) taut_visit_param(v, &all[i]->bias);
    }
}

static inline taut_shape qkv_queries(const taut_qkv *s, taut_shape in)
{
    return (taut_shape){ in.n, s->queries ? s->queries : in.t, s->inner };
}

static inline taut_shape qkv_keys(const taut_qkv *s, taut_shape in)
{
    return (taut_shape){ in.n, in.t - s->queries, s->inner };
}

/* Elements that qkv_take takes. */
static inline int64_t qkv_room(const taut_qkv *s, taut_shape in)
{
    return 2 * taut_len(qkv_queries(s, in)) + 2 * taut_len(qkv_keys(s, in)) + (s->queries ? taut_len(in) : 0);
}

static inline taut_inside qkv_take(const taut_qkv *s, taut_span *from, taut_tensor x)
{
    const taut_shape sq = qkv_queries(s, x.shape), sk = qkv_keys(s, x.shape);
    taut_inside t = { .xq = x, .xk = x };
    t.q = taut_take_tensor(from, sq);
    t.k = taut_take_tensor(from, sk);
    t.v = taut_take_tensor(from, sk);
    t.o = taut_take_tensor(from, sq);
    if (!s->queries) return t;
    t.xq = taut_take_tensor(from, (taut_shape){ sq.n, sq.t, s->width });
    t.xk = taut_take_tensor(from, (taut_shape){ sk.n, sk.t, s->width });
    return t;
}

/* y = factor W x, then + b where it is wanted */
static inline void qkv_apply(const taut_qkv *s, const taut_kernels *k, taut_tensor y, const taut_affine *a,
                             taut_tensor x, double factor, bool bias)
{
    k->affine(y.data, x.data, a->weight.value, bias && s->bias ? a->bias.value : NULL, taut_rows(x.shape), y.shape.d,
              x.shape.d, factor);
}

/* y from o; a tangent goes the same way without the bias */
static inline void qkv_out(const taut_qkv *s, const taut_kernels *k, taut_tensor y, taut_tensor o, bool bias)
{
    if (s->bare)
        k->axpby(y.data, 1, o.data, 0, taut_len(o.shape));
    else
        qkv_apply(s, k, y, &s->o, o, s->out, bias);
}

/* Rotations of queries and keys by their positions (RoPE), back with sign -1; base 0: none. */
static inline void qkv_turn(const taut_kernels *k, const taut_inside *t, int64_t heads, double base, double sign)
{
    const taut_tensor both[] = { t->q, t->k };
    for (int i = 0; base > 0 && i < 2; i++)
        k->rope(both[i].data, both[i].data, taut_rows(both[i].shape), both[i].shape.t, heads, both[i].shape.d / heads,
                base, sign);
}

/* q, k, v of t from x; tangents go the same way without biases */
static inline void qkv_enter(const taut_qkv *s, const taut_kernels *k, const taut_inside *t, taut_tensor x, bool bias)
{
    const int64_t all = x.shape.t * x.shape.d, part = t->xq.shape.t * x.shape.d;
    if (s->queries) {
        k->copy_rows(t->xq.data, part, x.data, all, x.shape.n, part);
        k->copy_rows(t->xk.data, all - part, taut_at(k, x.data, part), all, x.shape.n, all - part);
    }
    qkv_apply(s, k, t->q, &s->q, t->xq, 1, bias);
    qkv_apply(s, k, t->k, &s->k, t->xk, 1, bias);
    qkv_apply(s, k, t->v, &s->v, t->xk, 1, bias);
}

/* gx = factor W^T gy (added when `more`), and the gradients of W and b */
static inline void qkv_back(const taut_qkv *s, const taut_run *run, taut_tensor gx, bool more, taut_tensor gy,
                            const taut_affine *a, taut_tensor x, double factor)
{
    const int64_t in = gx.shape.d, out = gy.shape.d, rows = taut_rows(gy.shape);
    run->k->gemm(gx.data, gy.data, a->weight.value, rows, in, out, false, false, factor, more ? 1 : 0);
    if (!run->param_grads || s->bare) return;
    run->k->gemm(a->weight.grad, gy.data, x.data, out, in, rows, true, false, factor, 1);
    if (s->bias) run->k->sum_rows(a->bias.grad, gy.data, rows, out, 1);
}

/* The cotangent of o from gy, and the gradients of the way out */
static inline void qkv_out_back(const taut_qkv *s, const taut_run *run, taut_tensor go, taut_tensor gy, taut_tensor o)
{
    if (s->bare)
        run->k->axpby(go.data, 1, gy.data, 0, taut_len(gy.shape));
    else
        qkv_back(s, run, go, false, gy, &s->o, o, s->out);
}

/* From cotangents of q, k, v in g to gx, which has the shape of x. */
static inline void qkv_leave(const taut_qkv *s, const taut_run *run, taut_tensor gx, const taut_inside *g,
                             const taut_inside *t)
{
    qkv_back(s, run, g->xq, false, g->q, &s->q, t->xq, 1);
    qkv_back(s, run, g->xk, !s->queries, g->k, &s->k, t->xk, 1);
    qkv_back(s, run, g->xk, true, g->v, &s->v, t->xk, 1);
    if (!s->queries) return;
    const int64_t all = gx.shape.t * gx.shape.d, part = g->xq.shape.t * gx.shape.d;
    run->k->copy_rows(gx.data, all, g->xq.data, part, gx.shape.n, part);
    run->k->copy_rows(taut_at(run->k, gx.data, part), all, g->xk.data, all - part, gx.shape.n, all - part);
}
#endif
