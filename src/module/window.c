/* Attention in windows: softmax attention of every token to its neighbourhood, and to a few global tokens (Longformer).
 *     q = W_Q x + b_Q, k = W_K x + b_K, v = W_V x + b_V,     y = out W_O o + b_O
 *     o_i = softmax(scale q_i.k_j) v over the keys j that i sees, per head
 * The first `global` tokens see everybody and are seen by everybody.  The others stand in blocks of `size`, in their
 * order, the last one shorter: a token sees the global ones, its own block, the one before and the one after it.
 * Causal: of all these only the keys that are not behind i.
 *
 * jvp, vjp  the kernel's, piece by piece: runs of blocks of one shape are examples of one call
 * Bound     bound/attention.c: masked keys have P_ij = 0, so the constants of rows are those of softmax attention.  flat:
 *           a key is met by min(t, 3 size) rows (causal 2 size; with global tokens t), of which each sees at
 *           least min(t, size + 1 + global) keys (causal 1)
 * Trace     q, k, v, o, the rows' log-sum-exp. */
#include "bound/rounding.h"
#include "module/core.h"
#include "module/strays_attention.h"

typedef struct {
    taut_cored out;
    int64_t size, global;
} windowed;

enum { AT_ONCE = 4096 }; /* tokens of a call: what is gathered for it does not grow with the input */

/* `count` blocks of one shape, one behind the other.  Each asks with `queries` tokens, the first block from token `first`
 * on, and reads the first `extra` tokens and `keys` more, the first block from token `key` on. */
typedef struct {
    int64_t first, count, queries, key, keys, extra;
    int64_t next; /* the block behind them; -1: the global tokens' turn comes first */
} piece;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t globals(const windowed *s, int64_t t) { return least(s->global, t); }

static piece block_at(const windowed *s, int64_t t, int64_t b)
{
    const int64_t g = globals(s, t), w = s->size, rest = t - g;
    const int64_t from = b > 0 ? (b - 1) * w : 0, to = least(rest, (b + (s->out.around.causal ? 1 : 2)) * w);
    return (piece){ g + b * w, 1, least(w, rest - b * w), g + from, to - from, g, b + 1 };
}

static piece before_all(const windowed *s) { return (piece){ .next = s->global > 0 ? -1 : 0 }; }

static bool next_piece(const windowed *s, int64_t t, piece *p)
{
    const int64_t g = globals(s, t), w = s->size, blocks = (t - g + w - 1) / w;
    if (p->next < 0) {
        *p = (piece){ 0, 1, g, 0, s->out.around.causal ? g : t, 0, 0 };
        return true;
    }
    if (p->next >= blocks) return false;
    *p = block_at(s, t, p->next);
    for (; p->next < blocks && p->count * w < AT_ONCE; p->next++, p->count++) {
        const piece more = block_at(s, t, p->next);
        if (more.queries != p->queries || more.keys != p->keys || more.key != p->key + p->count * w) break;
    }
    return true;
}

static int64_t queries_len(const piece *p, taut_shape in) { return in.n * p->count * p->queries * in.d; }
static int64_t keys_len(const piece *p, taut_shape in) { return in.n * p->count * (p->extra + p->keys) * in.d; }

/* Copies of the global tokens and their means. */
static int64_t room_len(const piece *p, taut_shape in) { return in.n * (p->count + 1) * p->extra * in.d; }

static taut_core_room window_room(const taut_module *m, taut_shape q, taut_shape k)
{
    const windowed *s = (const windowed *)m;
    int64_t most = 0;
    (void)k;
    for (piece p = before_all(s); next_piece(s, q.t, &p);) {
        const int64_t all = 4 * (queries_len(&p, q) + keys_len(&p, q)) + room_len(&p, q);
        most = all > most ? all : most;
    }
    return (taut_core_room){ q.n * s->out.around.heads * q.t, most };
}

/* The queries of a piece together; and back, with `back`. */
static void move_queries(const taut_kernels *k, taut_real *to, taut_tensor x, const piece *p, bool back)
{
    const int64_t len = p->count * p->queries * x.shape.d, all = x.shape.t * x.shape.d;
    taut_real *there = taut_at(k, x.data, p->first * x.shape.d);
    if (back)
        k->copy_rows(there, all, to, len, x.shape.n, len);
    else
        k->copy_rows(to, len, there, all, x.shape.n, len);
}

/* How the blocks of all examples are walked: the examples of one block at once, or the blocks of one example, whichever takes
 * fewer calls.  How far it is from a call or row to the next, among the blocks, the tokens, and the global tokens. */
typedef struct {
    int64_t calls, rows;
    struct {
        int64_t call, row;
    } block, token, global;
} walk;

static walk walk_of(const windowed *s, taut_shape in, const piece *p)
{
    const int64_t far = in.t * in.d, each = (p->extra + p->keys) * in.d, next = s->size * in.d;
    if (p->count < in.n) return (walk){ p->count, in.n, { each, p->count * each }, { next, far }, { 0, far } };
    return (walk){ in.n, p->count, { p->count * each, each }, { far, next }, { far, 0 } };
}

