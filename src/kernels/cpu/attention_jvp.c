/* Softmax attention, jvp in one pass.  With T_ij = scale (tq_i.k_j + q_i.tk_j):
 *     to_i = sum_j P_ij (tv_j + (T_ij - c_i) v_j) - (sum_j P_ij (T_ij - c_i)) o_i      for any number c_i.
 * The textbook takes c_i = 0 and cancels when a row saturates.  Here c_i is T at the largest logit met so
 * far, which costs nothing and makes the terms of a saturated row small one by one.
 *
 * Kept of every query: max m, sum l, c, e = sum p (T-c), a = sum p v, b = sum p (tv + (T-c) v).  When m
 * moves, all sums are scaled; when c moves by s, e loses s l and b loses s a.
 * Masking and poison as in attention.c, with tq, tk, tv beside q, k, v.
 * Error     with u = 2^-24, E as in attention.c, F = (2 dh + 6) u scale (|tq|.|k| + |q|.|tk|) the worst error
 *           of T, V = max |v|, W = max |tv|, D = max |T| over what the query sees:
 *           |to - exact| <= (2 E + (700 + tk/64) u) (W + 4 D V) + 2 F V. */
#include "kernels/cpu/attention.h"

/* t lies right below s, b right below a, tq below q in qs, so that one product serves both. */
typedef struct {
    float *s, *t, *a, *b, *qs, *max, *centre;
    double *sum, *tilt;
} state;
typedef struct {
    const float *tq, *tk, *tv, *q, *k, *v;
} inputs;

/* Brings the sums of row r to a new maximum and a new centre. */
static void move(const state *w, int64_t r, int64_t dh, float now, float base, float centre)
{
    const float shrink = vm_exp(w->max[r] - base), shift = centre - w->centre[r];
    float *a = w->a + r * dh, *b = w->b + r * dh;
    for (int64_t c = 0; c < dh; c++) {
        a[c] *= shrink;
        b[c] = b[c] * shrink - shift * a[c];
    }
    w->sum[r] *= (double)shrink;
    w->tilt[r] = w->tilt[r] * (double)shrink - (double)shift * w->sum[r];
    w->max[r] = now;
    w->centre[r] = centre;
}

/* One row meets one tile: s becomes p = exp(s - max), t becomes p (t - centre). */
static void row_step(const state *w, int64_t r, int64_t seen, int64_t cols, int64_t dh)
{
    float *s = w->s + r * ATT_COLS, *t = w->t + r * ATT_COLS;
    const float top = vm_max(s, seen), now = top > w->max[r] ? top : w->max[r];
    const float base = now == -INFINITY ? 0.0f : now;
    if (now != w->max[r]) {
        int64_t at = 0;
        while (at + 1 < seen && s[at] != top) at++; /* NaN is nowhere */
        move(w, r, dh, now, base, t[at]);
    }
    const float centre = w->centre[r], add = att_exp(s, seen, cols, base);
    float tilt = 0;
#pragma omp simd reduction(+ : tilt)
    for (int64_t c = 0; c < seen; c++) {
        t[c] = s[c] * (t[c] - centre);
        tilt += t[c];
    }
    for (int64_t c = seen; c < cols; c++) t[c] = 0;
    w->sum[r] += (double)add;
    w->tilt[r] += (double)tilt;
}

static void finish(float *to, const state *w, const att_head *g, int64_t i, int64_t rows)
{
    const int64_t dh = g->a->dh;
    for (int64_t r = 0; r < rows; r++) {
        const bool blind = att_visible(g, i + r) == 0;
        const float scale = blind ? 0.0f : (float)(1 / w->sum[r]);
        const float tilt = blind ? 0.0f : (float)(w->tilt[r] / w->sum[r]);
        for (int64_t c = 0; c < dh; c++) to[r * g->width + c] = (w->b[r * dh + c] - tilt * w->a[r * dh + c]) * scale;
    }
}

/* The state of `rows` queries that have met no key; q and tq come in. */
static state begin(const state *whole, const inputs *x, const att_head *g, int64_t qi, int64_t rows)
{
    const int64_t dh = g->a->dh;
    state w = *whole;
    w.t = w.s + rows * ATT_COLS;
    w.b = w.a + rows * dh;
    memset(w.a, 0, (size_t)(2 * rows * dh) * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        w.max[r] = -INFINITY;
        w.sum[r] = w.tilt[r] = w.centre[r] = 0;
        memcpy(w.qs + r * dh, x->q + qi + r * g->width, (size_t)dh * sizeof(float));
        memcpy(w.qs + (rows + r) * dh, x->tq + qi + r * g->width, (size_t)dh * sizeof(float));
    }
    return w;
}

static void jvp_rows(float *to, const inputs *x, const att_head *g, int64_t i, const state *whole)
{
    const int64_t dh = g->a->dh, rows = cpu_min(ATT_ROWS, g->a->tq - i), end = att_visible(g, i + rows - 1);
    const int64_t qi = g->q_at + i * g->width;
    const float scale = (float)g->a->scale;
    const state w = begin(whole, x, g, qi, rows);
    for (int64_t j = 0; j < end; j += ATT_COLS) {
        const att_tile t = att_tile_at(g, i, j), two = att_tile_twice(&t);
        const int64_t kj = g->k_at + j * g->width;
        att_scores(w.s, w.qs, dh, x->k + kj, g, &two, scale, 0);
        att_scores(w.t, w.qs, dh, x->tk + kj, g, &t, scale, 1);
        att_alibi(w.s, g, &t);
        for (int64_t r = 0; r < rows; r++) row_step(&w, r, t.seen[r], t.cols, dh);
        att_times(w.a, dh, w.s, x->v + kj, g, &two, 1.0f);
        att_times(w.b, dh, w.s, x->tv + kj, g, &t, 1.0f);
    }
    finish(to + qi, &w, g, i, rows);
}

void CPU(attention_jvp)(taut_real *to, const taut_real *tq, const taut_real *tk, const taut_real *tv,
                        const taut_real *q, const taut_real *k, const taut_real *v, const taut_attn *a)
{
    const int64_t tiles = (a->tq + ATT_ROWS - 1) / ATT_ROWS, tasks = a->n * a->heads * tiles;
    const inputs x = { (const float *)tq, (const float *)tk, (const float *)tv,
                       (const float *)q,  (const float *)k,  (const float *)v };
#pragma omp parallel if (tasks > 1)
    {
        float *scratch = att_scratch(2 * ATT_ROWS * (ATT_COLS + 2 * a->dh + 1));
        double sum[ATT_ROWS], tilt[ATT_ROWS];
        state w = { .s = scratch, .a = scratch + 2 * ATT_ROWS * ATT_COLS, .sum = sum, .tilt = tilt };
        w.qs = w.a + 2 * ATT_ROWS * a->dh;
        w.max = w.qs + 2 * ATT_ROWS * a->dh;
        w.centre = w.max + ATT_ROWS;
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const att_head g = att_head_of(a, task / tiles);
            jvp_rows((float *)to, &x, &g, task % tiles * ATT_ROWS, &w);
        }
        free(scratch);
    }
}
