/* AttLip's potential, one row of pairs at a time: nothing of N x N is kept.
 *
 *   S_ij = scale |v_i + v_j|^2 - near 2^(-h/2) |i - j|,  h the head, from 0
 *   t_ij = S_ij - scale |v_i|^2 = scale v_j.(v_j + 2 v_i) - near 2^(-h/2) |i - j|
 *   value  f = 1/2 sum_i ln sum_j exp S_ij;  max_i = max_j t_ij, sum_i = sum_j exp(t_ij - max_i)
 *   grad   alpha_ij = exp(t_ij - max_i) / sum_i,  col_k = sum_i alpha_ik,
 *          g_k = scale [ (1 + col_k) v_k + sum_i (alpha_ki + alpha_ik) v_i ]
 *   hvp    dS_ij = 2 scale (v_i + v_j).(e_i + e_j),  mean_i = sum_j alpha_ij dS_ij,
 *          B_ij = alpha_ij (dS_ij - mean_i),  dcol_k = sum_i B_ik,
 *          h_k = scale [ (1 + col_k) e_k + dcol_k v_k + sum_i (alpha_ki + alpha_ik) e_i + (B_ki + B_ik) v_i ]
 * t_ij is summed in one way only, for alpha_ij and again where alpha_ji is wanted: the rows of alpha then sum to 1
 * as well as the sums were made, however large the logits.
 * Poison: NaN in a token reaches every token of its head. */
#include <math.h>

#include "kernels/ref/ref.h"

static const double *token(const taut_real *x, const taut_attn *a, int64_t e, int64_t h, int64_t i)
{
    return (const double *)x + ((e * a->tq + i) * a->heads + h) * a->dh;
}

static double slope(const double *vi, const double *vj, const double *ei, const double *ej, const taut_attn *a)
{
    double sum = 0;
    for (int64_t c = 0; c < a->dh; c++) sum += (vi[c] + vj[c]) * (ei[c] + ej[c]);
    return 2 * a->scale * sum;
}

typedef struct {
    const taut_attn *a;
    const taut_real *v, *e;
    const double *max, *sum;
    int64_t example, head, rows, tokens; /* rows: where the head starts in max, sum, col and mean */
} scene;

static scene scene_at(const taut_attn *a, int64_t index, const taut_real *v, const taut_real *e, const taut_real *max,
                      const taut_real *sum)
{
    scene s = { a, v, e, (const double *)max, (const double *)sum, index / a->heads, index % a->heads, 0, 0 };
    s.rows = index * a->tq;
    s.tokens = a->tq;
    return s;
}

static double logit(const scene *s, int64_t i, int64_t j)
{
    const double *vi = token(s->v, s->a, s->example, s->head, i), *vj = token(s->v, s->a, s->example, s->head, j);
    double sum = 0;
    for (int64_t c = 0; c < s->a->dh; c++) sum += vj[c] * (vj[c] + 2 * vi[c]);
    return s->a->scale * sum - s->a->near * exp2(-0.5 * (double)s->head) * fabs((double)(i - j));
}

static double alpha(const scene *s, int64_t i, int64_t j)
{
    return exp(logit(s, i, j) - s->max[s->rows + i]) / s->sum[s->rows + i];
}

void taut_ref_attlip(taut_sum *f_, taut_real *max_, taut_real *sum_, const taut_real *v, const taut_attn *a)
{
    double *f = (double *)f_;
    double *max = (double *)max_, *sum = (double *)sum_;
    for (int64_t e = 0; e < a->n; e++) f[e] = 0;
    for (int64_t index = 0; index < a->n * a->heads; index++) {
        const scene s = scene_at(a, index, v, NULL, max_, sum_);
#pragma omp parallel for schedule(static) if (a->tq > 16)
        for (int64_t i = 0; i < a->tq; i++) {
            const int64_t row = s.rows + i;
            double top = -INFINITY, all = 0;
            for (int64_t j = 0; j < s.tokens; j++) {
                const double t = logit(&s, i, j);
                if (!(t <= top)) top = t;
            }
            for (int64_t j = 0; j < s.tokens; j++) all += exp(logit(&s, i, j) - top);
            max[row] = top;
            sum[row] = all;
        }
        for (int64_t i = 0; i < s.tokens; i++) {
            double u = 0;
            for (int64_t c = 0; c < a->dh; c++)
                u += token(v, a, s.example, s.head, i)[c] * token(v, a, s.example, s.head, i)[c];
            f[s.example] += 0.5 * (a->scale * u + max[s.rows + i] + log(sum[s.rows + i]));
        }
    }
}

