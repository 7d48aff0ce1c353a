/* r_i = 1/(eps + sum_j |G_ij| q_j/q_i), q = exp(l), and its adjoint (formulas: ref/dominance.c).
 *
 * In double, q_j and 1/q_i apart, so |l| up to 350 neither overflows nor underflows.  By symmetry a column
 * of G is read as a row.  A row is one thread's.
 * Error     r: promise_dominance (kernels/promise.h), and gG the same; 2^-150 for results that underflow.
 *           gl: 2^-24 |gl| and (2n + 8) 2^-53 of the sum of its terms' sizes. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/cpu/cpu.h"

static double *exponentials(const float *l, int64_t n)
{
    double *q = taut_malloc((size_t)(n > 0 ? n : 1) * sizeof *q);
    TAUT_CHECK(q, "dominance: no memory for a row");
    for (int64_t i = 0; i < n; i++) q[i] = exp((double)l[i]);
    return q;
}

void CPU(dominance)(taut_real *r, const taut_real *g_, const taut_real *l, int64_t n, double eps)
{
    double *q = exponentials((const float *)l, n);
#pragma omp parallel for schedule(static) if (n * n > CPU_CHUNK)
    for (int64_t i = 0; i < n; i++) {
        const float *g = (const float *)g_ + i * n;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < n; j++) sum += (double)fabsf(g[j]) * q[j];
        ((float *)r)[i] = (float)(1 / (eps + sum / q[i]));
    }
    free(q);
}

/* w_i / q_i, w_i = gr_i r_i^2 */
static double weight(const float *gr, const float *r, const double *q, int64_t i)
{
    return (double)gr[i] * (double)r[i] * (double)r[i] / q[i];
}

void CPU(dominance_vjp)(taut_real *gg_, taut_real *gl, const taut_real *gr_, const taut_real *r_, const taut_real *g_,
                        const taut_real *l, int64_t n)
{
    const float *gr = (const float *)gr_, *r = (const float *)r_;
    double *q = exponentials((const float *)l, n);
#pragma omp parallel for schedule(static) if (n * n > CPU_CHUNK)
    for (int64_t k = 0; k < n; k++) {
        float *gg = (float *)gg_ + k * n;
        const float *g = (const float *)g_ + k * n;
        const double own = weight(gr, r, q, k);
        double from = 0, to = 0;
        for (int64_t j = 0; j < n; j++) {
            const double size = (double)fabsf(g[j]);
            const double sign = g[j] > 0 ? 1 : g[j] < 0 ? -1 : (double)g[j];
            gg[j] = (float)(-own * sign * q[j]);
            from += weight(gr, r, q, j) * size;
            to += own * size * q[j];
        }
        ((float *)gl)[k] += (float)(to - q[k] * from);
    }
    free(q);
}
