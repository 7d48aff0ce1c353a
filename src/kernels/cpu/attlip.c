/* AttLip's potential, its gradient and its second derivative (formulas: ref/attlip.c): tiles of rows against tiles of
 * columns.  S is symmetric, so what row i needs of column sums is exp(t_ji - max_j) / sum_j, made from the same
 * product v_i.v_j: every pass gathers by rows, and memory is O(1) a thread.
 *
 * Masking   tokens past an example's length are in no tile; their rows are exact zeros.
 * Poison    NaN or infinity in a real token reaches every real token of its head.
 * Error     with u = 2^-24, V = max |v_i| in the head, F = max |e_i|, L = 3 (dh + 8) u scale V^2 the worst error of a
 *           logit and R = 2 L + (1000 + t/32) u (256 columns are summed in float at a time, tiles one after the other):
 *           |max| within L + u, |sum| within R relative to each other's;  |f - exact| <= t heads (2 L + 400 u) + u |f|;
 *           |col - exact| <= R (1 + col);  |g - exact| <= R scale [ (1 + col_k) |v_k| + sum_i (a_ki + a_ik) |v_i| ];
 *           |h - exact| <= scale [ R ((1 + col_k)|e_k| + sum_i (a_ki + a_ik)|e_i|)
 *                                  + Q (col_k |v_k| + sum_i (a_ki + a_ik)|v_i|) ],
 *           Q = 8 scale V F (6 R + (4 dh + 40) u); absolute values entry by entry, and exp drops terms under 1e-37. */
#include "kernels/cpu/attlip.h"

/* max and sum of one tile of rows */
static void value_rows(float *max, float *sum, const prox_head *s, int64_t i, float *x)
{
    const int64_t all = cpu_min(ATT_ROWS, s->head.a->tq - i);
    float squares[ATT_COLS], top[ATT_ROWS];
    double total[ATT_ROWS] = { 0 };
    for (int64_t r = 0; r < all; r++) max[i + r] = sum[i + r] = 0, top[r] = -INFINITY;
    for (int64_t j = 0; j < s->head.keys && i < s->head.keys; j += ATT_COLS) {
        const att_tile t = prox_tile_at(s, i, j);
        prox_products(x, squares, s, &t);
        for (int64_t r = 0; r < t.rows; r++) {
            float *row = x + r * ATT_COLS;
            for (int64_t c = 0; c < t.cols; c++) row[c] += squares[c];
            const float here = vm_max(row, t.cols), now = here > top[r] ? here : top[r];
            const float add = att_exp(row, t.cols, t.cols, now);
            total[r] = total[r] * (now == top[r] ? 1 : (double)vm_exp(top[r] - now)) + (double)add;
            top[r] = now;
        }
    }
    for (int64_t r = 0; r < all && i + r < s->head.keys; r++) max[i + r] = top[r], sum[i + r] = (float)total[r];
}

void CPU(attlip)(double *f, taut_real *max_, taut_real *sum_, const taut_real *v, const taut_attn *a)
{
    const int64_t tiles = (a->tq + ATT_ROWS - 1) / ATT_ROWS, tasks = a->n * a->heads * tiles;
    float *max = (float *)max_, *sum = (float *)sum_;
#pragma omp parallel if (tasks > 1)
    {
        float *x = att_scratch(ATT_ROWS * ATT_COLS);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const prox_head s = prox_head_at(a, task / tiles, v, NULL, max_, sum_);
            value_rows(max + s.head.lse_at, sum + s.head.lse_at, &s, task % tiles * ATT_ROWS, x);
        }
        free(x);
    }
    for (int64_t e = 0; e < a->n; e++) f[e] = 0;
    for (int64_t index = 0; index < a->n * a->heads; index++) {
        const prox_head s = prox_head_at(a, index, v, NULL, max_, sum_);
        for (int64_t i = 0; i < s.head.keys; i++)
            f[index / a->heads] += 0.5 * ((double)prox_square(&s, i) + (double)s.max[i] + log((double)s.sum[i]));
    }
}

/* x holds 2 scale v_i.v_j and becomes alpha_ij + alpha_ji; answers the sum of alpha_ji.  Lanes as in att_exp. */
static float weigh_row(float *x, const prox_columns *k, const prox_head *s, int64_t i, int64_t cols)
{
    const float own = prox_square(s, i), top = s->max[i], inverse = 1.0f / s->sum[i];
    const int64_t padded = (cols + PROX_LANES - 1) / PROX_LANES * PROX_LANES;
    float lane[PROX_LANES] = { 0 }, sum = 0;
    for (int64_t c = cols; c < padded; c++) x[c] = 0;
    for (int64_t from = 0; from < padded; from += PROX_LANES)
        for (int l = 0; l < PROX_LANES; l++) {
            const int64_t c = from + l;
            const float p = vm_exp(x[c] + k->squares[c] - top) * inverse;
            const float q = vm_exp(x[c] + own - k->max[c]) * k->inverse[c];
            lane[l] += q;
            x[c] = p + q;
        }
    for (int l = 0; l < PROX_LANES; l++) sum += lane[l];
    return sum;
}

static void grad_rows(float *g, float *col, const prox_head *s, int64_t i, float *scratch)
{
    const int64_t dh = s->head.a->dh, width = s->head.width, all = cpu_min(ATT_ROWS, s->head.a->tq - i);
    const float scale = (float)s->head.a->scale;
    const int64_t rows = s->head.keys > i ? cpu_min(all, s->head.keys - i) : 0;
    float *x = scratch, *out = scratch + ATT_ROWS * ATT_COLS;
    prox_columns k;
    memset(out, 0, (size_t)(all * dh) * sizeof(float));
    for (int64_t r = 0; r < all; r++) col[i + r] = 0;
    for (int64_t j = 0; j < s->head.keys && rows > 0; j += ATT_COLS) {
        const att_tile t = prox_tile_at(s, i, j);
        prox_products(x, k.squares, s, &t);
        prox_columns_of(&k, s, &t);
        for (int64_t r = 0; r < rows; r++) col[i + r] += weigh_row(x + r * ATT_COLS, &k, s, i + r, t.cols);
        att_times(out, dh, x, s->v + j * width, &s->head, &t, 1.0f);
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < dh; c++) {
            const float own = (1.0f + col[i + r]) * s->v[(i + r) * width + c];
            g[(i + r) * width + c] = scale * (own + out[r * dh + c]);
        }
    prox_zero_rows(g, s, i + rows, i + all);
}

void CPU(attlip_grad)(taut_real *g, taut_real *col, const taut_real *v, const taut_real *max, const taut_real *sum,
                      const taut_attn *a)
{
    const int64_t tiles = (a->tq + ATT_ROWS - 1) / ATT_ROWS, tasks = a->n * a->heads * tiles;
#pragma omp parallel if (tasks > 1)
    {
        float *scratch = att_scratch(ATT_ROWS * (ATT_COLS + a->dh));
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const prox_head s = prox_head_at(a, task / tiles, v, NULL, max, sum);
            grad_rows((float *)g + s.head.q_at, (float *)col + s.head.lse_at, &s, task % tiles * ATT_ROWS, scratch);
        }
        free(scratch);
    }
}
