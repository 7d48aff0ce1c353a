/* r_i = 1/(eps + sum_j |G_ij| q_j/q_i), q = exp(l), and its adjoint (formulas: ref/dominance.c).
 *
 * In double, q_j and 1/q_i apart, so |l| up to 350 neither overflows nor underflows.  By symmetry a column
 * of G is read as a row.  A row is one warp's, or one block's if it is long.
 * Error     with u = 2^-24 (cuda64: 2^-53): r and gG: 2 u and (n + 8 + 2 max|l|) 2^-52 relative, and 2^-150 for results
 *           that underflow.
 *           gl: u |gl| and (2n + 8) 2^-53 of the sum of its terms' sizes. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/reduce.h"

struct exponentials {
    double *q;
    const real *l;
    __device__ double read(int64_t i) const { return exp((double)l[i]); }
    __device__ void write(int64_t i, double v) const { q[i] = v; }
};

static double *exponentials_of(const taut_real *l, int64_t n)
{
    double *q = (double *)cuda_work((size_t)n * sizeof *q);
    if (q) each(exponentials{ q, at(l) }, n);
    return q;
}

template <int TEAM>
static __global__ void __launch_bounds__(THREADS)
    dominating(real *r, const real *g, const double *q, int64_t n, double eps)
{
    const int64_t row = team_row<TEAM>();
    const int lane = team_lane<TEAM>();
    if (row >= n) return;
    double sum = 0;
    for (int64_t j = lane; j < n; j += TEAM) sum += (double)fabs(g[row * n + j]) * q[j];
    sum = team_sum<TEAM>(sum);
    if (lane == 0) r[row] = (real)(1 / (eps + sum / q[row]));
}

void CUDA(dominance)(taut_real *r, const taut_real *g, const taut_real *l, int64_t n, double eps)
{
    const double *q = exponentials_of(l, n);
    if (q) CUDA_ROWS(dominating, n, n, at(r), at(g), q, n, eps);
}

/* w_i / q_i, w_i = gr_i r_i^2 */
__device__ static inline double weight(const real *gr, const real *r, const double *q, int64_t i)
{
    return (double)gr[i] * (double)r[i] * (double)r[i] / q[i];
}

template <int TEAM>
static __global__ void __launch_bounds__(THREADS)
    dominating_vjp(real *gg, real *gl, const real *gr, const real *r, const real *g, const double *q, int64_t n)
{
    const int64_t k = team_row<TEAM>();
    const int lane = team_lane<TEAM>();
    if (k >= n) return;
    const double own = weight(gr, r, q, k);
    double from = 0, to = 0;
    for (int64_t j = lane; j < n; j += TEAM) {
        const double x = (double)g[k * n + j], size = fabs(x), sign = x > 0 ? 1 : x < 0 ? -1 : x;
        gg[k * n + j] = (real)(-own * sign * q[j]);
        from += weight(gr, r, q, j) * size;
        to += own * size * q[j];
    }
    from = team_sum<TEAM>(from), to = team_sum<TEAM>(to);
    if (lane == 0) gl[k] = (real)((double)gl[k] + (to - q[k] * from));
}

void CUDA(dominance_vjp)(taut_real *gg, taut_real *gl, const taut_real *gr, const taut_real *r, const taut_real *g,
                         const taut_real *l, int64_t n)
{
    const double *q = exponentials_of(l, n);
    if (q) CUDA_ROWS(dominating_vjp, n, n, at(gg), at(gl), at(gr), at(r), at(g), q, n);
}
