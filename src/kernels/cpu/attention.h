/* What the attention kernels share: a head, a tile of its score matrix, and products of a tile.
 *
 * Masks always cut off the end of a row (causality, length), so of every row of a tile some leading
 * `seen` entries count and the rest are zeros. */
#ifndef TAUT_KERNELS_CPU_ATTENTION_H
#define TAUT_KERNELS_CPU_ATTENTION_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/cpu/multiply.h"
#include "kernels/cpu/vmath.h"

enum { ATT_ROWS = 128, ATT_COLS = 256 };   /* queries and keys of a tile, by measurement */
enum { ATT_TILE = ATT_ROWS * CPU_STRIDE }; /* a tile of scores in scratch */

typedef struct {
    const taut_attn *a;
    int64_t q_at, k_at, lse_at; /* where the head starts in q-, k- and lse-shaped arrays */
    int64_t width;              /* from one token to the next */
    int64_t keys;               /* that anyone in this example may see */
    float slope;                /* ALiBi */
} att_head;

typedef struct {
    int64_t i, j, rows, cols; /* first query, first key, how many of each */
    int64_t stride;           /* from one row of scores to the next */
    bool whole;               /* nothing is masked */
    int64_t first;            /* where it is masked, row r sees the keys before first + r, of those of the tile */
    int64_t seen[2 * ATT_ROWS];
} att_tile;

static inline att_head att_head_of(const taut_attn *a, int64_t index)
{
    const int64_t e = index / a->heads, h = index % a->heads, width = a->heads * a->dh;
    return (att_head){ .a = a,
                       .q_at = e * a->tq * width + h * a->dh,
                       .k_at = e * a->tk * width + h * a->dh,
                       .lse_at = index * a->tq,
                       .width = width,
                       .keys = a->tk,
                       .slope = a->alibi ? (float)exp2(-8.0 * (double)(h + 1) / (double)a->heads) : 0.0f };
}

static inline int64_t att_visible(const att_head *g, int64_t i)
{
    const int64_t end = g->a->causal ? cpu_min(g->keys, i + g->a->tk - g->a->tq + 1) : g->keys;
    return end < 0 ? 0 : end;
}

/* Of `rows` queries at most, ATT_ROWS or less. */
static inline att_tile att_tile_at(const att_head *g, int64_t i, int64_t j, int64_t rows)
{
    att_tile t = { .i = i, .j = j, .rows = cpu_min(rows, g->a->tq - i), .stride = CPU_STRIDE };
    t.cols = cpu_min(ATT_COLS, att_visible(g, i + t.rows - 1) - j);
    for (int64_t r = 0; r < t.rows; r++) {
        const int64_t seen = cpu_min(t.cols, att_visible(g, i + r) - j);
        t.seen[r] = seen < 0 ? 0 : seen;
    }
    t.whole = t.seen[0] == t.cols;
    t.first = i + g->a->tk - g->a->tq + 1 - j;
    return t;
}

/* Two tiles of the same queries and keys on top of each other, for products that share a factor; their scores are all made. */
static inline att_tile att_tile_twice(const att_tile *t)
{
    att_tile two = *t;
    memcpy(two.seen + t->rows, t->seen, (size_t)t->rows * sizeof *t->seen);
    two.rows *= 2;
    two.whole = true;
    return two;
}

static inline void att_alibi(float *s, const att_head *g, const att_tile *t)
{
    if (!g->a->alibi) return;
    for (int64_t r = 0; r < t->rows; r++) {
        const int32_t own = (int32_t)(t->i + r + g->a->tk - g->a->tq - t->j);
        float *row = s + r * t->stride;
        for (int32_t c = 0; c < (int32_t)t->seen[r]; c++) row[c] -= g->slope * fabsf((float)(own - c));
    }
}

/* 0 times NaN is NaN, so a masked token that holds one would leak through the zeros of a tile. */
static inline bool att_finite(const float *x, int64_t rows, int64_t cols, int64_t stride)
{
    float zero = 0;
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * stride;
#pragma omp simd reduction(+ : zero)
        for (int64_t c = 0; c < cols; c++) zero += 0.0f * row[c];
    }
    return zero == 0;
}

/* out (rows, dh) += alpha p x, x one row a key. */
static inline void att_times(float *out, int64_t stride, const float *p, const float *x, const att_head *g,
                             const att_tile *t, float alpha)
{
    const int64_t dh = g->a->dh;
    const bool safe = t->whole || att_finite(x, t->cols, dh, g->width);
    const int64_t step = safe ? t->rows : 1;
    for (int64_t r = 0; r < t->rows; r += step) {
        const int64_t cols = safe ? t->cols : t->seen[r];
        if (cols > 0) CPU(multiply)
        (&(cpu_product){ .c = out + r * stride,
                         .c_step = stride,
                         .a = { p + r * t->stride, t->stride, false },
                         .b = { x, g->width, false },
                         .mask = t->whole || !safe ? CPU_WHOLE : CPU_MASKED_A,
                         .seen = t->first,
                         .m = step,
                         .n = dh,
                         .k = cols,
                         .alpha = alpha,
                         .beta = 1 });
    }
}

/* out (cols, dh) += alpha p^T x, x one row a query. */
static inline void att_trans_times(float *out, const float *p, const float *x, const att_head *g, const att_tile *t,
                                   float alpha)
{
    const int64_t dh = g->a->dh;
    const bool safe = t->whole || att_finite(x, t->rows, dh, g->width);
    const int64_t step = safe ? t->rows : 1;
    for (int64_t r = 0; r < t->rows; r += step) {
        const int64_t cols = safe ? t->cols : t->seen[r];
        if (cols > 0) CPU(multiply)
        (&(cpu_product){ .c = out,
                         .c_step = g->width,
                         .a = { p + r * t->stride, t->stride, true },
                         .b = { x + r * g->width, g->width, false },
                         .mask = t->whole || !safe ? CPU_WHOLE : CPU_MASKED_A,
                         .seen = t->first,
                         .m = cols,
                         .n = dh,
                         .k = step,
                         .alpha = alpha,
                         .beta = 1 });
    }
}

/* s = exp(s - base) over the seen entries, zeros after them up to cols; answers their sum.  Whole blocks of
 * lanes, filled up with exp(-inf) = 0: several vectors side by side hide each other's latency. */
static inline float att_exp(float *s, int64_t seen, int64_t cols, float base)
{
    enum { LANES = 16 };
    float lane[LANES] = { 0 }, sum = 0;
    int64_t c = seen;
    for (; c % LANES; c++) s[c] = -INFINITY;
    for (int64_t from = 0; from < c; from += LANES)
        for (int l = 0; l < LANES; l++) {
            const float e = vm_exp(s[from + l] - base);
            s[from + l] = e;
            lane[l] += e;
        }
    for (c = seen; c < cols; c++) s[c] = 0;
    for (int l = 0; l < LANES; l++) sum += lane[l];
    return sum;
}

static inline float att_dot(const float *x, const float *y, int64_t len)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < len; c++) sum += x[c] * y[c];
    return sum;
}

static inline float *att_scratch(int64_t len)
{
    float *scratch = taut_malloc_aligned((size_t)len * sizeof(float));
    TAUT_CHECK(scratch, "attention: no memory for a tile");
    return scratch;
}
#endif
