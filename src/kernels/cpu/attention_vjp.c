/* Softmax attention, vjp (formulas: ref/attention.c): P = exp(S - lse) is made anew, tile by tile.
 *
 * gq_i adds over keys, gk_j and gv_j over queries.  With a head or more a thread, one pass over a head's
 * tiles serves all three.  With fewer, tiles are the parallel work and there are two passes, one by queries
 * for gq and one by keys for gk and gv; 7 products a tile instead of 5, but the same products added in the
 * same order, so the same bits.
 * Masking   as in attention.c; masked keys and blind queries get exact zeros.
 * Poison    NaN in a query's q, go, o or lse reaches gq there and gk, gv of the keys it sees.
 * Error     with u = 2^-24, E of attention.c (plus the caller's error of lse) and C = (dh+4) u
 * |go|.(|v|+|o|): dS is off by P (C + (E + 4 u) |go|.(|v|+|o|)), and every sum of N products adds (300 +
 * N/64) u of its absolute terms. */
#include <omp.h>

#include "kernels/cpu/attention_packs.h"

enum { K_TURNED, V_TURNED, K };
typedef struct {
    float *gq, *gk, *gv;
    const float *go, *o, *lse, *q;
    att_packs keys; /* K_TURNED, V_TURNED, K */
} arrays;

static void row_step(float *p, float *ds, int64_t seen, int64_t cols, float lse, float delta)
{
    att_exp(p, seen, cols, lse);
#pragma omp simd
    for (int64_t c = 0; c < seen; c++) ds[c] = p[c] * (ds[c] - delta);
    for (int64_t c = seen; c < cols; c++) ds[c] = 0;
}

/* One tile's part of the sums that are asked for. */
static void tile_step(const arrays *x, const att_head *g, int64_t head, int64_t i, int64_t j, bool queries, bool keys,
                      float *scratch)
{
    const att_tile t = att_tile_at(g, i, j, ATT_ROWS);
    if (t.cols <= 0) return;
    const int64_t qi = g->q_at + i * g->width, kj = g->k_at + j * g->width;
    const float scale = (float)g->a->scale;
    float *p = scratch, *ds = scratch + ATT_TILE;
    att_scores(p, x->q + qi, g->width, &x->keys.of[K_TURNED], head, g, &t, scale, 0);
    att_scores(ds, x->go + qi, g->width, &x->keys.of[V_TURNED], head, g, &t, 1, 0);
    att_alibi(p, g, &t);
    for (int64_t r = 0; r < t.rows; r++) {
        const int64_t row = qi + r * g->width;
        const float delta = att_dot(x->go + row, x->o + row, g->a->dh);
        row_step(p + r * t.stride, ds + r * t.stride, t.seen[r], t.cols, x->lse[g->lse_at + i + r], delta);
    }
    if (queries) att_times_packed(x->gq + qi, g->width, ds, &x->keys.of[K], head, g, &t, scale);
    if (keys) {
        att_trans_times(x->gv + kj, p, x->go + qi, g, &t, 1);
        att_trans_times(x->gk + kj, ds, x->q + qi, g, &t, scale);
    }
}

static void clear(float *x, int64_t rows, const att_head *g)
{
    for (int64_t r = 0; r < rows; r++) memset(x + r * g->width, 0, (size_t)g->a->dh * sizeof(float));
}

static void whole_head(const arrays *x, const att_head *g, int64_t head, float *scratch)
{
    clear(x->gq + g->q_at, g->a->tq, g);
    clear(x->gk + g->k_at, g->a->tk, g);
    clear(x->gv + g->k_at, g->a->tk, g);
    for (int64_t j = 0; j < g->keys; j += ATT_COLS)
        for (int64_t i = 0; i < g->a->tq; i += ATT_ROWS) tile_step(x, g, head, i, j, true, true, scratch);
}

static void query_rows(const arrays *x, const att_head *g, int64_t head, int64_t i, float *scratch)
{
    clear(x->gq + g->q_at + i * g->width, cpu_min(ATT_ROWS, g->a->tq - i), g);
    for (int64_t j = 0; j < g->keys; j += ATT_COLS) tile_step(x, g, head, i, j, true, false, scratch);
}

static void key_rows(const arrays *x, const att_head *g, int64_t head, int64_t j, float *scratch)
{
    const int64_t rows = cpu_min(ATT_COLS, g->a->tk - j), kj = g->k_at + j * g->width;
    clear(x->gk + kj, rows, g);
    clear(x->gv + kj, rows, g);
    if (j >= g->keys) return;
    for (int64_t i = 0; i < g->a->tq; i += ATT_ROWS) tile_step(x, g, head, i, j, false, true, scratch);
}

void CPU(attention_vjp)(taut_real *gq, taut_real *gk, taut_real *gv, const taut_real *go, const taut_real *o,
                        const taut_real *lse, const taut_real *q, const taut_real *k, const taut_real *v,
                        const taut_attn *a)
{
    arrays x = { (float *)gq,      (float *)gk,        (float *)gv,      (const float *)go,
                 (const float *)o, (const float *)lse, (const float *)q, { .count = 0 } };
    const int64_t heads = a->n * a->heads, threads = omp_get_max_threads();
    const int64_t over = (a->tq + ATT_ROWS - 1) / ATT_ROWS, under = (a->tk + ATT_COLS - 1) / ATT_COLS;
    const bool one_pass = (heads + threads - 1) / threads * 5 * threads <= 7 * heads;
    const int64_t tasks = one_pass ? heads : heads * (over + under);
    att_packs_add(&x.keys, a, (const float *)k, true);
    att_packs_add(&x.keys, a, (const float *)v, true);
    att_packs_add(&x.keys, a, (const float *)k, false);
    att_packs_begin(&x.keys, a);
#pragma omp parallel if (tasks > 1)
    {
        att_packs_fill(&x.keys, a);
        float *scratch = att_scratch(2 * ATT_TILE);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const int64_t part = task / heads, head = task % heads;
            const att_head g = att_head_of(a, head);
            if (one_pass)
                whole_head(&x, &g, head, scratch);
            else if (part < under)
                key_rows(&x, &g, head, part * ATT_COLS, scratch);
            else
                query_rows(&x, &g, head, (part - under) * ATT_ROWS, scratch);
        }
        free(scratch);
    }
    free(x.keys.memory);
}
