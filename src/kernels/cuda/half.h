/* Tiles of halves, in one or two parts, and their products on the tensor cores: twice the rate of tf32, and as
 * exact.
 *
 * A half has tf32's 11 bits but few exponents.  So every row is first multiplied by a power of two that brings its
 * largest entry to [2^13, 2^14): x = 2^e (hi + lo) with an error of at most 2^-22 |x| + 2^-38 of the row's largest;
 * hi alone: 2^-11 |x|.  What is not finite stays so.  Rows of DEPTH halves; the unit is the chunk, 16 bytes. */
#ifndef TAUT_KERNELS_CUDA_HALF_H
#define TAUT_KERNELS_CUDA_HALF_H
#include "kernels/cuda/attention.h"
#include "kernels/cuda/lowered.h"

/* Doubles have no use for halves. */
#define HALVES_OF_float       1
#define HALVES_OF_double      0
#define HALVES_PASTE(element) HALVES_OF_##element
#define HALVES_OF(element)    HALVES_PASTE(element)
#define TAUT_HALVES           HALVES_OF(TAUT_ELEMENT)
#if TAUT_HALVES
#include <cuda_fp16.h>

enum {
    TOP = 14,
    LEAST = -100
}; /* a row's largest entry becomes less than 2^TOP; the least e, also of a row of zeros */

/* A row's factor 2^e, e, and 2^-e. */
struct powers {
    float *up, *e, *down;
};
struct packed {
    __half *hi, *lo; /* (n, heads, t, DEPTH) */
    powers by;
};

/* An array (n, t, heads*dh) that is to be packed. */
struct unpacked {
    const float *x;
    packed to;
    int64_t rows; /* n heads t */
    int t;
};
struct bundle {
    unpacked of[4];
};

/* Four numbers, those from `there` on 0. */
static __device__ inline float4 four(const float *x, int there)
{
    if (there >= 4 && (size_t)x % 16 == 0) return *(const float4 *)x;
    return make_float4(there > 0 ? x[0] : 0, there > 1 ? x[1] : 0, there > 2 ? x[2] : 0, there > 3 ? x[3] : 0);
}

enum { PACKED = 8 }; /* numbers of a lane */

/* Rows of (n, t, heads*dh) become rows of (n, heads, t, DEPTH); DEPTH / PACKED lanes have a row, blockIdx.y says of which
 * array. */
template <int DEPTH>
static __global__ void __launch_bounds__(THREADS) pack(const bundle all, int heads, int dh, bool two)
{
    const unpacked &u = all.of[blockIdx.y];
    const int lanes = DEPTH / PACKED, c = threadIdx.x % lanes * PACKED;
    const int64_t row = (int64_t)blockIdx.x * (THREADS / lanes) + threadIdx.x / lanes;
    const bool there = row < u.rows;
    const int64_t i = there ? row % u.t : 0, of = there ? row / u.t : 0;
    const float *from = u.x + ((of / heads * u.t + i) * heads + of % heads) * dh + c;
    const float4 x = four(from, there ? dh - c : 0), y = four(from + 4, there ? dh - c - 4 : 0);
    const float v[PACKED] = { x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w };
    float most = 0;
#pragma unroll
    for (int k = 0; k < PACKED; k++)
        if (fabsf(v[k]) < INFINITY) most = fmaxf(most, fabsf(v[k]));
#pragma unroll
    for (int far = lanes / 2; far > 0; far /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, far));
    if (!there) return;
    const float e = max((int)(__float_as_uint(most) >> 23) - 127 - TOP + 1, LEAST);
    const float down = exp2f(-e);
    alignas(16) __half hi[PACKED], lo[PACKED];
#pragma unroll
    for (int k = 0; k < PACKED; k++) {
        hi[k] = __float2half_rn(v[k] * down);
        lo[k] = __float2half_rn(v[k] * down - __half2float(hi[k]));
    }
    *(uint4 *)(u.to.hi + row * DEPTH + c) = *(const uint4 *)hi;
    if (two) *(uint4 *)(u.to.lo + row * DEPTH + c) = *(const uint4 *)lo;
    if (c == 0) u.to.by.up[row] = exp2f(e), u.to.by.e[row] = e, u.to.by.down[row] = down;
}

/* Where chunk c (8 halves) of row r lies in its row: chunks c of eight rows in order meet different banks. */
template <int DEPTH> static __device__ inline int half_place(int r, int c)
{
    enum { CHUNKS = DEPTH / 8, ROWS = CHUNKS < 8 ? 8 / CHUNKS : 1, PLACES = 8 / ROWS }; /* ROWS rows fill all banks */
    return (c ^ r / ROWS % PLACES) * 8;
}

