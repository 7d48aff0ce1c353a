/* Distances as inner products (ref/lift.c).  A row is one warp's, or one block's if it is long.
 *
 * Error, u = 2^-24 (cuda64: 2^-53): copies are exact; the last entries are sums of d products in double, off by 2 u of
 * themselves; g is off by 2 u (|gq'| + |gk'| + |q gk'_last|). */
#include "kernels/cuda/each.h"
#include "kernels/cuda/reduce.h"

/* left = [x, one], right = [x, factor q.x] */
template <int TEAM>
static __global__ void __launch_bounds__(THREADS)
    lifted(real *left, real *right, const real *x, const real *q, int64_t rows, int64_t d, real one, double factor)
{
    const int64_t row = team_row<TEAM>();
    const int lane = team_lane<TEAM>();
    if (row >= rows) return;
    left += row * (d + 1), right += row * (d + 1), x += row * d, q += row * d;
    double sum = 0;
    for (int64_t c = lane; c < d; c += TEAM) {
        left[c] = right[c] = x[c];
        sum += (double)q[c] * (double)x[c];
    }
    sum = team_sum<TEAM>(sum);
    if (lane == 0) left[d] = one, right[d] = (real)(factor * sum);
}

void CUDA(lift)(taut_real *left, taut_real *right, const taut_real *q, int64_t rows, int64_t d)
{
    CUDA_ROWS(lifted, rows, d, at(left), at(right), at(q), at(q), rows, d, (real)1, -0.5);
}

void CUDA(lift_jvp)(taut_real *left, taut_real *right, const taut_real *t, const taut_real *q, int64_t rows, int64_t d)
{
    CUDA_ROWS(lifted, rows, d, at(left), at(right), at(t), at(q), rows, d, (real)0, -1.0);
}

struct lowered {
    real *g;
    const real *left, *right, *q;
    int64_t d;
    divisor row;
    __device__ real read(int64_t i) const
    {
        const int64_t r = row.quotient(i), here = i + r, end = r * (d + 1) + d;
        return left[here] + right[here] - q[i] * right[end];
    }
    __device__ void write(int64_t i, real v) const { g[i] = v; }
};

void CUDA(lift_vjp)(taut_real *g, const taut_real *left, const taut_real *right, const taut_real *q, int64_t rows,
                    int64_t d)
{
    each(lowered{ at(g), at(left), at(right), at(q), d, divisor(rows * d, d) }, rows * d);
}