/* What the blocks of a piece read: keys or values. */
static void gather(const taut_kernels *k, const windowed *s, taut_real *to, taut_tensor x, const piece *p)
{
    const int64_t d = x.shape.d;
    const walk w = walk_of(s, x.shape, p);
    for (int64_t i = 0; i < w.calls; i++) {
        taut_real *y = taut_at(k, to, i * w.block.call);
        if (p->extra)
            k->copy_rows(y, w.block.row, taut_at(k, x.data, i * w.global.call), w.global.row, w.rows, p->extra * d);
        k->copy_rows(taut_at(k, y, p->extra * d), w.block.row, taut_at(k, x.data, p->key * d + i * w.token.call),
                     w.token.row, w.rows, p->keys * d);
    }
}

/* x += its adjoint applied to `from`; blocks overlap, so their keys are added window by window. */
static void scatter(const taut_kernels *k, const windowed *s, taut_tensor x, const taut_real *from, const piece *p,
                    taut_real *room)
{
    const int64_t d = x.shape.d, each = (p->extra + p->keys) * d, step = p->count > 1 ? s->size : p->keys;
    const taut_factor one = { 1, NULL };
    const walk w = walk_of(s, x.shape, p);
    for (int64_t j = 0; j < p->keys; j += step)
        for (int64_t i = 0; i < w.calls; i++)
            k->axpby_by(taut_at(k, x.data, (p->key + j) * d + i * w.token.call), w.token.row, one,
                        taut_at(k, from, (p->extra + j) * d + i * w.block.call), w.block.row, one, w.rows,
                        least(step, p->keys - j) * d);
    if (!p->extra) return;
    const int64_t n = x.shape.n, len = p->extra * d;
    taut_real *mean = taut_at(k, room, n * p->count * len);
    k->copy_rows(room, len, from, each, n * p->count, len);
    k->mean_tokens(mean, room, n, p->count, len);
    k->axpby_by(x.data, x.shape.t * d, (taut_factor){ (double)p->count, NULL }, mean, len, one, n, len);
}

typedef struct {
    taut_real *q, *k, *v, *o;
} bundle;

static bundle take(taut_span *from, const piece *p, taut_shape in)
{
    const int64_t queries = queries_len(p, in), keys = keys_len(p, in);
    taut_real *q = taut_take(from, queries), *k = taut_take(from, keys), *v = taut_take(from, keys);
    return (bundle){ q, k, v, taut_take(from, queries) };
}

static bundle gathered(const windowed *s, taut_run *run, const taut_inside *t, const piece *p)
{
    const bundle b = take(&run->scratch, p, t->q.shape);
    move_queries(run->k, b.q, t->q, p, false);
    gather(run->k, s, b.k, t->k, p);
    gather(run->k, s, b.v, t->v, p);
    return b;
}

static taut_attn shape_of(const windowed *s, taut_shape in, const piece *p)
{
    const taut_around *a = &s->out.around;
    return (taut_attn){ .n = in.n * p->count,
                        .heads = a->heads,
                        .tq = p->queries,
                        .tk = p->extra + p->keys,
                        .dh = in.d / a->heads,
                        .scale = a->scale,
                        .causal = a->causal };
}

static void window_forward(const taut_module *m, taut_run *run, const taut_inside *t, taut_span trace)
{
    const windowed *s = (const windowed *)m;
    const taut_span mark = run->scratch;
    for (piece p = before_all(s); next_piece(s, t->q.shape.t, &p); run->scratch = mark) {
        const taut_attn a = shape_of(s, t->q.shape, &p);
        const bundle b = gathered(s, run, t, &p);
        run->k->attention(b.o, taut_take(&trace, a.n * a.heads * a.tq), b.q, b.k, b.v, &a);
        move_queries(run->k, b.o, t->o, &p, true);
    }
}

static void window_jvp(const taut_module *m, taut_run *run, const taut_inside *d, const taut_inside *t, taut_span trace)
{
    const windowed *s = (const windowed *)m;
    const taut_span mark = run->scratch;
    (void)trace;
    for (piece p = before_all(s); next_piece(s, t->q.shape.t, &p); run->scratch = mark) {
        const taut_attn a = shape_of(s, t->q.shape, &p);
        const bundle b = gathered(s, run, t, &p), e = gathered(s, run, d, &p);
        run->k->attention_jvp(e.o, e.q, e.k, e.v, b.q, b.k, b.v, &a);
        move_queries(run->k, e.o, d->o, &p, true);
    }
}

