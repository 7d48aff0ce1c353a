/* Keys, values and their like as products read them (multiply.h), packed once for all tiles of queries that meet them. */
#ifndef TAUT_KERNELS_CPU_ATTENTION_PACKS_H
#define TAUT_KERNELS_CPU_ATTENTION_PACKS_H
#include "kernels/cpu/attention.h"

/* An array of keys' shape, for products with its transpose (scores) or with itself, a tile of ATT_COLS keys at a time. */
typedef struct {
    const float *x;
    bool turned;
    float *at;     /* of all heads; NULL: not packed, each product packs its own */
    int64_t len;   /* of a head; 0: packing would not pay */
    int64_t tasks; /* that pack a head: panels of a transpose, tiles of the other kind */
} att_pack;

enum { ATT_PACKS = 4 };
typedef struct {
    att_pack of[ATT_PACKS];
    int count;
    float *memory;
} att_packs;

static inline int64_t att_tile_len(const taut_attn *a) { return CPU(packed)(a->tq, a->dh, ATT_COLS); }

static inline void att_packs_add(att_packs *p, const taut_attn *a, const float *x, bool turned)
{
    const int64_t tiles = (a->tk + ATT_COLS - 1) / ATT_COLS;
    p->of[p->count++] = (att_pack){ .x = x,
                                    .turned = turned,
                                    .len = turned ? CPU(packed)(a->tq, a->tk, a->dh) : tiles * att_tile_len(a),
                                    .tasks = turned ? cpu_panels(a->tk, a->dh) : tiles };
}

/* Room for all of them; where it would not pay, or there is no memory, none. */
static inline void att_packs_begin(att_packs *p, const taut_attn *a)
{
    const int64_t heads = a->n * a->heads;
    int64_t len = 0;
    for (int i = 0; i < p->count; i++) len = len >= 0 && p->of[i].len > 0 ? len + heads * p->of[i].len : -1;
    p->memory = len > 0 ? taut_malloc((size_t)(len + CPU_LINE) * sizeof(float)) : NULL;
    float *at = p->memory ? cpu_line(p->memory) : NULL;
    for (int i = 0; at && i < p->count; i++) {
        p->of[i].at = at;
        at += heads * p->of[i].len;
    }
}

static inline void att_pack_task(const att_pack *p, const att_head *g, int64_t head, int64_t task)
{
    const taut_attn *a = g->a;
    const float *x = p->x + g->k_at;
    if (p->turned) {
        CPU(pack)(p->at + head * p->len, (cpu_matrix){ x, g->width, true }, a->tk, a->dh, task);
        return;
    }
    const int64_t j = task * ATT_COLS, keys = cpu_min(ATT_COLS, a->tk - j);
    for (int64_t i = 0; i < cpu_panels(a->dh, keys); i++) CPU(pack)
    (p->at + head * p->len + task * att_tile_len(a), (cpu_matrix){ x + j * g->width, g->width, false }, a->dh, keys, i);
}

/* By all threads, which go on when all is packed. */
static inline void att_packs_fill(const att_packs *p, const taut_attn *a)
{
    for (int i = 0; p->memory && i < p->count; i++) {
        const att_pack *one = &p->of[i];
#pragma omp for schedule(static)
        for (int64_t task = 0; task < a->n * a->heads * one->tasks; task++) {
            const int64_t head = task / one->tasks;
            const att_head g = att_head_of(a, head);
            att_pack_task(one, &g, head, task % one->tasks);
        }
    }
}

/* s = alpha x y^T + beta s, for the rows x of a tile against its keys y. */
static inline void att_scores(float *s, const float *x, int64_t x_stride, const att_pack *y, int64_t head,
                              const att_head *g, const att_tile *t, float alpha, float beta)
{
    CPU(multiply)
    (&(cpu_product){ .c = s,
                     .c_step = t->stride,
                     .a = { x, x_stride, false },
                     .b = { y->x + g->k_at + t->j * g->width, g->width, true },
                     .packed = { y->at ? y->at + head * y->len : NULL, g->a->tk, t->j },
                     .tiled = y->len > 0,
                     .mask = t->whole ? CPU_WHOLE : CPU_MASKED_C,
                     .seen = t->first,
                     .m = t->rows,
                     .n = t->cols,
                     .k = g->a->dh,
                     .alpha = alpha,
                     .beta = beta });
}

/* out += alpha p x: as att_times, but by what is packed for tiles of which nothing is masked. */
static inline void att_times_packed(float *out, int64_t stride, const float *p, const att_pack *x, int64_t head,
                                    const att_head *g, const att_tile *t, float alpha)
{
    const float *from = x->x + g->k_at + t->j * g->width;
    if (x->len == 0 || !t->whole || t->cols < cpu_min(ATT_COLS, g->a->tk - t->j)) {
        att_times(out, stride, p, from, g, t, alpha);
        return;
    }
    const int64_t tile = t->j / ATT_COLS * att_tile_len(g->a);
    CPU(multiply)
    (&(cpu_product){ .c = out,
                     .c_step = stride,
                     .a = { p, t->stride, false },
                     .b = { from, g->width, false },
                     .packed = { x->at ? x->at + head * x->len + tile : NULL, g->a->dh, 0 },
                     .tiled = true,
                     .m = t->rows,
                     .n = g->a->dh,
                     .k = t->cols,
                     .alpha = alpha,
                     .beta = 1 });
}
#endif
