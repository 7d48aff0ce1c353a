/* What the AttLip kernels share: a head, its blocks of tokens, and the order in which pairs of blocks are met (ref/attlip.c
 * has the formulas).
 *
 * S is symmetric, and so is its slope: what a pair of blocks gives to the rows of one it gives to the rows of the other, so a
 * pair is looked at once.  Pairs are met as in a tournament: in a round no block plays twice, so that threads write to rows
 * of their own, and every row adds up its rounds in one order whatever the number of threads. */
#ifndef TAUT_KERNELS_CPU_ATTLIP_H
#define TAUT_KERNELS_CPU_ATTLIP_H
#include "kernels/cpu/attention.h"

enum { PROX_BLOCK = 128, PROX_LANES = 16, PROX_TILE = PROX_BLOCK * CPU_STRIDE };

typedef struct {
    const taut_attn *a;
    int64_t at, row_at; /* where the head starts in v and in rows */
    int64_t width;      /* from one token to the next */
    int64_t tokens;
    float scale;
    float near; /* what a step of distance takes from a logit */
} prox_head;

typedef struct {
    int64_t i, j, rows, cols; /* i <= j; rows or cols 0: nobody plays */
} prox_pair;

static inline prox_head prox_head_of(const taut_attn *a, int64_t index)
{
    const att_head g = att_head_of(a, index);
    const double near = a->near * exp2(-0.5 * (double)(index % a->heads));
    return (prox_head){ a, g.q_at, g.lse_at, g.width, g.keys, (float)a->scale, (float)near };
}

static inline int64_t prox_blocks(const taut_attn *a) { return (a->tq + PROX_BLOCK - 1) / PROX_BLOCK; }
static inline int64_t prox_players(const taut_attn *a) { return (prox_blocks(a) + 1) / 2 * 2; }

/* Round 0: every block with itself; then every block with every other once. */
static inline int64_t prox_rounds(const taut_attn *a) { return prox_blocks(a) > 1 ? prox_players(a) : 1; }
static inline int64_t prox_matches(const taut_attn *a, int64_t round)
{
    return round == 0 ? prox_blocks(a) : prox_players(a) / 2;
}

static inline prox_pair prox_pair_at(const prox_head *s, int64_t round, int64_t match)
{
    const int64_t seats = prox_players(s->a) - 1; /* one stays, the others go round */
    int64_t i = match, j = match;
    if (round > 0) {
        i = match == 0 ? seats : (round - 1 + match) % seats;
        j = (round - 1 - match + seats) % seats;
    }
    const int64_t low = (i < j ? i : j) * PROX_BLOCK, high = (i < j ? j : i) * PROX_BLOCK;
    const int64_t rows = cpu_min(PROX_BLOCK, s->tokens - low), cols = cpu_min(PROX_BLOCK, s->tokens - high);
    return (prox_pair){ low, high, rows > 0 ? rows : 0, cols > 0 ? cols : 0 };
}

/* Every pair of blocks of every head, shared among the threads of the team that all call this; x is a thread's own. */
typedef void prox_pair_fn(const void *k, const prox_head *, const prox_pair *, float *x);
static inline void prox_meet(const taut_attn *a, prox_pair_fn *pair, const void *k, float *x)
{
    for (int64_t round = 0; round < prox_rounds(a); round++) {
        const int64_t matches = prox_matches(a, round);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < a->n * a->heads * matches; task++) {
            const prox_head s = prox_head_of(a, task / matches);
            const prox_pair t = prox_pair_at(&s, round, task % matches);
            if (t.rows > 0 && t.cols > 0) pair(k, &s, &t, x);
        }
    }
}

/* out = alpha x_i.y_j + beta out over a pair */
static inline void prox_products(float *out, const float *x, const float *y, const prox_head *s, const prox_pair *t,
                                 float alpha, float beta)
{
    CPU(multiply)
    (&(cpu_product){ .c = out,
                     .c_step = CPU_STRIDE,
                     .a = { x + t->i * s->width, s->width, false },
                     .b = { y + t->j * s->width, s->width, true },
                     .m = t->rows,
                     .n = t->cols,
                     .k = s->a->dh,
                     .alpha = alpha,
                     .beta = beta });
}

/* x = 2 scale v_i.v_j - near |i - j| */
static inline void prox_scores(float *x, const float *v, const prox_head *s, const prox_pair *t)
{
    prox_products(x, v, v, s, t, 2 * s->scale, 0);
    for (int64_t r = 0; s->near > 0 && r < t->rows; r++)
        for (int64_t c = 0; c < t->cols; c++)
            x[r * CPU_STRIDE + c] -= s->near * fabsf((float)(t->i + r) - (float)(t->j + c));
}

/* out += p x, `turned`: p^T x; m rows of out, k of x */
static inline void prox_times(float *out, const float *p, bool turned, const float *x, const prox_head *s, int64_t m,
                              int64_t k)
{
    CPU(multiply)
    (&(cpu_product){ .c = out,
                     .c_step = s->width,
                     .a = { p, CPU_STRIDE, turned },
                     .b = { x, s->width, false },
                     .m = m,
                     .n = s->a->dh,
                     .k = k,
                     .alpha = 1,
                     .beta = 1 });
}

/* out_i += sum_j p_ij x_j, and where the blocks differ out_j += sum_i p_ij x_i */
static inline void prox_gather(float *out, const float *p, const float *x, const prox_head *s, const prox_pair *t)
{
    const int64_t i = t->i * s->width, j = t->j * s->width;
    prox_times(out + i, p, false, x + j, s, t->rows, t->cols);
    if (t->i != t->j) prox_times(out + j, p, true, x + i, s, t->cols, t->rows);
}

/* rows = by x_i.y_i for every token of every head */
static inline void prox_dots(float *rows, const float *x, const float *y, const taut_attn *a, float by)
{
#pragma omp for schedule(static)
    for (int64_t row = 0; row < a->n * a->heads * a->tq; row++) {
        const prox_head s = prox_head_of(a, row / a->tq);
        const int64_t at = s.at + row % a->tq * s.width;
        rows[row] = by * att_dot(x + at, y + at, a->dh);
    }
}

/* What the columns of a pair bring.  Filled up to whole lanes with weights that are exactly 0. */
typedef struct {
    float square[PROX_BLOCK], max[PROX_BLOCK], inverse[PROX_BLOCK];
} prox_columns;

static inline int64_t prox_padded(int64_t cols) { return (cols + PROX_LANES - 1) / PROX_LANES * PROX_LANES; }

static inline void prox_columns_of(prox_columns *k, const float *square, const float *max, const float *sum,
                                   const prox_pair *t)
{
    for (int64_t c = 0; c < t->cols; c++) {
        k->square[c] = square[t->j + c];
        k->max[c] = max[t->j + c];
        k->inverse[c] = 1.0f / sum[t->j + c];
    }
    for (int64_t c = t->cols; c < prox_padded(t->cols); c++)
        k->square[c] = -INFINITY, k->max[c] = INFINITY, k->inverse[c] = 0;
}

static inline float prox_lanes(const float *lane)
{
    float sum = 0;
    for (int l = 0; l < PROX_LANES; l++) sum += lane[l];
    return sum;
}

/* What a pair has made for its columns goes to their rows, unless they are the rows themselves. */
static inline void prox_columns_add(float *rows, const float *column, const prox_pair *t)
{
    for (int64_t c = 0; t->i != t->j && c < t->cols; c++) rows[t->j + c] += column[c];
}
#endif
