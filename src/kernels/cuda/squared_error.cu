/* The squared error of a forecast, and its gradient (formulas: ref/squared_error.c), worked in double.
 *
 * Blocks take fixed pieces, one block adds them up in a fixed tree.  NaN propagates.  Aliasing: g may be x.
 * Error     with u = 2^-24 (cuda64: 2^-53): sums: (len + 2) 2^-53 of themselves; g: 2 u |g|. */
#include "kernels/cuda/reduce.h"

static const int64_t PIECE = 16 * THREADS;

static __global__ void __launch_bounds__(THREADS)
    pieces_of(double *square, double *size, real *g, const real *x, const real *y, int64_t len, double weight)
{
    const int64_t from = (int64_t)blockIdx.x * PIECE, to = min(len, from + PIECE);
    double a = 0, b = 0;
    for (int64_t i = from + threadIdx.x; i < to; i += THREADS) {
        const double e = (double)x[i] - (double)y[i];
        a += e * e, b += fabs(e);
        if (g) g[i] = (real)(2 * weight * e);
    }
    a = block_sum(a), b = block_sum(b);
    if (threadIdx.x == 0) square[blockIdx.x] = a, size[blockIdx.x] = b;
}

static __global__ void __launch_bounds__(THREADS)
    add_up(double *sums, const double *square, const double *size, int64_t pieces)
{
    double a = 0, b = 0;
    for (int64_t i = threadIdx.x; i < pieces; i += THREADS) a += square[i], b += size[i];
    a = block_sum(a), b = block_sum(b);
    if (threadIdx.x == 0) sums[0] += a, sums[1] += b;
}

void CUDA(squared_error)(taut_real *g, taut_sum *sums, const taut_real *x, const taut_real *y, int64_t len,
                         double weight)
{
    const int64_t pieces = blocks_for(len, PIECE);
    if (len <= 0) return;
    double *part = (double *)cuda_work((size_t)(2 * pieces) * sizeof *part);
    if (!part) return;
    CUDA_LAUNCH(pieces_of, pieces, THREADS, 0, part, part + pieces, g ? at(g) : NULL, at(x), at(y), len, weight);
    CUDA_LAUNCH(add_up, 1, THREADS, 0, at(sums), part, part + pieces, pieces);
}
