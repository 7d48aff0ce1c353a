/* How far a table of floats strays from attention: token by token, all norms here are a token's, or those of a head of it. */
#ifndef TAUT_MODULE_STRAYS_ATTENTION_H
#define TAUT_MODULE_STRAYS_ATTENTION_H
#include "module/qkv.h"
#include "module/strays.h"

/* A vector: how long it is in real numbers, and how wrong it is computed. */
typedef struct {
    taut_up size, wrong;
} taut_strayed;

static inline taut_up strayed_size(taut_strayed v) { return up_add(v.size, v.wrong); }

static inline taut_ask strays_token(taut_ask in)
{
    in.norm = TAUT_NORM_TOKENS;
    return in;
}

/* factor W x + b for |x| <= x */
static inline taut_strayed strays_reach(const taut_affine *a, taut_ask one, bool bias, double factor, taut_up x)
{
    const double *w = taut_ref_values(&a->weight), *b = bias ? taut_ref_values(&a->bias) : NULL;
    const int64_t rows = a->weight.rows, cols = a->weight.cols;
    const taut_up linear = up_mul(up_mul(up_exact(factor), up_norm(w, rows, cols)), x);
    const taut_up size = up_add(linear, b ? up_norm_frobenius(b, rows) : UP_ZERO);
    return (taut_strayed){ size, strays_affine(one, w, b, rows, cols, factor, x, size) };
}

/* scale q.k, because q and k are wrong; not what the slot adds */
static inline taut_up strays_logit(taut_up scale, taut_strayed q, taut_strayed k)
{
    return up_mul(scale, up_add(up_mul(q.wrong, strayed_size(k)), up_mul(q.size, k.wrong)));
}

/* The mean of values no longer than v, no number of them above `most`.  Logits are off by ds because of what went in, and by
 * `slot` of the slot's own.  A mean with weights that are off by factors within exp(+-2 ds) is off by exp(2 ds) - 1 of the
 * longest value, 2 ds + 4 ds^2 at most where ds is small.  A promise of the slot is entry by entry, of the largest entry of
 * a column: sqrt(dh), or sqrt(tk), times the longest value. */
static inline taut_up strays_mean(taut_ask one, taut_up ds, taut_up slot, taut_up v, taut_up most, int64_t tk,
                                  int64_t dh)
{
    /* here the formulas end, and so does all use of the answer */
    if (!(ds.v < 0.25 && slot.v < 0x1p-6) || (one.table->device && !(most.v < 0x1p30))) return UP_NONE;
    const taut_up moved = up_mul((taut_up){ 2 }, up_add(ds, up_mul((taut_up){ 2 }, up_mul(ds, ds))));
    const taut_up own = up_add(up_mul((taut_up){ 2 }, slot), (taut_up){ promise_attention_mean(one.table, tk) });
    const taut_up spread = up_sqrt(up_int(tk < dh && !one.table->device ? tk : dh));
    return up_add(up_mul(moved, v), up_mul(up_mul(own, spread), most));
}

/* y = out W_O o + b_O where the heads' means o are wrong; in the norm of the question, which has `tokens` tokens of y. */
static inline taut_up strays_out_of(const taut_qkv *s, taut_ask in, int64_t tokens, taut_strayed o)
{
    const taut_up norm = up_norm(taut_ref_values(&s->o.weight), s->width, s->inner);
    const taut_up last = strays_reach(&s->o, strays_token(in), s->bias, s->out, strayed_size(o)).wrong;
    in.tokens = tokens;
    return up_mul(strays_root(in), up_add(up_mul(up_mul(up_exact(s->out), norm), o.wrong), last));
}

typedef struct {
    int64_t heads, tk;
    double scale;
    bool rope, alibi;
} taut_strays_logits;

/* Softmax attention. */
static inline taut_up strays_softmax(const taut_qkv *s, taut_ask in, int64_t tokens, taut_strays_logits a)
{
    const taut_ask one = strays_token(in);
    const int64_t dh = s->inner / a.heads;
    if (s->bare) return UP_NONE; /* the weights are somebody else's */
    const taut_up x = taut_longest(in), heads = up_sqrt(up_int(a.heads)), scale = up_exact(a.scale);
    taut_strayed q = strays_reach(&s->q, one, s->bias, 1, x), k = strays_reach(&s->k, one, s->bias, 1, x);
    const taut_strayed v = strays_reach(&s->v, one, s->bias, 1, x);
    const taut_up turn = { a.rope ? 2 * promise_rope(in.table, in.tokens) : 0 };
    q.wrong = up_add(q.wrong, up_mul(turn, strayed_size(q)));
    k.wrong = up_add(k.wrong, up_mul(turn, strayed_size(k)));
    const taut_up alibi = { a.alibi ? promise_alibi(in.table) * (double)in.tokens : 0 };
    const taut_up product = up_mul(scale, up_mul(strayed_size(q), strayed_size(k)));
    const taut_up slot = up_add(up_mul((taut_up){ promise_logit(in.table, dh) }, product), alibi);
    const taut_up vs = strayed_size(v), each = strays_mean(one, strays_logit(scale, q, k), slot, vs, vs, a.tk, dh);
    const taut_up wrong = strays_sum(one, up_mul(heads, up_add(v.wrong, each)), vs, a.tk, (double)s->inner);
    return strays_out_of(s, in, tokens, (taut_strayed){ up_mul(heads, vs), wrong });
}
#endif
