/* One thing done to every element: a functor's read(i) reads and computes, write(i, value) writes.
 *
 * A thread reads all its elements before it writes any, so that several loads are under way at once; element i is read
 * and written by one thread, so an output may be an input. */
#ifndef TAUT_KERNELS_CUDA_EACH_H
#define TAUT_KERNELS_CUDA_EACH_H
#include "kernels/cuda/cuda.h"

static const int EACH = 4; /* elements of a thread */

template <class F> __global__ void __launch_bounds__(THREADS) each_kernel(F f, int64_t len)
{
    const int64_t first = (int64_t)blockIdx.x * (EACH * THREADS) + threadIdx.x;
    decltype(f.read(0)) value[EACH];
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (first + j * THREADS < len) value[j] = f.read(first + j * THREADS);
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (first + j * THREADS < len) f.write(first + j * THREADS, value[j]);
}

template <class F> static void each(const F &f, int64_t len)
{
    CUDA_LAUNCH(each_kernel, blocks_for(len, EACH * THREADS), THREADS, 0, f, len);
}
#endif
