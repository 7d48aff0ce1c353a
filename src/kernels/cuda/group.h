/* What the kernels about groups of keys share. */
#ifndef TAUT_KERNELS_CUDA_GROUP_H
#define TAUT_KERNELS_CUDA_GROUP_H
#include "kernels/cuda/reduce.h"

/* The largest of a row of m entries; NaN is not. */
__device__ static inline real warp_largest(const real *x, int64_t m, int lane)
{
    real top = (real)-INFINITY;
    for (int64_t j = lane; j < m; j += WARP) top = x[j] > top ? x[j] : top;
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        const real other = __shfl_xor_sync(0xffffffffu, top, step);
        top = other > top ? other : top;
    }
    return top;
}
#endif
