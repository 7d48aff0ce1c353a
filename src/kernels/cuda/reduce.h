/* Sums over the threads of a warp or a block: trees whose shape depends on nothing else. */
#ifndef TAUT_KERNELS_CUDA_REDUCE_H
#define TAUT_KERNELS_CUDA_REDUCE_H
#include "kernels/cuda/cuda.h"

/* Every lane gets the sum over its warp. */
template <class T> __device__ static inline T warp_sum(T x)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* Every thread gets the sum over its block, of at most 1024 threads and a multiple of a warp; all of them must call. */
template <class T> __device__ static inline T block_sum(T x)
{
    __shared__ T part[WARP];
    const int warps = blockDim.x / WARP, lane = threadIdx.x % WARP;
    x = warp_sum(x);
    __syncthreads(); /* whoever read `part` before is done */
    if (lane == 0) part[threadIdx.x / WARP] = x;
    __syncthreads();
    return warp_sum(lane < warps ? part[lane] : T(0));
}

/* A row is a warp's or, if it is long, a block's: every thread of the team gets the sum.  TEAM is WARP or THREADS. */
template <int TEAM, class T> __device__ static inline T team_sum(T x)
{
    return TEAM == WARP ? warp_sum(x) : block_sum(x);
}
static const int64_t WARP_ROW = 1024; /* the longest row that is a warp's */

/* The row of this thread's team, and its place in the team. */
template <int TEAM> __device__ static inline int64_t team_row(void)
{
    return (int64_t)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
}
template <int TEAM> __device__ static inline int team_lane(void) { return threadIdx.x % TEAM; }

/* kernel<WARP> or kernel<THREADS>, for `rows` rows of d entries. */
#define CUDA_ROWS(kernel, rows, d, ...)                                                           \
    do {                                                                                          \
        if ((d) <= WARP_ROW)                                                                      \
            CUDA_LAUNCH(kernel<WARP>, blocks_for(rows, THREADS / WARP), THREADS, 0, __VA_ARGS__); \
        else                                                                                      \
            CUDA_LAUNCH(kernel<THREADS>, rows, THREADS, 0, __VA_ARGS__);                          \
    } while (0)
#endif
