/* Attention by position alone (taut_distance in kernels.h).  With q_ij = p_ij / gain, which sums to 1 over a row,
 *     g_ij = p_ij (gp_ij - sum_k q_ik gp_ik)      is the adjoint before the logits are gathered by distance.
 * A row's largest logit is taken off before exp.
 * Masking: keys after their query, when causal.  Poison: NaN in a row of w makes the rows of p that read it NaN.
 * Aliasing: none. */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"
#include "kernels/tile.h"

static int64_t keys_of(const taut_distance *a, int64_t i) { return a->causal ? i + 1 : a->t; }

void taut_ref_distance_softmax(taut_real *p_, const taut_real *w_, const taut_distance *a)
{
    memset(p_, 0, (size_t)(a->heads * a->t * a->t) * sizeof(double));
    for (int64_t i = 0; i < a->t; i++) {
        for (int64_t j = 0; j < keys_of(a, i); j++) {
            const int64_t column = taut_distance_column(a, i, j);
            for (int64_t h = 0; h < a->heads; h++)
                ((double *)p_)[(h * a->t + i) * a->t + j] = ((const double *)w_)[h * a->span + column];
        }
        for (int64_t h = 0; h < a->heads; h++) {
            double *p = (double *)p_ + (h * a->t + i) * a->t, most = -INFINITY, sum = 0;
            for (int64_t j = 0; j < keys_of(a, i); j++) most = fmax(most, p[j]);
            for (int64_t j = 0; j < keys_of(a, i); j++) sum += p[j] = exp(p[j] - most);
            for (int64_t j = 0; j < keys_of(a, i); j++) p[j] = ((const double *)a->gain)[h] * (p[j] / sum);
        }
    }
}

void taut_ref_distance_softmax_vjp(taut_real *gw_, const taut_real *gp_, const taut_real *p_, const taut_distance *a)
{
    for (int64_t h = 0; h < a->heads; h++)
        for (int64_t i = 0; i < a->t; i++) {
            const double *p = (const double *)p_ + (h * a->t + i) * a->t;
            const double *gp = (const double *)gp_ + (h * a->t + i) * a->t;
            double *gw = (double *)gw_ + h * a->span, mean = 0;
            for (int64_t j = 0; j < keys_of(a, i); j++) mean += p[j] / ((const double *)a->gain)[h] * gp[j];
            for (int64_t j = 0; j < keys_of(a, i); j++) gw[taut_distance_column(a, i, j)] += p[j] * (gp[j] - mean);
        }
}

/* One head of one example: o = P v, or P^T v. */
static void mix(double *o, const double *p, const double *v, const taut_distance *a, bool back)
{
    const int64_t d = a->heads * a->dh;
    if (!a->causal && !back) {
        taut_tiles(o, p, v, (taut_steps){ a->t, a->dh, a->t, d, a->t, d, 1 });
        return;
    }
    for (int64_t i = 0; i < a->t; i++) memset(o + i * d, 0, (size_t)a->dh * sizeof *o);
    for (int64_t i = 0; i < a->t; i++)
        for (int64_t j = 0; j < keys_of(a, i); j++) {
            const int64_t to = (back ? j : i) * d, from = (back ? i : j) * d;
            for (int64_t c = 0; c < a->dh; c++) o[to + c] += p[i * a->t + j] * v[from + c];
        }
}

void taut_ref_distance_mix(taut_real *o, const taut_real *p, const taut_real *v, const taut_distance *a, bool back)
{
    const int64_t d = a->heads * a->dh;
#pragma omp parallel for collapse(2) schedule(static) if (a->n * a->heads > 1)
    for (int64_t e = 0; e < a->n; e++)
        for (int64_t h = 0; h < a->heads; h++) {
            const int64_t at = e * a->t * d + h * a->dh;
            mix((double *)o + at, (const double *)p + h * a->t * a->t, (const double *)v + at, a, back);
        }
}

void taut_ref_distance_mix_vjp(taut_real *gp_, const taut_real *go_, const taut_real *v_, const taut_distance *a)
{
    const int64_t d = a->heads * a->dh;
    memset(gp_, 0, (size_t)(a->heads * a->t * a->t) * sizeof(double));
    for (int64_t e = 0; e < a->n; e++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < a->t; i++)
                for (int64_t j = 0; j < keys_of(a, i); j++) {
                    const double *go = (const double *)go_ + (e * a->t + i) * d + h * a->dh;
                    const double *v = (const double *)v_ + (e * a->t + j) * d + h * a->dh;
                    double sum = 0;
                    for (int64_t c = 0; c < a->dh; c++) sum += go[c] * v[c];
                    ((double *)gp_)[(h * a->t + i) * a->t + j] += sum;
                }
}