/* Starts copying rows of DEPTH halves, of which `there` are there; the others become zeros. */
template <int DEPTH> static __device__ inline void half_load(__half *tile, int rows, const __half *from, int there)
{
    for (int k = threadIdx.x; k < rows * (DEPTH / 8); k += blockDim.x) {
        const int r = k / (DEPTH / 8), c = k % (DEPTH / 8);
        const bool some = r < there;
        copy_async<16>((real *)(tile + r * DEPTH + half_place<DEPTH>(r, c)),
                       (const real *)(from + (some ? r * DEPTH + c * 8 : 0)), some);
    }
}

/* Four 8 x 8 blocks; the lane's row is where eight entries of one of them begin. */
template <bool TURNED> static __device__ inline void blocks_load(unsigned (&x)[4], const __half *row)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(at)
                     : "memory");
}

static __device__ inline void half_multiply(cell &c, const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* s += rows first.. of q times the rows of k; hi is followed by lo, `rows` and KEYS rows further on. */
template <int PARTS, int DEPTH, int M>
static __device__ inline void half_dots(cell (&s)[M][CELLS], const __half *q, int rows, int first, const __half *k)
{
    const int lane = threadIdx.x % 32, q_row = first + lane % 16, k_row = lane / 16 * 8 + lane % 8;
    const __half *q_at = q + q_row * DEPTH, *k_at = k + k_row * DEPTH;
#pragma unroll
    for (int d = 0; d < DEPTH / 16; d++) {
        const int q_chunk = half_place<DEPTH>(lane % 8, 2 * d + lane / 16);
        const int k_chunk = half_place<DEPTH>(lane % 8, 2 * d + lane / 8 % 2);
        unsigned a[M][4], a_lo[M][4];
#pragma unroll
        for (int m = 0; m < M; m++) {
            blocks_load<false>(a[m], q_at + 16 * m * DEPTH + q_chunk);
            if (PARTS == 3) blocks_load<false>(a_lo[m], q_at + (rows + 16 * m) * DEPTH + q_chunk);
        }
#pragma unroll
        for (int n = 0; n < CELLS; n += 2) {
            unsigned b[4], b_lo[4];
            blocks_load<false>(b, k_at + 8 * n * DEPTH + k_chunk);
            if (PARTS == 3) blocks_load<false>(b_lo, k_at + (KEYS + 8 * n) * DEPTH + k_chunk);
#pragma unroll
            for (int m = 0; m < 2 * M; m++) {
                cell &c = s[m / 2][n + m % 2];
                const int i = m % 2 * 2;
                if (PARTS == 3) {
                    half_multiply(c, a_lo[m / 2], b[i], b[i + 1]);
                    half_multiply(c, a[m / 2], b_lo[i], b_lo[i + 1]);
                }
                half_multiply(c, a[m / 2], b[i], b[i + 1]);
            }
        }
    }
}

/* The cells of weights as left factors, for every 16 keys. */
template <int PARTS, int M>
static __device__ inline void half_weights(unsigned (&hi)[M][CELLS / 2][4], unsigned (&lo)[M][CELLS / 2][4],
                                           const cell (&s)[M][CELLS])
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int k = 0; k < 2 * CELLS; k++) {
            const float x = s[m][k / 2].x[k % 2 * 2], y = s[m][k / 2].x[k % 2 * 2 + 1];
            const __half2 both = __floats2half2_rn(x, y);
            hi[m][k / 4][k % 4] = *(const unsigned *)&both;
            if (PARTS == 3) {
                const float2 back = __half22float2(both);
                const __half2 rest = __floats2half2_rn(x - back.x, y - back.y);
                lo[m][k / 4][k % 4] = *(const unsigned *)&rest;
            }
        }
}

/* o = join(o, weights times the rows of v, m, row of the cell), lo KEYS rows after hi; every sum over a tile begins with zero
 * (tile.h). */
