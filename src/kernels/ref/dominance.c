/* What makes a symmetric matrix dominated by a diagonal one, G <= diag(t), for any weights q = exp(l) > 0:
 *     t_i = eps + sum_j |G_ij| q_j / q_i,   r_i = 1 / t_i
 * and the adjoint of r:  gG_ij = -gr_i r_i^2 sign(G_ij) q_j / q_i  (sign(0) = 0),
 *     gl_k += sum_i gG_ik G_ik - sum_j gG_kj G_kj.
 * G is symmetric.  Poison: a NaN in G makes its row NaN, one in l everything.  Aliasing: none. */
#include <math.h>

#include "kernels/ref/ref.h"

void taut_ref_dominance(taut_real *r_, const taut_real *g_, const taut_real *l_, int64_t n, double eps)
{
    double *r = (double *)r_;
    const double *g = (const double *)g_, *l = (const double *)l_;
    for (int64_t i = 0; i < n; i++) {
        double t = eps;
        for (int64_t j = 0; j < n; j++) t += fabs(g[i * n + j]) * exp(l[j] - l[i]);
        r[i] = 1 / t;
    }
}

void taut_ref_dominance_vjp(taut_real *gg_, taut_real *gl_, const taut_real *gr_, const taut_real *r_,
                            const taut_real *g_, const taut_real *l_, int64_t n)
{
    double *gg = (double *)gg_, *gl = (double *)gl_;
    const double *gr = (const double *)gr_, *r = (const double *)r_;
    const double *g = (const double *)g_, *l = (const double *)l_;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double x = g[i * n + j], sign = isnan(x) ? x : (x > 0) - (x < 0);
            gg[i * n + j] = -gr[i] * r[i] * r[i] * sign * exp(l[j] - l[i]);
        }
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < n; i++) gl[k] += gg[i * n + k] * g[i * n + k] - gg[k * n + i] * g[k * n + i];
}