static void grad_row(double *g, double *col, const scene *s, int64_t i)
{
    const taut_attn *a = s->a;
    for (int64_t c = 0; c < a->dh; c++) g[c] = 0;
    *col = 0;
    for (int64_t j = 0; j < s->tokens; j++) {
        const double p = alpha(s, i, j), q = alpha(s, j, i), *vj = token(s->v, a, s->example, s->head, j);
        *col += q;
        for (int64_t c = 0; c < a->dh; c++) g[c] += (p + q) * vj[c];
    }
    for (int64_t c = 0; c < a->dh; c++)
        g[c] = a->scale * ((1 + *col) * token(s->v, a, s->example, s->head, i)[c] + g[c]);
}

void taut_ref_attlip_grad(taut_real *g, taut_real *col, const taut_real *v, const taut_real *max, const taut_real *sum,
                          const taut_attn *a)
{
    for (int64_t index = 0; index < a->n * a->heads; index++) {
        const scene s = scene_at(a, index, v, NULL, max, sum);
#pragma omp parallel for schedule(static) if (a->tq > 16)
        for (int64_t i = 0; i < a->tq; i++)
            grad_row((double *)token(g, a, s.example, s.head, i), (double *)col + s.rows + i, &s, i);
    }
}

static double slope_at(const scene *s, int64_t i, int64_t j)
{
    const int64_t e = s->example, h = s->head;
    return slope(token(s->v, s->a, e, h, i), token(s->v, s->a, e, h, j), token(s->e, s->a, e, h, i),
                 token(s->e, s->a, e, h, j), s->a);
}

static void hvp_row(double *out, const double *mean, double col, const scene *s, int64_t i)
{
    const taut_attn *a = s->a;
    const double *vi = token(s->v, a, s->example, s->head, i), *ei = token(s->e, a, s->example, s->head, i);
    double dcol = 0;
    for (int64_t c = 0; c < a->dh; c++) out[c] = 0;
    for (int64_t j = 0; j < s->tokens; j++) {
        const double p = alpha(s, i, j), q = alpha(s, j, i), ds = slope_at(s, i, j);
        const double bp = p * (ds - mean[i]), bq = q * (ds - mean[j]);
        const double *vj = token(s->v, a, s->example, s->head, j), *ej = token(s->e, a, s->example, s->head, j);
        dcol += bq;
        for (int64_t c = 0; c < a->dh; c++) out[c] += (p + q) * ej[c] + (bp + bq) * vj[c];
    }
    for (int64_t c = 0; c < a->dh; c++) out[c] = a->scale * ((1 + col) * ei[c] + dcol * vi[c] + out[c]);
}

void taut_ref_attlip_hvp(taut_real *out, taut_real *mean_, const taut_real *e, const taut_real *v, const taut_real *max,
                         const taut_real *sum, const taut_real *col, const taut_attn *a)
{
    for (int64_t index = 0; index < a->n * a->heads; index++) {
        const scene s = scene_at(a, index, v, e, max, sum);
        double *mean = (double *)mean_ + s.rows;
#pragma omp parallel for schedule(static) if (a->tq > 16)
        for (int64_t i = 0; i < a->tq; i++) {
            mean[i] = 0;
            for (int64_t j = 0; j < s.tokens; j++) mean[i] += alpha(&s, i, j) * slope_at(&s, i, j);
        }
#pragma omp parallel for schedule(static) if (a->tq > 16)
        for (int64_t i = 0; i < a->tq; i++)
            hvp_row((double *)token(out, a, s.example, s.head, i), mean, ((const double *)col)[s.rows + i], &s, i);
    }
}
