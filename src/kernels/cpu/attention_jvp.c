/* Softmax attention, jvp.  With T_ij = scale (tq_i.k_j + q_i.tk_j):
 *     to_i = sum_j P_ij tv_j + sum_j P_ij (T_ij - c_i - m_i) v_j,   m_i = sum_j P_ij (T_ij - c_i)      for any number c_i.
 * The textbook takes c_i = 0 and cancels when a row saturates.  Here c_i is T at the largest logit, which makes the terms
 * of a saturated row small one by one.
 *
 * A block of queries has its rows of S and T whole in scratch, O(tk) memory a thread: m_i is then known before v is met,
 * which saves the product P v that an online softmax would need to subtract m_i o_i at the end.
 * Masking and poison as in attention.c, with tq, tk, tv beside q, k, v.
 * Error     with u = 2^-24, E as in attention.c, F = (2 dh + 6) u scale (|tq|.|k| + |q|.|tk|) the worst error
 *           of T, V = max |v|, W = max |tv|, D = max |T| over what the query sees:
 *           |to - exact| <= (2 E + (700 + tk/64) u) (W + 4 D V) + 2 F V. */
#include "kernels/cpu/attention_packs.h"

/* t lies right below s, tq below q in qs, so that one product serves both. */
typedef struct {
    float *s, *qs;
    int64_t rows;   /* of a block */
    int64_t stride; /* from one row of s or t to the next */
} state;
enum { FEW = 56 }; /* rows, where keys are packed */
enum { K, TK, V, TV };
typedef struct {
    const float *tq, *q;
    att_packs keys; /* K, TK, V, TV */
} inputs;

/* s becomes exp(s - base), t becomes t - centre, over a tile's part of a row; answers sum and tilt, the sum of their products. */
static void row_part(float *s, float *t, int64_t seen, int64_t cols, float base, float centre, double *sum,
                     double *tilt)
{
    float part = 0;
    *sum += (double)att_exp(s, seen, cols, base);
#pragma omp simd reduction(+ : part)
    for (int64_t c = 0; c < seen; c++) {
        t[c] -= centre;
        part += s[c] * t[c];
    }
    *tilt += (double)part;
}

/* A whole row: s becomes P, t becomes P (T - centre - mean), zeros after what the query sees. */
static void row_slope(float *s, float *t, int64_t seen, int64_t end)
{
    const float top = vm_max(s, seen), base = top == -INFINITY ? 0.0f : top;
    double sum = 0, tilt = 0;
    int64_t at = 0;
    while (at + 1 < seen && s[at] != top) at++; /* NaN is nowhere */
    const float centre = seen > 0 ? t[at] : 0.0f;
    for (int64_t j = 0; j < end; j += ATT_COLS) {
        const int64_t cols = cpu_min(ATT_COLS, end - j), here = cpu_min(cols, seen - j);
        row_part(s + j, t + j, here < 0 ? 0 : here, cols, base, centre, &sum, &tilt);
    }
    const float scale = (float)(1 / sum), mean = (float)(tilt / sum);
#pragma omp simd
    for (int64_t c = 0; c < seen; c++) {
        s[c] *= scale;
        t[c] = s[c] * (t[c] - mean);
    }
    for (int64_t c = seen; c < end; c++) t[c] = 0;
}

/* q and tq of `rows` queries come in, their results are zeros. */
static void begin(float *to, const state *w, const inputs *x, const att_head *g, int64_t qi, int64_t rows)
{
    const size_t bytes = (size_t)g->a->dh * sizeof(float);
    for (int64_t r = 0; r < rows; r++) {
        memcpy(w->qs + r * g->a->dh, x->q + qi + r * g->width, bytes);
        memcpy(w->qs + (rows + r) * g->a->dh, x->tq + qi + r * g->width, bytes);
        memset(to + qi + r * g->width, 0, bytes);
    }
}

static void jvp_rows(float *to, const inputs *x, const att_head *g, int64_t head, int64_t i, const state *w)
{
    const int64_t dh = g->a->dh, rows = cpu_min(w->rows, g->a->tq - i), end = att_visible(g, i + rows - 1);
    const int64_t qi = g->q_at + i * g->width;
    const float scale = (float)g->a->scale;
    float *s = w->s, *t = s + rows * w->stride;
    begin(to, w, x, g, qi, rows);
    for (int64_t j = 0; j < end; j += ATT_COLS) {
        att_tile one = att_tile_at(g, i, j, w->rows);
        one.stride = w->stride;
        const att_tile two = att_tile_twice(&one);
        att_scores(s + j, w->qs, dh, &x->keys.of[K], head, g, &two, scale, 0);
        att_scores(t + j, w->qs, dh, &x->keys.of[TK], head, g, &one, scale, 1);
        att_alibi(s + j, g, &one);
    }
    for (int64_t r = 0; r < rows; r++)
        row_slope(s + r * w->stride, t + r * w->stride, cpu_min(end, att_visible(g, i + r)), end);
    for (int64_t j = 0; j < end; j += ATT_COLS) {
        att_tile one = att_tile_at(g, i, j, w->rows);
        one.stride = w->stride;
        att_times_packed(to + qi, g->width, s + j, &x->keys.of[TV], head, g, &one, 1);
        att_times_packed(to + qi, g->width, t + j, &x->keys.of[V], head, g, &one, 1);
    }
}

void CPU(attention_jvp)(taut_real *to, const taut_real *tq, const taut_real *tk, const taut_real *tv,
                        const taut_real *q, const taut_real *k, const taut_real *v, const taut_attn *a)
{
    inputs x = { (const float *)tq, (const float *)q, { .count = 0 } };
    att_packs_add(&x.keys, a, (const float *)k, true);
    att_packs_add(&x.keys, a, (const float *)tk, true);
    att_packs_add(&x.keys, a, (const float *)v, false);
    att_packs_add(&x.keys, a, (const float *)tv, false);
    att_packs_begin(&x.keys, a);
    /* where keys are packed, so few rows at a time that the second cache may hold them; no power of two apart, for its sake */
    const int64_t rows = x.keys.of[K].len > 0 && x.keys.of[V].len > 0 ? FEW : ATT_ROWS,
                  stride = (a->tk + 15) / 16 * 16 + 16;
    const int64_t tiles = (a->tq + rows - 1) / rows, tasks = a->n * a->heads * tiles;
#pragma omp parallel if (tasks > 1)
    {
        att_packs_fill(&x.keys, a);
        float *scratch = att_scratch(2 * cpu_min(rows, a->tq) * (stride + a->dh) + 1);
        const state w = {
            .s = scratch, .qs = scratch + 2 * cpu_min(rows, a->tq) * stride, .rows = rows, .stride = stride
        };
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const att_head g = att_head_of(a, task / tiles);
            jvp_rows((float *)to, &x, &g, task / tiles, task % tiles * rows, &w);
        }
        free(scratch);
    }
    free(x.keys.memory);
}
