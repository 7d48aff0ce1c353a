/* AttLip's potential and its gradient (formulas: ref/attlip.c), pair of blocks by pair of blocks (attlip.h); the second
 * derivative is in attlip_hvp.c.  Memory is O(1) a thread and a few numbers a row.
 *
 * Value     (near = 0 here; distance only lowers a term) 2 scale |v_i|^2 + 2 scale |v_j|^2 - S_ij = scale |v_i - v_j|^2 >= 0:
 *           with U the head's largest scale |v_i|^2, t_ij is never above the level scale |v_i|^2 + 2 U, and sum_i =
 *           sum_j exp(-scale |v_i - v_j|^2) exp(2 (scale |v_j|^2 - U)) needs no search for a maximum and one exp for i, j and
 *           j, i.  That level is `max`.  Where sum_i comes out so small that its terms may have been lost, its block of rows
 *           is done again with the true maximum.
 * Poison    NaN or infinity in a real token reaches every real token of its head.
 * Error     with u = 2^-24, V = max |v_i| in the head, F = max |e_i|, L = 3 (dh + 8) u scale V^2 + 4 u near t the worst error
 *           of a logit and R = 2 L + (1000 + t/32) u (a block's columns are summed in float, blocks one after the other):
 *           |max + ln sum - exact| <= R;  |f - exact| <= t heads (2 L + 400 u) + u |f|;
 *           |col - exact| <= R (1 + col);  |g - exact| <= R scale [ (1 + col_k) |v_k| + sum_i (a_ki + a_ik) |v_i| ];
 *           |h - exact| <= scale [ R ((1 + col_k)|e_k| + sum_i (a_ki + a_ik)|e_i|)
 *                                  + Q (col_k |v_k| + sum_i (a_ki + a_ik)|v_i|) ],
 *           Q = 8 scale V F (6 R + (4 dh + 40) u); absolute values entry by entry, and exp drops terms under 1e-37. */
#include "kernels/cpu/attlip.h"

#define LEAST 1e-20f /* of a sum: what exp drops is then below 1e-17 of it */

/* max and sum of the block of rows i, with the true maximum */
static void again(float *max, float *sum, const float *square, const float *v, const prox_head *s, int64_t i, float *x)
{
    float top[PROX_BLOCK];
    double total[PROX_BLOCK] = { 0 };
    const int64_t rows = cpu_min(PROX_BLOCK, s->tokens - i);
    for (int64_t r = 0; r < rows; r++) top[r] = -INFINITY;
    for (int64_t j = 0; j < s->tokens; j += PROX_BLOCK) {
        const prox_pair t = { i, j, rows, cpu_min(PROX_BLOCK, s->tokens - j) };
        prox_scores(x, v, s, &t);
        for (int64_t r = 0; r < rows; r++) {
            float *row = x + r * CPU_STRIDE;
            for (int64_t c = 0; c < t.cols; c++) row[c] += square[j + c];
            const float here = vm_max(row, t.cols), now = here > top[r] ? here : top[r];
            const float add = att_exp(row, t.cols, t.cols, now);
            total[r] = total[r] * (now == top[r] ? 1 : (double)vm_exp(top[r] - now)) + (double)add;
            top[r] = now;
        }
    }
    for (int64_t r = 0; r < rows; r++) max[i + r] = top[r], sum[i + r] = (float)total[r];
}

typedef struct {
    const float *v, *square, *weight; /* weight_i = exp(2 (scale |v_i|^2 - U)) */
    float *sum;
} values;

/* A pair's part of the sums */
static void value_pair(const void *k_, const prox_head *s, const prox_pair *t, float *x)
{
    const values *k = k_;
    const float *square = k->square + s->row_at, *weight = k->weight + s->row_at;
    float columns[PROX_BLOCK] = { 0 }, far[PROX_BLOCK], heavy[PROX_BLOCK], *sum = k->sum + s->row_at;
    const int64_t padded = prox_padded(t->cols);
    prox_scores(x, k->v + s->at, s, t);
    for (int64_t c = 0; c < padded; c++) {
        far[c] = c < t->cols ? square[t->j + c] : INFINITY;
        heavy[c] = c < t->cols ? weight[t->j + c] : 0;
    }
    for (int64_t r = 0; r < t->rows; r++) {
        const float own = square[t->i + r], much = weight[t->i + r];
        float *row = x + r * CPU_STRIDE, lane[PROX_LANES] = { 0 };
        for (int64_t c = t->cols; c < padded; c++) row[c] = 0;
        for (int64_t from = 0; from < padded; from += PROX_LANES)
            for (int l = 0; l < PROX_LANES; l++) {
                const int64_t c = from + l;
                const float near = vm_exp(row[c] - own - far[c]);
                lane[l] += near * heavy[c];
                columns[c] += near * much;
            }
        sum[t->i + r] += prox_lanes(lane);
    }
    prox_columns_add(sum, columns, t);
}

/* Levels and weights of a head's rows, sums at 0. */
static void levels(float *max, float *sum, float *weight, const float *square, const prox_head *s)
{
    const float top = vm_max(square, s->tokens);
    for (int64_t i = 0; i < s->a->tq; i++) {
        sum[i] = 0;
        max[i] = square[i] + 2 * top;
        weight[i] = vm_exp(2 * (square[i] - top));
    }
}

