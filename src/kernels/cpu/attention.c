/* Softmax attention, forward (formulas: ref/attention.c): tiles of queries against tiles of keys.
 *
 * A tile of scores lives in scratch; of every query only the running maximum m, the sum l of exp(S - m) and
 * the unscaled output are kept, and all are scaled by exp(m_old - m_new) when the maximum moves.  Memory is
 * O(1) a thread, and where many tiles of queries meet the same keys, a copy of keys and values as products read
 * them.  Tiles that are masked altogether are skipped, so a causal call costs about half.
 * Masking   masked keys are exact zeros and are never read into a result, not even a NaN in them.
 * Poison    NaN or infinity in q_i, or in k_j or v_j that i sees, makes o_i NaN.
 * Error     with u = 2^-24, V = max |v| a column, E = (dh+4) u scale |q|.|k| + 3 u |alibi| the worst error
 *           of a logit (absolute values inside the product):
 *           |o - exact| <= (2 E + promise_attention_mean) V,  |lse - exact| <= E + promise_lse.
 *           Of the values' sum, in tiles of 256 keys, tk + 8 a tile: a product may add what was there first.  Of the weights'
 *           sum in float min(tk, 256).  A weight p = exp(S - max) / sum is off by 2 u and by u |S - max|, whose mean sum p
 *           |S - max| is ln tk at most (max - S <= -ln p, and the mean of that is an entropy), above and below the
 *           line.  A tile that moves the maximum costs 6 u more, the end 3 u: 14/256 a key. */
#include "kernels/cpu/attention_packs.h"

typedef struct {
    float *s, *out, *max;
    double *sum;
} state;

/* One row meets one tile: s becomes exp(s - max), and what was gathered before is brought to the new max. */
static void row_step(float *s, float *out, float *max, double *sum, int64_t seen, int64_t cols, int64_t dh)
{
    const float top = vm_max(s, seen), old = *max, now = top > old ? top : old;
    const float base = now == -INFINITY ? 0.0f : now;
    const float add = att_exp(s, seen, cols, base);
    if (now != old) {
        const float shrink = vm_exp(old - base);
        for (int64_t c = 0; c < dh; c++) out[c] *= shrink;
        *sum *= (double)shrink;
        *max = now;
    }
    *sum += (double)add;
}

static void finish(float *o, float *lse, const state *w, const att_head *g, int64_t i, int64_t rows)
{
    const int64_t dh = g->a->dh;
    for (int64_t r = 0; r < rows; r++) {
        const bool blind = att_visible(g, i + r) == 0;
        const float scale = blind ? 0.0f : (float)(1 / w->sum[r]);
        for (int64_t c = 0; c < dh; c++) o[r * g->width + c] = w->out[r * dh + c] * scale;
        lse[r] = blind ? -INFINITY : (float)((double)w->max[r] + log(w->sum[r]));
    }
}

static void forward_rows(float *o, float *lse, const float *q, const att_packs *kv, const att_head *g, int64_t head,
                         int64_t i, state *w)
{
    const int64_t dh = g->a->dh, rows = cpu_min(ATT_ROWS, g->a->tq - i), end = att_visible(g, i + rows - 1);
    memset(w->out, 0, (size_t)(rows * dh) * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        w->max[r] = -INFINITY;
        w->sum[r] = 0;
    }
    for (int64_t j = 0; j < end; j += ATT_COLS) {
        const att_tile t = att_tile_at(g, i, j, ATT_ROWS);
        att_scores(w->s, q + g->q_at + i * g->width, g->width, &kv->of[0], head, g, &t, (float)g->a->scale, 0);
        att_alibi(w->s, g, &t);
        for (int64_t r = 0; r < rows; r++)
            row_step(w->s + r * t.stride, w->out + r * dh, &w->max[r], &w->sum[r], t.seen[r], t.cols, dh);
        att_times_packed(w->out, dh, w->s, &kv->of[1], head, g, &t, 1);
    }
    finish(o + g->q_at + i * g->width, lse + g->lse_at + i, w, g, i, rows);
}

void CPU(attention)(taut_real *o, taut_real *lse, const taut_real *q, const taut_real *k, const taut_real *v,
                    const taut_attn *a)
{
    const int64_t tiles = (a->tq + ATT_ROWS - 1) / ATT_ROWS, tasks = a->n * a->heads * tiles;
    att_packs kv = { .count = 0 };
    att_packs_add(&kv, a, (const float *)k, true);
    att_packs_add(&kv, a, (const float *)v, false);
    att_packs_begin(&kv, a);
#pragma omp parallel if (tasks > 1)
    {
        att_packs_fill(&kv, a);
        float *scratch = att_scratch(ATT_TILE + ATT_ROWS * (a->dh + 1));
        double sum[ATT_ROWS];
        state w = { scratch, scratch + ATT_TILE, scratch + ATT_TILE + ATT_ROWS * a->dh, sum };
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const att_head g = att_head_of(a, task / tiles);
            forward_rows((float *)o, (float *)lse, (const float *)q, &kv, &g, task / tiles, task % tiles * ATT_ROWS,
                         &w);
        }
        free(scratch);
    }
    free(kv.memory);
}
