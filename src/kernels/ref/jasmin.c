/* The JaSMin penalty of attention, one row at a time (the row: kernels/jasmin.h).
 *     value   sum over examples and heads of the largest (or the mean) of its rows' penalties
 *     gq_i += weight scale sum_j gz_ij k_j,   gk_j += weight scale sum_i gz_ij q_i,   gz of the row that is largest (the
 *     first of equals), or of every row, divided by how many count.
 * Masking: a row is what its query sees.  A head without a row that counts adds nothing.  NaN spreads. */
#include "kernels/jasmin.h"

#include "kernels/ref/attention.h"

typedef struct {
    taut_real *gq, *gk;
    const taut_real *q, *k;
    const taut_attn *a;
    const taut_jasmin *p;
} call;

/* Row i's penalty; gz is then its derivative by the logits. */
static double row(const call *c, int64_t e, int64_t h, int64_t i, double *x, double *gz)
{
    const int64_t keys = visible(c->a, i);
    logits(x, c->q, c->k, c->a, e, h, i, keys);
    softmax(x, keys);
    return jasmin_row(gz, x, keys, c->p);
}

static void spread(const call *c, int64_t e, int64_t h, int64_t i, const double *gz, double weight)
{
    const taut_attn *a = c->a;
    double *gq = at(c->gq, a, a->tq, e, h, i);
    const double *q = at(c->q, a, a->tq, e, h, i);
    for (int64_t j = 0; j < visible(a, i); j++) {
        const double *k = at(c->k, a, a->tk, e, h, j), g = weight * a->scale * gz[j];
        double *gk = at(c->gk, a, a->tk, e, h, j);
        for (int64_t d = 0; d < a->dh; d++) gq[d] += g * k[d], gk[d] += g * q[d];
    }
}

static double head(const call *c, int64_t e, int64_t h, double *x, double *gz)
{
    int64_t count = 0, worst = -1;
    double sum = 0, most = 0;
    for (int64_t i = 0; i < c->a->tq; i++) {
        if (!jasmin_counts(c->p, visible(c->a, i))) continue;
        const double value = row(c, e, h, i, x, gz);
        if (worst < 0 || value > most) worst = i, most = value;
        sum += value;
        count++;
    }
    if (!count) return 0;
    for (int64_t i = 0; i < c->a->tq; i++) {
        if (!jasmin_counts(c->p, visible(c->a, i)) || (!c->p->mean && i != worst)) continue;
        row(c, e, h, i, x, gz);
        spread(c, e, h, i, gz, c->p->weight / (c->p->mean ? (double)count : 1));
    }
    return c->p->mean ? sum / (double)count : most;
}

void taut_ref_attention_jasmin(taut_sum *sum, taut_real *gq, taut_real *gk, const taut_real *q, const taut_real *k,
                               const taut_attn *a, const taut_jasmin *p)
{
    const call c = { gq, gk, q, k, a, p };
    double *x = rows_new(2 * a->tk), value = 0;
    for (int64_t e = 0; e < a->n; e++)
        for (int64_t h = 0; h < a->heads; h++) value += head(&c, e, h, x, x + a->tk);
    free(x);
    *(double *)sum += p->weight * value;
}
