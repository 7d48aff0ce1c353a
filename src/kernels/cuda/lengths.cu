/* The length of every feature over the tokens (formulas: ref/lengths.c).  A block takes 32 columns of one example, 8
 * threads a column, whose sums run in double and are added in order.
 *
 * Poison: NaN and infinity propagate.
 * Error   with u = 2^-24 (cuda64: 2^-53): lengths 2 u y + (t+4) 2^-53 y; lengths_jvp 2 u |ty| + (t+4) 2^-53
 *         sum |x tx| / y; lengths_vjp 2 u |gx|. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/lowered.h"

static const int COLS = 32, DOWN = THREADS / COLS;

/* Without y the root of the sum of x z, which is x x then; else that sum over y. */
static __global__ void __launch_bounds__(THREADS)
    lengths_kernel(real *out, const real *x, const real *z, const real *y, int64_t t, int64_t d, int64_t across)
{
    __shared__ double sums[DOWN][COLS];
    const int64_t example = blockIdx.x / across, col = blockIdx.x % across * COLS + threadIdx.x % COLS;
    double sum = 0;
    if (col < d) {
#pragma unroll 8
        for (int64_t i = threadIdx.x / COLS; i < t; i += DOWN) {
            const int64_t at = (example * t + i) * d + col;
            sum += (double)x[at] * (double)z[at];
        }
    }
    sums[threadIdx.x / COLS][threadIdx.x % COLS] = sum;
    __syncthreads();
    if (threadIdx.x >= COLS || col >= d) return;
    for (int i = 1; i < DOWN; i++) sum += sums[i][threadIdx.x];
    const int64_t to = example * d + col;
    out[to] = !y ? (real)sqrt(sum) : y[to] == 0 ? (real)0 : (real)(sum / (double)y[to]);
}

static void sums_of(real *out, const real *x, const real *z, const real *y, int64_t n, int64_t t, int64_t d)
{
    const int64_t across = blocks_for(d, COLS);
    const cuda_says says;
    says.writes(out, n * d);
    if (n * d > 0) CUDA_LAUNCH(lengths_kernel, across * n, THREADS, 0, out, x, z, y, t, d, across);
}

void CUDA(lengths)(taut_real *y, const taut_real *x, int64_t n, int64_t t, int64_t d)
{
    sums_of(at(y), at(x), at(x), NULL, n, t, d);
}

void CUDA(lengths_jvp)(taut_real *ty, const taut_real *tx, const taut_real *x, const taut_real *y, int64_t n, int64_t t,
                       int64_t d)
{
    sums_of(at(ty), at(x), at(tx), at(y), n, t, d);
}

struct back_to_tokens {
    real *gx;
    const real *gy, *x, *y;
    int64_t d;
    divisor example, cols;
    __device__ real read(int64_t i) const
    {
        const int64_t of = example.quotient(i) * d + cols.remainder(i);
        return y[of] == 0 ? (real)0 : (real)((double)x[i] * (double)gy[of] / (double)y[of]);
    }
    __device__ void write(int64_t i, real v) const { gx[i] = v; }
};

void CUDA(lengths_vjp)(taut_real *gx, const taut_real *gy, const taut_real *x, const taut_real *y, int64_t n, int64_t t,
                       int64_t d)
{
    const int64_t len = n * t * d;
    const cuda_says says;
    says.writes(at(gx), len);
    each(back_to_tokens{ at(gx), at(gy), at(x), at(y), d, divisor(len, t * d), divisor(len, d) }, len);
}
