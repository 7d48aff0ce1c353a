/* Small functions that run on the host and, where nvcc compiles them, on a device too. */
#ifndef TAUT_BASE_INLINE_H
#define TAUT_BASE_INLINE_H
#ifdef __CUDACC__
#define TAUT_INLINE __host__ __device__ static inline
#else
#define TAUT_INLINE static inline
#endif
#endif
