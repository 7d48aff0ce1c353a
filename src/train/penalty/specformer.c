/* With u, v the unit singular vectors of the largest singular value s:  ds/dW = u v^T.  est_top_pairs finds them by power
 * iteration from the mean of the rows of W, so the same weights give the same bits.  Matrices of one shape go side by side,
 * whatever each counts in the penalty: a device is idle with one. */
#include <string.h>

#include "train/alike.h"
#include "train/constrain/hold.h"
#include "train/penalty/penalty.h"

enum { ITERATIONS = 32, MOST = 1 << 23 }; /* each is worth eight; elements of the matrices that go side by side */

typedef struct { /* matrices of one shape; zeroed before the first are asked for */
    int count;
    taut_real *w[TAUT_SIDE_BY_SIDE], *grad[TAUT_SIDE_BY_SIDE];
    double by[TAUT_SIDE_BY_SIDE]; /* what each counts in the penalty */
    int64_t rows, cols;
    int first, at; /* weights of the model: the first of this shape, and where to go on */
} group;

static double weight_of(const taut_penalty_spec *s, const char *path)
{
    const size_t len = strlen(path);
    const char *end = len > 13 ? path + len - 13 : "";
    if (strcmp(end, "attn.q.weight") == 0) return s->query;
    if (strcmp(end, "attn.k.weight") == 0) return s->key;
    return strcmp(end, "attn.v.weight") == 0 ? s->value : 0;
}

/* Whether weight j of the model goes with weight i: both count, and have one shape. */
static bool alike(const taut_model *m, const taut_penalty_spec *s, int i, int j)
{
    const taut_param *p = m->weight[i].param, *q = m->weight[j].param;
    return p->rows == q->rows && p->cols == q->cols && weight_of(s, m->weight[i].path) > 0 &&
           weight_of(s, m->weight[j].path) > 0;
}

static bool first_alike(const taut_model *m, const taut_penalty_spec *s, int i)
{
    for (int j = 0; j < i; j++)
        if (alike(m, s, i, j)) return false;
    return alike(m, s, i, i);
}

/* The next matrices like the one in g->first, as many as may go side by side. */
static void gather(group *g, const taut_model *m, const taut_penalty_spec *s)
{
    const taut_param *p = m->weight[g->first].param;
    g->rows = p->rows, g->cols = p->cols, g->count = 0;
    for (; g->at < m->weights && g->count < TAUT_SIDE_BY_SIDE; g->at++) {
        if (!alike(m, s, g->first, g->at)) continue;
        if (g->count > 0 && (g->count + 1) * g->rows * g->cols > MOST) return;
        g->w[g->count] = m->weight[g->at].param->value;
        g->grad[g->count] = m->weight[g->at].param->grad;
        g->by[g->count++] = weight_of(s, m->weight[g->at].path);
    }
}

/* False: there are no more. */
static bool next_group(group *g, const taut_model *m, const taut_penalty_spec *s)
{
    for (; s->kind == TAUT_SPECFORMER && g->first < m->weights; g->at = ++g->first) {
        if (!first_alike(m, s, g->first)) continue;
        gather(g, m, s);
        if (g->count > 0) return true;
    }
    return false;
}

int64_t taut_specformer_work(const taut_model *m, const taut_penalty_spec *s)
{
    int64_t most = 0;
    for (group g = { 0 }; next_group(&g, m, s);) {
        const int64_t vectors = g.count * (g.rows * g.cols + g.rows + g.cols);
        const int64_t need = vectors + taut_sums_len(2 * g.count) + est_top_pairs_work(g.rows, g.cols, g.count);
        if (need > most) most = need;
    }
    return most;
}

/* *sum += the sum of n, which are lost: halves are added to each other, so that a device needs few calls. */
static void add_up(const taut_kernels *k, taut_sum *sum, taut_sum *x, int64_t n)
{
    for (int64_t half; (half = n / 2) > 0; n -= half) k->sum_op(x, TAUT_SUM_ADD, 1, x, taut_sum_at(x, n - half), half);
    k->sum_op(sum, TAUT_SUM_ADD, 1, sum, x, 1);
}

static void add_group(const taut_kernels *k, const group *g, taut_sum *sum, taut_span work)
{
    const int64_t count = g->count, rows = g->rows, cols = g->cols, len = rows * cols;
    taut_real *w = taut_take(&work, count * len), *copy[TAUT_SIDE_BY_SIDE];
    taut_real *u = taut_take(&work, count * rows), *v = taut_take(&work, count * cols);
    taut_sum *top = taut_take_sums(&work, 2 * count), *by = taut_sum_at(top, count);
    taut_lay_out(k, copy, w, g->count, len);
    k->axpby_all(copy, 1, g->w, 0, g->count, len);
    k->mean_tokens(v, w, count, rows, cols); /* which is seldom across the top */
    est_top_pairs(k, top, u, v, w, count, rows, cols, ITERATIONS, work);
    k->put_sum(by, g->by, count);
    k->axpby_by(u, rows, (taut_factor){ 0, NULL }, NULL, 0, (taut_factor){ 1, by }, count, rows);
    k->gemm_each(w, w, u, v, count, rows, cols, 1, false, false, 1, 0);
    k->axpby_all(g->grad, 1, copy, 1, g->count, len);
    k->sum_op(top, TAUT_SUM_MUL, 1, top, by, count);
    add_up(k, sum, top, count);
}

void taut_specformer_add(const taut_model *m, const taut_penalty_spec *s, taut_sum *sum, taut_span work)
{
    for (group g = { 0 }; next_group(&g, m, s);) add_group(m->k, &g, sum, work);
}