static void mend(float *max, float *sum, const float *square, const float *v, const prox_head *s, int64_t block,
                 float *x)
{
    const int64_t i = block * PROX_BLOCK;
    bool good = true;
    for (int64_t r = i; r < cpu_min(s->tokens, i + PROX_BLOCK); r++) good = good && sum[r] >= LEAST && isfinite(max[r]);
    if (!good) again(max, sum, square, v, s, i, x);
}

static void total(double *f, const float *max, const float *sum, const float *square, const taut_attn *a)
{
    for (int64_t e = 0; e < a->n; e++) f[e] = 0;
    for (int64_t index = 0; index < a->n * a->heads; index++) {
        const prox_head s = prox_head_of(a, index);
        for (int64_t i = s.row_at; i < s.row_at + s.tokens; i++)
            f[index / a->heads] += 0.5 * ((double)square[i] + (double)max[i] + log((double)sum[i]));
    }
}

void CPU(attlip)(taut_sum *f_, taut_real *max_, taut_real *sum_, const taut_real *v_, const taut_attn *a)
{
    double *f = (double *)f_;
    const int64_t heads = a->n * a->heads, rows = heads * a->tq, blocks = prox_blocks(a);
    float *max = (float *)max_, *sum = (float *)sum_, *square = att_scratch(2 * rows + 1), *weight = square + rows;
    const float *v = (const float *)v_;
    const values k = { v, square, weight, sum };
#pragma omp parallel if (heads * blocks > 1)
    {
        float *x = att_scratch(PROX_TILE);
        prox_dots(square, v, v, a, (float)a->scale);
#pragma omp for schedule(static)
        for (int64_t index = 0; index < heads; index++) {
            const prox_head s = prox_head_of(a, index);
            levels(max + s.row_at, sum + s.row_at, weight + s.row_at, square + s.row_at, &s);
        }
        prox_meet(a, value_pair, &k, x);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < heads * blocks; task++) {
            const prox_head s = prox_head_of(a, task / blocks);
            mend(max + s.row_at, sum + s.row_at, square + s.row_at, v + s.at, &s, task % blocks, x);
        }
        free(x);
    }
    total(f, max, sum, square, a);
    free(square);
}

typedef struct {
    const float *v, *max, *sum, *square;
    float *g, *col;
} slopes;

/* alpha_ij + alpha_ji of a pair, what it adds to the sums of columns, and to the gradient */
static void grad_pair(const void *k_, const prox_head *s, const prox_pair *t, float *x)
{
    const slopes *k = k_;
    const float *square = k->square + s->row_at, *max = k->max + s->row_at, *sum = k->sum + s->row_at;
    const int64_t padded = prox_padded(t->cols);
    float columns[PROX_BLOCK] = { 0 }, *col = k->col + s->row_at;
    prox_columns to;
    prox_columns_of(&to, square, max, sum, t);
    prox_scores(x, k->v + s->at, s, t);
    for (int64_t r = 0; r < t->rows; r++) {
        const float own = square[t->i + r], top = max[t->i + r], inverse = 1.0f / sum[t->i + r];
        float *row = x + r * CPU_STRIDE, lane[PROX_LANES] = { 0 };
        for (int64_t c = t->cols; c < padded; c++) row[c] = 0;
        for (int64_t from = 0; from < padded; from += PROX_LANES)
            for (int l = 0; l < PROX_LANES; l++) {
                const int64_t c = from + l;
                const float p = vm_exp(row[c] + to.square[c] - top) * inverse;
                const float q = vm_exp(row[c] + own - to.max[c]) * to.inverse[c];
                lane[l] += q;
                columns[c] += p;
                row[c] = p + q;
            }
        col[t->i + r] += prox_lanes(lane);
    }
    prox_columns_add(col, columns, t);
    prox_gather(k->g + s->at, x, k->v + s->at, s, t);
}

/* g = scale ((1 + col) v + what was gathered) */
static void finish(const slopes *k, const taut_attn *a)
{
#pragma omp for schedule(static)
    for (int64_t row = 0; row < a->n * a->heads * a->tq; row++) {
        const prox_head s = prox_head_of(a, row / a->tq);
        const float *v = k->v + s.at + row % a->tq * s.width, all = 1.0f + k->col[row];
        float *g = k->g + s.at + row % a->tq * s.width;
        for (int64_t c = 0; c < a->dh; c++) g[c] = s.scale * (all * v[c] + g[c]);
    }
}

void CPU(attlip_grad)(taut_real *g, taut_real *col, const taut_real *v, const taut_real *max, const taut_real *sum,
                      const taut_attn *a)
{
    const int64_t heads = a->n * a->heads, rows = heads * a->tq;
    float *square = att_scratch(rows + 1);
    const slopes k = { (const float *)v, (const float *)max, (const float *)sum, square, (float *)g, (float *)col };
    memset(k.g, 0, (size_t)(rows * a->dh) * sizeof(float));
    memset(k.col, 0, (size_t)rows * sizeof(float));
#pragma omp parallel if (heads * prox_blocks(a) > 1)
    {
        float *x = att_scratch(PROX_TILE);
        prox_dots(square, k.v, k.v, a, (float)a->scale);
        prox_meet(a, grad_pair, &k, x);
        finish(&k, a);
        free(x);
    }
    free(square);
}