static void window_vjp(const taut_module *m, taut_run *run, const taut_inside *d, const taut_inside *t, taut_span trace)
{
    const windowed *s = (const windowed *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const taut_shape in = t->q.shape;
    k->axpby(d->k.data, 0, d->k.data, 0, taut_len(in));
    k->axpby(d->v.data, 0, d->v.data, 0, taut_len(in));
    for (piece p = before_all(s); next_piece(s, in.t, &p); run->scratch = mark) {
        const taut_attn a = shape_of(s, in, &p);
        const bundle b = gathered(s, run, t, &p), g = take(&run->scratch, &p, in);
        taut_real *room = taut_take(&run->scratch, room_len(&p, in));
        move_queries(k, b.o, t->o, &p, false);
        move_queries(k, g.o, d->o, &p, false);
        k->attention_vjp(g.q, g.k, g.v, g.o, b.o, taut_take(&trace, a.n * a.heads * a.tq), b.q, b.k, b.v, &a);
        move_queries(k, g.q, d->q, &p, true);
        scatter(k, s, d->k, g.k, &p, room);
        scatter(k, s, d->v, g.v, &p, room);
    }
}

/* tq: rows that can meet one key, or all of them; keys_min: keys that each of those sees, also in shorter inputs. */
static taut_answer window_bound(const taut_module *m, taut_ask in)
{
    const windowed *s = (const windowed *)m;
    const taut_around *a = &s->out.around;
    const taut_qkv *x = &s->out.qkv;
    const bool all = s->global > 0 || s->size >= in.tokens;
    const taut_attention_weights w = {
        .width = a->width,
        .heads = a->heads,
        .dh = a->width / a->heads,
        .wq = taut_ref_values(&x->q.weight),
        .wk = taut_ref_values(&x->k.weight),
        .wv = taut_ref_values(&x->v.weight),
        .wo = taut_ref_values(&x->o.weight),
        .bq = a->bias ? taut_ref_values(&x->q.bias) : NULL,
        .bk = a->bias ? taut_ref_values(&x->k.bias) : NULL,
        .bv = a->bias ? taut_ref_values(&x->v.bias) : NULL,
        .bo = a->bias ? taut_ref_values(&x->o.bias) : NULL,
        .scale = a->scale,
        .out = a->out,
        .tq = all ? in.tokens : least(in.tokens, (a->causal ? 2 : 3) * s->size),
        .tk = in.tokens,
        .keys_min = a->causal               ? 1
                    : all && s->global == 0 ? in.tokens
                                            : least(in.tokens, s->size + 1 + s->global),
    };
    const taut_attention_bound b = up_attention(&w, in.size, in.size, in.ledger);
    return answer_of(in, in.norm == TAUT_NORM_FLAT ? b.flat : b.tokens, b.growth, up_round_attention(&w, in.size));
}

static void window_params(taut_module *m, taut_visitor *v) { qkv_params(&((windowed *)m)->out.qkv, v); }

static void window_describe(const taut_module *m, taut_ledger *l)
{
    const windowed *s = (const windowed *)m;
    core_describe(&s->out, l);
    ledger_exact(l, "scale", s->out.around.scale);
    ledger_exact(l, "causal", s->out.around.causal);
    ledger_exact(l, "size", (double)s->size);
    if (s->global) ledger_exact(l, "global", (double)s->global);
}

/* A slot is told of fewer keys than there are tokens, which its promise allows. */
static taut_up window_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const windowed *s = (const windowed *)m;
    return strays_softmax(&s->out.qkv, in, b->tokens,
                          (taut_strays_logits){ s->out.around.heads, in.tokens, s->out.around.scale, false, false });
}

static const taut_core window_core = { window_room, window_forward, window_jvp, window_vjp };
static const taut_module_ops window_ops = {
    .kind = "window",
    .plan = core_plan,
    .forward = core_forward,
    .jvp = core_jvp,
    .vjp = core_vjp,
    .bound = window_bound,
    .strays = window_strays,
    .params = window_params,
    .describe = window_describe,
    .free = leaf_free,
};

taut_module *taut_window(const taut_around *around, int64_t size, int64_t global)
{
    TAUT_CHECK(size > 0 && global >= 0 && !around->queries, "window: size and global tokens of self-attention");
    windowed *s = taut_malloc(sizeof *s);
    if (!s) return NULL;
    *s = (windowed){ cored_of(&window_ops, &window_core, around), size, global };
    return &s->out.base;
}

typedef struct {
    int64_t size, global;
} window_own;

static const taut_key window_keys[] = {
    { "window_size", TAUT_KEY_INT, offsetof(window_own, size), 16, 1, 1 << 20,
      .help = "tokens in a block; one sees its own and the blocks beside it" },
    { "window_global", TAUT_KEY_INT, offsetof(window_own, global), 0, 0, 1 << 20,
      .help = "so many first tokens see and are seen by all (Longformer)" },
};

static taut_module *window_build(const taut_attention_choice *c, const taut_site *s)
{
    const window_own *own = (const void *)c->own.bytes;
    const taut_around around = around_of(s);
    return taut_window(&around, own->size, own->global);
}

const taut_attention_kind taut_kind_window = {
    .name = "window",
    .page = "window",
    .can = TAUT_CAN_CAUSAL | TAUT_CAN_SCALE,
    .keys = window_keys,
    .count = sizeof window_keys / sizeof *window_keys,
    .build = window_build,
};
