/* One thing done to every element: a functor's read(i) reads and computes, write(i, value) writes.
 *
 * A thread reads all its elements before it writes any, and if it has all asks nothing between two loads, so that
 * several are under way at once; element i is read and written by one thread, so an output may be an input. */
#ifndef TAUT_KERNELS_CUDA_EACH_H
#define TAUT_KERNELS_CUDA_EACH_H
#include "kernels/cuda/cuda.h"

static const int EACH = 4; /* elements of a thread */

/* G neighbours, which one instruction reads. */
template <int G> struct alignas(G * sizeof(real)) group {
    real x[G];
};

template <class F> __global__ void __launch_bounds__(THREADS) each_kernel(F f, int64_t len)
{
    const int64_t first = (int64_t)blockIdx.x * (EACH * THREADS) + threadIdx.x;
    decltype(f.read(0)) value[EACH];
    if (first + (EACH - 1) * THREADS < len) {
#pragma unroll
        for (int j = 0; j < EACH; j++) value[j] = f.read(first + j * THREADS);
#pragma unroll
        for (int j = 0; j < EACH; j++) f.write(first + j * THREADS, value[j]);
        return;
    }
#pragma unroll
    for (int j = 0; j < EACH - 1; j++)
        if (first + j * THREADS < len) value[j] = f.read(first + j * THREADS);
#pragma unroll
    for (int j = 0; j < EACH - 1; j++)
        if (first + j * THREADS < len) f.write(first + j * THREADS, value[j]);
}

template <class F> static void each(const F &f, int64_t len)
{
    CUDA_LAUNCH(each_kernel, blocks_for(len, EACH * THREADS), THREADS, 0, f, len);
}

/* A thread's element may be a group, so that 16 bytes are read at once: how many of len numbers come in groups of WIDE.
 * The others are left to a second launch; none come so where there are few or an array does not lie so. */
enum { WIDE = 16 / sizeof(real) };
static inline int64_t wide_part(int64_t len, const void *x, const void *y, const void *z = NULL)
{
    const bool so = len >= 1 << 16 && ((uintptr_t)x | (uintptr_t)y | (uintptr_t)z) % 16 == 0;
    return so ? len - len % WIDE : 0;
}
#endif
