/* Tiles of bfloat16 and their products on the tensor cores: floats rounded to 8 bits, with all their exponents, so that rows need
 * no powers of two beside them (half.h) and sums stay in the cores from tile to tile.
 *
 * Rows of DEPTH numbers; the unit is the chunk, 16 bytes, at half_place.
 * Error     2^-8 of every factor, and 2^-23 of the sum of sizes for every addition. */
#ifndef TAUT_KERNELS_CUDA_BF16_H
#define TAUT_KERNELS_CUDA_BF16_H
#include "kernels/cuda/half.h"
#if TAUT_HALVES
#include <cuda_bf16.h>

/* An array (n, t, heads*dh) of floats that is to become (n, heads, t, DEPTH). */
struct lowered {
    const float *x;
    __half *to; /* the bits of bfloat16: what loads tiles of halves loads these */
    int64_t rows;
    int t;
};
struct lowered_all {
    lowered of[4];
};

enum { LOW_EXPONENT = 0x7f80 }; /* for half_guard */

/* DEPTH / 8 lanes have a row, blockIdx.y says of which array. */
template <int DEPTH>
static __global__ void __launch_bounds__(THREADS) lower(const __grid_constant__ lowered_all all, int heads, int dh)
{
    const lowered &u = all.of[blockIdx.y];
    const int lanes = DEPTH / 8, c = threadIdx.x % lanes * 8;
    const int64_t row = (int64_t)blockIdx.x * (THREADS / lanes) + threadIdx.x / lanes;
    if (row >= u.rows) return;
    const int64_t i = row % u.t, of = row / u.t;
    const float *x = u.x + ((of / heads * u.t + i) * heads + of % heads) * dh + c;
    const float4 a = four(x, dh - c), b = four(x + 4, dh - c - 4);
    const __nv_bfloat162 low[4] = { __floats2bfloat162_rn(a.x, a.y), __floats2bfloat162_rn(a.z, a.w),
                                    __floats2bfloat162_rn(b.x, b.y), __floats2bfloat162_rn(b.z, b.w) };
    *(uint4 *)(u.to + row * DEPTH + c) = *(const uint4 *)low;
}

static __device__ inline void low_multiply(cell &c, const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* s += rows first.. of q times the 8 N rows of k. */
template <int DEPTH, int M, int N>
static __device__ inline void low_dots(cell (&s)[M][N], const __half *q, int first, const __half *k)
{
    const int lane = threadIdx.x % 32;
    const __half *q_at = q + (first + lane % 16) * DEPTH, *k_at = k + (lane / 16 * 8 + lane % 8) * DEPTH;
#pragma unroll
    for (int d = 0; d < DEPTH / 16; d++) {
        const int q_chunk = half_place<DEPTH>(lane % 8, 2 * d + lane / 16);
        const int k_chunk = half_place<DEPTH>(lane % 8, 2 * d + lane / 8 % 2);
        unsigned a[M][4];
#pragma unroll
        for (int m = 0; m < M; m++) blocks_load<false>(a[m], q_at + 16 * m * DEPTH + q_chunk);
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            unsigned b[4];
            blocks_load<false>(b, k_at + 8 * n * DEPTH + k_chunk);
#pragma unroll
            for (int m = 0; m < 2 * M; m++) low_multiply(s[m / 2][n + m % 2], a[m / 2], b[m % 2 * 2], b[m % 2 * 2 + 1]);
        }
    }
}

/* o += weights times the 8 N rows of v. */
template <int DEPTH, int M, int N>
static __device__ inline void low_mix(cell (&o)[M][DEPTH / 8], const cell (&w)[M][N], const __half *v)
{
    const int lane = threadIdx.x % 32;
    const __half *at = v + lane % 16 * DEPTH;
#pragma unroll
    for (int k = 0; k < N / 2; k++) {
        unsigned a[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const cell &from = w[m][2 * k + i / 2];
                const __nv_bfloat162 both = __floats2bfloat162_rn(from.x[i % 2 * 2], from.x[i % 2 * 2 + 1]);
                a[m][i] = *(const unsigned *)&both;
            }
#pragma unroll
        for (int n = 0; n < DEPTH / 8; n += 2) {
            unsigned b[4];
            blocks_load<true>(b, at + 16 * k * DEPTH + half_place<DEPTH>(lane % 8, n + lane / 16));
#pragma unroll
            for (int m = 0; m < 2 * M; m++) low_multiply(o[m / 2][n + m % 2], a[m / 2], b[m % 2 * 2], b[m % 2 * 2 + 1]);
        }
    }
}

/* Room for `rows` rows, cut off the front of `from`. */
static inline __half *low_at(char *&from, int64_t rows, int depth)
{
    char *at = from;
    from += (rows * depth * 2 + 255) / 256 * 256;
    return (__half *)at;
}
#endif
#endif
