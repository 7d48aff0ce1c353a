/* The JaSMin penalty of attention (formulas: ref/jasmin.c).  A head is one thread's work, a row's numbers are doubles, and
 * gq and gk are rounded to float once a head: row maxima and eps are no place to save bits.
 *
 * Error     gq, gk: 2^-24 of the entry, and what doubles lose; the value as in ref to 1e-12 of the sum of its rows'.
 *           Next to a tie of two rows (max), or of two entries, either may be taken.
 * Masking, poison   as in ref/jasmin.c. */
#include "kernels/jasmin.h"

#include "kernels/cpu/attention.h"

typedef struct {
    float *gq, *gk;
    const float *q, *k;
    const taut_jasmin *p;
    double *x, *gz, *sum_k; /* (tk) the row, (tk) its derivative, (tk, dh) what is added to gk */
} work;

static double dot(const float *a, const float *b, int64_t d)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < d; c++) sum += (double)a[c] * (double)b[c];
    return sum;
}

static double row(const work *w, const att_head *g, int64_t i, int64_t keys)
{
    const taut_attn *a = g->a;
    double most = -INFINITY, sum = 0, *x = w->x;
    const double slope = a->alibi ? exp2(-8.0 * (double)(g->lse_at / a->tq % a->heads + 1) / (double)a->heads) : 0;
    for (int64_t j = 0; j < keys; j++) {
        x[j] = a->scale * dot(w->q + g->q_at + i * g->width, w->k + g->k_at + j * g->width, a->dh) -
               slope * fabs((double)(i + a->tk - a->tq - j));
        most = x[j] > most ? x[j] : most;
    }
    for (int64_t j = 0; j < keys; j++) sum += x[j] = exp(x[j] - most);
    for (int64_t j = 0; j < keys; j++) x[j] /= sum;
    return jasmin_row(w->gz, x, keys, w->p);
}

static void spread(const work *w, const att_head *g, int64_t i, int64_t keys, double weight)
{
    const int64_t dh = g->a->dh;
    const float *q = w->q + g->q_at + i * g->width;
    float *gq = w->gq + g->q_at + i * g->width;
    for (int64_t j = 0; j < keys; j++) {
        const double each = weight * g->a->scale * w->gz[j];
        double *to = w->sum_k + j * dh;
#pragma omp simd
        for (int64_t c = 0; c < dh; c++) to[c] += each * (double)q[c];
        w->gz[j] = each;
    }
    for (int64_t c = 0; c < dh; c++) {
        double sum = 0;
        for (int64_t j = 0; j < keys; j++) sum += w->gz[j] * (double)w->k[g->k_at + j * g->width + c];
        gq[c] = (float)(gq[c] + sum);
    }
}

static double head(const work *w, const att_head *g)
{
    const int64_t tq = g->a->tq, dh = g->a->dh;
    int64_t count = 0, worst = -1;
    double sum = 0, most = 0;
    for (int64_t i = 0; i < tq; i++) count += jasmin_counts(w->p, att_visible(g, i));
    memset(w->sum_k, 0, (size_t)(g->a->tk * dh) * sizeof(double));
    for (int64_t i = 0; i < tq; i++) {
        if (!jasmin_counts(w->p, att_visible(g, i))) continue;
        const double value = row(w, g, i, att_visible(g, i));
        if (worst < 0 || value > most) worst = i, most = value;
        sum += value;
        if (w->p->mean) spread(w, g, i, att_visible(g, i), w->p->weight / (double)count);
    }
    if (!count) return 0;
    if (!w->p->mean) {
        row(w, g, worst, att_visible(g, worst));
        spread(w, g, worst, att_visible(g, worst), w->p->weight);
    }
    for (int64_t j = 0; j < g->keys; j++)
        for (int64_t c = 0; c < dh; c++) {
            float *gk = w->gk + g->k_at + j * g->width + c;
            *gk = (float)(*gk + w->sum_k[j * dh + c]);
        }
    return w->p->mean ? sum / (double)count : most;
}

void CPU(attention_jasmin)(taut_sum *sum, taut_real *gq, taut_real *gk, const taut_real *q, const taut_real *k,
                           const taut_attn *a, const taut_jasmin *p)
{
    const int64_t heads = a->n * a->heads;
    double *part = taut_malloc((size_t)(heads + 1) * sizeof *part), value = 0;
    TAUT_CHECK(part, "jasmin: no memory for a number a head");
#pragma omp parallel if (heads > 1)
    {
        double *x = taut_malloc((size_t)(a->tk * (2 + a->dh) + 1) * sizeof *x);
        TAUT_CHECK(x, "jasmin: no memory for a head");
        const work w = { (float *)gq, (float *)gk, (const float *)q, (const float *)k, p, x, x + a->tk, x + 2 * a->tk };
#pragma omp for schedule(static)
        for (int64_t i = 0; i < heads; i++) {
            const att_head g = att_head_of(a, i);
            part[i] = head(&w, &g);
        }
        free(x);
    }
    for (int64_t i = 0; i < heads; i++) value += part[i];
    free(part);
    *(double *)sum += p->weight * value;
}