template <int PARTS, int DEPTH, int M, class JOIN>
static __device__ inline void half_mix(cell (&o)[M][DEPTH / 8], const unsigned (&hi)[M][CELLS / 2][4],
                                       const unsigned (&lo)[M][CELLS / 2][4], const __half *v, const JOIN &join)
{
    const int lane = threadIdx.x % 32, row = lane % 16;
    const __half *at = v + row * DEPTH;
#pragma unroll
    for (int n = 0; n < DEPTH / 8; n += 2) {
        const int chunk = half_place<DEPTH>(lane % 8, n + lane / 16);
        cell sum[M][2];
        cells_zero(sum);
#pragma unroll
        for (int k = 0; k < CELLS / 2; k++) {
            unsigned b[4], b_lo[4];
            blocks_load<true>(b, at + 16 * k * DEPTH + chunk);
            if (PARTS == 3) blocks_load<true>(b_lo, at + (KEYS + 16 * k) * DEPTH + chunk);
#pragma unroll
            for (int m = 0; m < 2 * M; m++) {
                cell &c = sum[m / 2][m % 2];
                const int i = m % 2 * 2;
                if (PARTS == 3) {
                    half_multiply(c, lo[m / 2][k], b[i], b[i + 1]);
                    half_multiply(c, hi[m / 2][k], b_lo[i], b_lo[i + 1]);
                }
                half_multiply(c, hi[m / 2][k], b[i], b[i + 1]);
            }
        }
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 8; i++) {
                float &to = o[m][n + i / 4].x[i % 4];
                to = join(to, sum[m][i / 4].x[i % 4], m, i % 4 / 2);
            }
    }
}

/* As mix_guard: numbers that are not finite, those with all bits of EXPONENT, become 0, and what sees them NaN; sees(row, row of
 * the tile). */
template <int PARTS, int DEPTH, int ROWS = KEYS, unsigned EXPONENT = 0x7c00, int M, class SEES>
static __device__ inline void half_guard(cell (&o)[M][DEPTH / 8], __half *v, int first, const SEES &sees)
{
    const auto wild = [](__half x) { return (__half_as_ushort(x) & EXPONENT) == EXPONENT; };
    bool bad = false;
    for (int i = threadIdx.x; i < ROWS * DEPTH; i += blockDim.x) bad |= wild(v[i]);
    if (!__syncthreads_or(bad)) return;
#pragma unroll 1
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < DEPTH / 8 * 2; n++) {
            if (!wild(v[r * DEPTH + half_place<DEPTH>(r, n / 2) + 2 * lane_t() + n % 2])) continue;
#pragma unroll
            for (int m = 0; m < M * 2; m++)
                if (sees(first + 8 * m + lane_g(), r)) o[m / 2][n / 2].x[m % 2 * 2 + n % 2] = NAN;
        }
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * DEPTH; i += blockDim.x)
        if (wild(v[i])) {
            v[i] = __ushort_as_half(0);
            if (PARTS == 3) v[ROWS * DEPTH + i] = __ushort_as_half(0);
        }
    __syncthreads();
}

/* y = factor o for the rows below `there`, d numbers in each; low: its place as bf16 (lowered.h), or NULL. */
template <int DEPTH, int M>
static __device__ inline void half_store(float *y, int64_t stride, const cell (&o)[M][DEPTH / 8], int first, int there,
                                         int d, const float (&factor)[M][2], void *low = NULL)
{
    const bool whole = d % 2 == 0 && stride % 2 == 0 && (size_t)y % 8 == 0;
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        const int row = first + 8 * m + lane_g();
        const float by = factor[m / 2][m % 2];
#pragma unroll
        for (int n = 0; n < DEPTH / 8; n++) {
            const int c = 8 * n + 2 * lane_t();
            const float a = by * o[m / 2][n].x[m % 2 * 2], b = by * o[m / 2][n].x[m % 2 * 2 + 1];
            const float both[2] = { a, b }, one[2][1] = { { a }, { b } };
            const int64_t at = row * stride + c;
            float *to = y + at;
            if (row < there && c < d && whole) *(float2 *)to = make_float2(a, b), lower_group<2>(low, at / 2, both);
            if (row < there && c < d && !whole) to[0] = a, lower_group<1>(low, at, one[0]);
            if (row < there && c + 1 < d && !whole) to[1] = b, lower_group<1>(low, at + 1, one[1]);
        }
    }
}

/* Room for a packed array of `rows` rows, cut off the front of `from`. */
static inline packed packed_at(char *&from, int64_t rows, int depth)
{
    const int64_t halves = (rows * depth * 2 + 255) / 256 * 256, floats = (rows * 4 + 255) / 256 * 256;
    char *at = from;
    from += 2 * halves + 3 * floats;
    at += 2 * halves;
    return { (__half *)(at - 2 * halves),
             (__half *)(at - halves),
             { (float *)at, (float *)(at + floats), (float *)(at + 2 * floats) } };
}

#endif
#endif
