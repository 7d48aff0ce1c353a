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
#include "kernels/cpu/attention.h"

typedef struct {
    float *s, *out, *max;
    double *sum;
} state;

/* Keys and values of all heads, packed for products (multiply.h).  k NULL: they are not, each product packs its own. */
typedef struct {
    float *k, *v;
    int64_t k_len, v_len; /* of a head's keys, and of one tile of its values */
    int64_t tiles;        /* of a head's keys */
} packs;

static packs packs_new(const taut_attn *a)
{
    packs p = { .k_len = CPU(packed)(a->tq, a->tk, a->dh),
                .v_len = CPU(packed)(a->tq, a->dh, ATT_COLS),
                .tiles = (a->tk + ATT_COLS - 1) / ATT_COLS };
    const int64_t heads = a->n * a->heads;
    if (p.k_len > 0 && p.v_len > 0)
        p.k = taut_malloc_aligned((size_t)(heads * (p.k_len + p.tiles * p.v_len)) * sizeof(float));
    p.v = p.k ? p.k + heads * p.k_len : NULL;
    return p;
}

/* A panel of a head's keys; behind those, a tile of its values. */
static int64_t pack_tasks(const packs *p, const taut_attn *a) { return p->k ? cpu_panels(a->tk, a->dh) + p->tiles : 0; }

static void pack_task(const packs *p, const float *k, const float *v, const att_head *g, int64_t head, int64_t task)
{
    const taut_attn *a = g->a;
    const int64_t panels = cpu_panels(a->tk, a->dh), tile = task - panels, j = tile * ATT_COLS;
    if (task < panels) {
        CPU(pack)(p->k + head * p->k_len, (cpu_matrix){ k + g->k_at, g->width, true }, a->tk, a->dh, task);
        return;
    }
    const cpu_matrix from = { v + g->k_at + j * g->width, g->width, false };
    const int64_t keys = cpu_min(ATT_COLS, a->tk - j);
    for (int64_t i = 0; i < cpu_panels(a->dh, keys); i++)
        CPU(pack)(p->v + (head * p->tiles + tile) * p->v_len, from, a->dh, keys, i);
}

/* s = scale q k^T of a tile */
static void scores(float *s, const float *q, const float *k, const att_head *g, const att_tile *t, const packs *p,
                   int64_t head)
{
    const float scale = (float)g->a->scale;
    if (!p->k) {
        att_scores(s, q, g->width, k + g->k_at + t->j * g->width, g, t, scale, 0);
        return;
    }
    const cpu_packed b = { p->k + head * p->k_len, g->a->tk, t->j };
    CPU(multiply_packed)
    (s, t->stride, (cpu_matrix){ q, g->width, false }, b, t->rows, t->cols, g->a->dh, scale, 0, NULL);
}

/* out += s v of a tile; values were packed for whole ones */
static void gather(float *out, const float *s, const float *v, const att_head *g, const att_tile *t, const packs *p,
                   int64_t head)
{
    const int64_t dh = g->a->dh;
    if (!p->k || !t->whole || t->cols < cpu_min(ATT_COLS, g->a->tk - t->j)) {
        att_times(out, dh, s, v + g->k_at + t->j * g->width, g, t, 1.0f);
        return;
    }
    const cpu_packed b = { p->v + (head * p->tiles + t->j / ATT_COLS) * p->v_len, dh, 0 };
    CPU(multiply_packed)(out, dh, (cpu_matrix){ s, t->stride, false }, b, t->rows, dh, t->cols, 1, 1, NULL);
}

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

static void forward_rows(float *o, float *lse, const float *q, const float *k, const float *v, const att_head *g,
                         int64_t i, state *w, const packs *p, int64_t head)
{
    const int64_t dh = g->a->dh, rows = cpu_min(ATT_ROWS, g->a->tq - i), end = att_visible(g, i + rows - 1);
    memset(w->out, 0, (size_t)(rows * dh) * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        w->max[r] = -INFINITY;
        w->sum[r] = 0;
    }
    for (int64_t j = 0; j < end; j += ATT_COLS) {
        const att_tile t = att_tile_at(g, i, j);
        scores(w->s, q + g->q_at + i * g->width, k, g, &t, p, head);
        att_alibi(w->s, g, &t);
        for (int64_t r = 0; r < rows; r++)
            row_step(w->s + r * ATT_COLS, w->out + r * dh, &w->max[r], &w->sum[r], t.seen[r], t.cols, dh);
        gather(w->out, w->s, v, g, &t, p, head);
    }
    finish(o + g->q_at + i * g->width, lse + g->lse_at + i, w, g, i, rows);
}

void CPU(attention)(taut_real *o, taut_real *lse, const taut_real *q, const taut_real *k, const taut_real *v,
                    const taut_attn *a)
{
    const int64_t tiles = (a->tq + ATT_ROWS - 1) / ATT_ROWS, tasks = a->n * a->heads * tiles;
    const packs p = packs_new(a);
    const int64_t packing = pack_tasks(&p, a);
#pragma omp parallel if (tasks > 1)
    {
#pragma omp for schedule(static)
        for (int64_t task = 0; task < a->n * a->heads * packing; task++) {
            const att_head g = att_head_of(a, task / packing);
            pack_task(&p, (const float *)k, (const float *)v, &g, task / packing, task % packing);
        }
        float *scratch = att_scratch(ATT_ROWS * (ATT_COLS + a->dh + 1));
        double sum[ATT_ROWS];
        state w = { scratch, scratch + ATT_ROWS * ATT_COLS, scratch + ATT_ROWS * (ATT_COLS + a->dh), sum };
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const att_head g = att_head_of(a, task / tiles);
            forward_rows((float *)o, (float *)lse, (const float *)q, (const float *)k, (const float *)v, &g,
                         task % tiles * ATT_ROWS, &w, &p, task / tiles);
        }
        free(scratch);
    }
    free(p.k);
}
