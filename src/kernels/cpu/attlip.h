/* What the AttLip kernels share: a head and its tiles (ref/attlip.c has the formulas). */
#ifndef TAUT_KERNELS_CPU_ATTLIP_H
#define TAUT_KERNELS_CPU_ATTLIP_H
#include "kernels/cpu/attention.h"

typedef struct {
    att_head head;
    const float *v, *e, *max, *sum;
} prox_head;

static inline prox_head prox_head_at(const taut_attn *a, int64_t index, const taut_real *v, const taut_real *e,
                                     const taut_real *max, const taut_real *sum)
{
    const att_head g = att_head_of(a, index);
    const float *ev = (const float *)e;
    return (prox_head){ g, (const float *)v + g.q_at, ev ? ev + g.q_at : NULL, (const float *)max + g.lse_at,
                        (const float *)sum + g.lse_at };
}

static inline att_tile prox_tile_at(const prox_head *s, int64_t i, int64_t j)
{
    att_tile t = { .i = i, .j = j, .whole = true };
    t.rows = cpu_min(ATT_ROWS, s->head.keys - i);
    t.cols = cpu_min(ATT_COLS, s->head.keys - j);
    return t;
}

static inline float prox_square(const prox_head *s, int64_t i)
{
    const float *v = s->v + i * s->head.width;
    return (float)s->head.a->scale * att_dot(v, v, s->head.a->dh);
}

/* x = 2 scale v_i.v_j, and scale |v_j|^2 of the tile's columns */
static inline void prox_products(float *x, float *squares, const prox_head *s, const att_tile *t)
{
    const int64_t width = s->head.width;
    att_scores(x, s->v + t->i * width, width, s->v + t->j * width, &s->head, t, 2 * (float)s->head.a->scale, 0);
    for (int64_t c = 0; c < t->cols; c++) squares[c] = prox_square(s, t->j + c);
}

/* Rows of padding: zeros. */
static inline void prox_zero_rows(float *x, const prox_head *s, int64_t from, int64_t to)
{
    for (int64_t r = from; r < to; r++) memset(x + r * s->head.width, 0, (size_t)s->head.a->dh * sizeof(float));
}

/* What a tile's columns bring to alpha_ji.  Filled up to whole blocks of lanes with weights that are exactly 0. */
typedef struct {
    float squares[ATT_COLS], max[ATT_COLS], inverse[ATT_COLS]; /* of the columns */
} prox_columns;

enum { PROX_LANES = 16 };

static inline void prox_columns_of(prox_columns *k, const prox_head *s, const att_tile *t)
{
    for (int64_t c = 0; c < t->cols; c++) {
        k->max[c] = s->max[t->j + c];
        k->inverse[c] = 1.0f / s->sum[t->j + c];
    }
    for (int64_t c = t->cols; c % PROX_LANES; c++) k->squares[c] = -INFINITY, k->max[c] = INFINITY, k->inverse[c] = 0;
}

#endif
