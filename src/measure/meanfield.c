/* P_ij = a_j e^{x_i.A^T x_j} / sum_k a_k e^{x_i.A^T x_k}.  Block (i, j) of the derivative is
 *     V [ P_ij (I + (x_j - m_i)(A x_i)^T) + [i = j] sum_k P_ik (x_k - m_i)(x_k - m_i)^T A ],   m_i = sum_k P_ik x_k,
 * and its norm between the weighted spaces is that of sqrt(a_i / a_j) times the block.  Few atoms, so it is written
 * out. */
#include "measure/meanfield.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bound/norm.h"

typedef struct {
    double *p, *m, *ax; /* weights of a row, its mean, A x_i */
    double *block, *j;  /* (d, d); the whole */
} room;

static void row_weights(const taut_measure_at *s, int64_t i, room *r)
{
    const int64_t d = s->d, seen = s->masked ? i + 1 : s->atoms;
    double top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < d; c++) {
        r->ax[c] = 0;
        for (int64_t e = 0; e < d; e++) r->ax[c] += s->a[c * d + e] * s->x[i * d + e];
    }
    for (int64_t j = 0; j < s->atoms; j++) {
        r->p[j] = -INFINITY;
        if (j >= seen) continue;
        r->p[j] = log(s->mass[j]);
        for (int64_t c = 0; c < d; c++) r->p[j] += r->ax[c] * s->x[j * d + c];
        top = fmax(top, r->p[j]);
    }
    for (int64_t j = 0; j < s->atoms; j++) sum += r->p[j] = exp(r->p[j] - top);
    for (int64_t c = 0; c < d; c++) r->m[c] = 0;
    for (int64_t j = 0; j < s->atoms; j++) {
        r->p[j] /= sum;
        for (int64_t c = 0; c < d; c++) r->m[c] += r->p[j] * s->x[j * d + c];
    }
}

/* block = P_ij (I + (x_j - m)(A x_i)^T), plus Cov A on the diagonal */
static void inner_block(const taut_measure_at *s, int64_t i, int64_t j, room *r)
{
    const int64_t d = s->d;
    for (int64_t c = 0; c < d; c++)
        for (int64_t e = 0; e < d; e++)
            r->block[c * d + e] = r->p[j] * ((c == e) + (s->x[j * d + c] - r->m[c]) * r->ax[e]);
    if (i != j) return;
    for (int64_t k = 0; k < s->atoms; k++)
        for (int64_t e = 0; e < d; e++) {
            double ta = 0; /* ((x_k - m)^T A)_e */
            for (int64_t c = 0; c < d; c++) ta += (s->x[k * d + c] - r->m[c]) * s->a[c * d + e];
            for (int64_t c = 0; c < d; c++) r->block[c * d + e] += r->p[k] * (s->x[k * d + c] - r->m[c]) * ta;
        }
}

double taut_meanfield_slope(const taut_measure_at *s)
{
    const int64_t n = s->atoms, d = s->d, side = n * d;
    double *memory = taut_malloc((size_t)(n + 2 * d + d * d + side * side + 1) * sizeof *memory);
    if (!memory) return NAN;
    room r = { memory, memory + n, memory + n + d, memory + n + 2 * d, memory + n + 2 * d + d * d };
    for (int64_t i = 0; i < n; i++) {
        row_weights(s, i, &r);
        for (int64_t j = 0; j < n; j++) {
            const double w = sqrt(s->mass[i] / s->mass[j]);
            inner_block(s, i, j, &r);
            for (int64_t c = 0; c < d; c++)
                for (int64_t e = 0; e < d; e++) {
                    double sum = 0;
                    for (int64_t k = 0; k < d; k++) sum += s->v[c * d + k] * r.block[k * d + e];
                    r.j[(i * d + c) * side + j * d + e] = w * sum;
                }
        }
    }
    const double norm = est_norm(r.j, side, side);
    free(memory);
    return norm;
}
