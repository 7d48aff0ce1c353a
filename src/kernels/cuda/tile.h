/* Tiles of a few dozen rows in shared memory, and their products on the tensor cores, for float and double alike.
 *
 * Rows of a tile are DEPTH numbers apart, a multiple of a line (128 bytes); the first `lines` of a row count.  The
 * unit is the chunk, 16 bytes: chunk c of row r lies at place c ^ twist(r), so that a warp meets every bank once
 * whether it reads along rows or down columns.
 *
 * A product is made of cells, 16 x 8 results of which every lane of a warp holds four: with g = lane / 4 and t =
 * lane % 4, rows g, g, g + 8, g + 8 and columns 2t, 2t + 1, 2t, 2t + 1.  One instruction adds 8 products to each
 * result, lane t giving those with the numbers t and t + 4; which entries these numbers stand for is free, as long
 * as left and right agree:
 *     tile_dots    entries W t + 2 s and W t + 2 s + 1 of every 4 W (W numbers per chunk): a lane reads whole chunks
 *     tile_mix     rows 2t and 2t + 1 of every 8: the cells of a score are the left factor as they are
 *
 * Error     PARTS 3 (fp32): x = hi + lo up to 2^-23 |x|, and lo lo is left out: a product is off by at most 2^-21 of
 *           its size, and every addition inside the tensor cores by 2^-23 of the sum of sizes.  tile_mix therefore
 *           starts from zero for every tile and adds tiles with a proper rounding.  PARTS 1 (tf32): 2^-10 of a
 *           product's size.  In double every product and sum is rounded once. */
#ifndef TAUT_KERNELS_CUDA_TILE_H
#define TAUT_KERNELS_CUDA_TILE_H
#include <type_traits>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/lowered.h"
#include "kernels/cuda/products.h"

enum { W = 16 / sizeof(real), LINE = 8 * W, CREW = 256 }; /* CREW: threads of a block that works on tiles, at most */

struct alignas(16) chunk {
    real x[W];
};
struct cell {
    real x[4];
};

static __device__ inline int lane_g(void) { return threadIdx.x % 32 / 4; }
static __device__ inline int lane_t(void) { return threadIdx.x % 4; }
static __device__ inline int twist(int row) { return ((row >> 1 & 3) << 1) ^ ((row & 1) << 2); }

template <int DEPTH> static __device__ inline real *tile_at(real *tile, int row, int column)
{
    return tile + row * DEPTH + ((column / W) ^ twist(row)) * W + column % W;
}

/* Copying into tiles is asynchronous: it is there after tile_wait. */
template <int BYTES> static __device__ inline void copy_async(real *to, const real *from, bool there)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to), bytes = there ? BYTES : 0;
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(BYTES), "r"(bytes)
                     : "memory");
}

/* Starts copying `rows` rows; those from `there` on and entries from d on become zeros, lines without any entry are
 * left as they are.  Rows come from `stride` numbers apart. */
template <int DEPTH>
static __device__ inline void tile_load(real *tile, int rows, const real *from, int64_t stride, int there, int d)
{
    const bool whole = d % W == 0 && stride % W == 0 && (size_t)from % 16 == 0;
    const int c = threadIdx.x % 8, step = blockDim.x / 8, left = d - c * W; /* entries from the first chunk on */
    int r = threadIdx.x / 8;
    from += r * stride + c * W;
#pragma unroll 2
    for (; r < rows; r += step, from += step * stride) {
        real *to = tile + r * DEPTH + (c ^ twist(r)) * W;
#pragma unroll
        for (int at = 0; at < DEPTH; at += LINE) {
            if (at >= d) break;
            const bool some = r < there && at < left;
            if (whole)
                copy_async<16>(to + at, from + at, some);
            else
                for (int x = 0; x < W; x++) copy_async<sizeof(real)>(to + at + x, from + at + x, some && at + x < left);
        }
    }
}

static __device__ inline void tile_start(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* What was started is there, for all threads; and whoever worked on a tile before is done. */
static __device__ inline void tile_wait(void)
{
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
}

/* One instruction's worth: c += a b. */
static __device__ inline void multiply_once(double (&c)[4], const double (&a)[4], const double (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}
static __device__ inline void multiply_once(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* N entries of a factor, in the form that the tensor cores take: doubles as they are, floats in one part or as hi
 * and lo. */
typedef std::conditional<sizeof(real) == 8, double, unsigned>::type part;
template <int PARTS, int N> struct factor {
    part hi[N], lo[N];
};

/* The tensor cores do not look at a float's last 13 bits.  hi is rounded to nearest.  With two parts a NaN may be
 * lost in hi, but then it is in lo. */
template <int PARTS, int N> static __device__ inline void factor_of(factor<PARTS, N> &f, const real (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        if constexpr (sizeof(real) == 8)
            f.hi[i] = x[i];
        else if constexpr (PARTS == 3) {
            f.hi[i] = (__float_as_uint(x[i]) + 0x1000u) & 0xffffe000u;
            f.lo[i] = __float_as_uint(x[i] - __uint_as_float(f.hi[i]));
        } else
            f.hi[i] = __float_as_uint(fmaf(__uint_as_float(__float_as_uint(x[i]) & 0xff800000u), 0x1p-11f, x[i]));
}

template <int PARTS>
static __device__ inline void multiply(cell &c, const factor<PARTS, 4> &a, const factor<PARTS, 2> &b)
{
    if constexpr (PARTS == 3) {
        multiply_once(c.x, a.lo, b.hi);
        multiply_once(c.x, a.hi, b.lo);
    }
    multiply_once(c.x, a.hi, b.hi);
}

template <int M, int N> static __device__ inline void cells_zero(cell (&s)[M][N])
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) s[m][n].x[i] = 0;
}

/* s += rows first .. first + 16 M - 1 of `left` (first: a multiple of 8) times the rows of `right`: dots of whole
 * rows. */
template <int PARTS, int DEPTH, int M, int N>
static __device__ inline void tile_dots(cell (&s)[M][N], const real *left, int first, const real *right, int lines)
{
    const int g = lane_g(), c = lane_t() ^ twist(g);
    left += (first + g) * DEPTH, right += g * DEPTH;
#pragma unroll 1
    for (; lines > 0; lines--, left += LINE, right += LINE)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const chunk *a_at = (const chunk *)left + (c ^ 4 * half), *b_at = (const chunk *)right + (c ^ 4 * half);
            factor<PARTS, 4> a[M][W / 2];
#pragma unroll
            for (int m = 0; m < M; m++) {
                const chunk top = a_at[16 * m * (DEPTH / W)], low = a_at[(16 * m + 8) * (DEPTH / W)];
#pragma unroll
                for (int i = 0; i < W / 2; i++) {
                    const real x[4] = { top.x[2 * i], low.x[2 * i], top.x[2 * i + 1], low.x[2 * i + 1] };
                    factor_of(a[m][i], x);
                }
            }
#pragma unroll
            for (int n = 0; n < N; n++) {
                const chunk y = b_at[8 * n * (DEPTH / W)];
#pragma unroll
                for (int i = 0; i < W / 2; i++) {
                    factor<PARTS, 2> b;
                    const real x[2] = { y.x[2 * i], y.x[2 * i + 1] };
                    factor_of(b, x);
#pragma unroll
                    for (int m = 0; m < M; m++) multiply(s[m][n], a[m][i], b);
                }
            }
        }
}

/* The cells of a score as left factors of tile_mix. */
template <int PARTS, int M, int N>
static __device__ inline void weights_of(factor<PARTS, 4> (&p)[M][N], const cell (&s)[M][N])
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++) {
            const real x[4] = { s[m][n].x[0], s[m][n].x[2], s[m][n].x[1], s[m][n].x[3] };
            factor_of(p[m][n], x);
        }
}

/* o = shrink o + p times columns `from` .. from + COLUMNS - 1 of `right`; mix_column says where results lie. */
template <int PARTS, int DEPTH, int COLUMNS, int M, int N>
static __device__ inline void tile_mix(cell (&o)[M][COLUMNS / 8], const factor<PARTS, 4> (&p)[M][N], const real *right,
                                       int from, const real (&shrink)[M][2])
{
    const int t = lane_t(), even = lane_g() ^ 2 * t, odd = even ^ 4;
    right += 2 * t * DEPTH + from;
#pragma unroll
    for (int b = 0; b < COLUMNS / LINE; b++) {
        cell sum[M][W];
        cells_zero(sum);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const chunk upper = ((const chunk *)(right + 8 * k * DEPTH))[8 * b + even];
            const chunk lower = ((const chunk *)(right + (8 * k + 1) * DEPTH))[8 * b + odd];
#pragma unroll
            for (int n = 0; n < W; n++) {
                factor<PARTS, 2> y;
                const real x[2] = { upper.x[n], lower.x[n] };
                factor_of(y, x);
#pragma unroll
                for (int m = 0; m < M; m++) multiply(sum[m][n], p[m][k], y);
            }
        }
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < W; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    real &to = o[m][b * W + n].x[i];
                    to = shrink[m][i / 2] * to + sum[m][n].x[i];
                }
    }
}

/* The column of which a lane's cell `n` holds the sum, first or second of a pair: a lane has 2 W neighbours per
 * line. */
static __device__ inline int mix_column(int n, int second) { return (n / W * 8 + 2 * lane_t() + second) * W + n % W; }

/* y[row][from + column] = factor o for the rows of a lane's cells below `there`; rows are `stride` apart, d numbers
 * in each.  low: y as bf16 (lowered.h), or NULL, as it must be where chunks do not lie aligned. */
template <int COLUMNS, int M>
static __device__ inline void mix_store(real *y, int64_t stride, const cell (&o)[M][COLUMNS / 8], int first, int there,
                                        int from, int d, const real (&factor)[M][2], void *low = NULL)
{
    const bool whole = d % W == 0 && stride % W == 0 && (size_t)y % 16 == 0;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = first + 16 * m + 8 * (i / 2) + lane_g();
#pragma unroll
            for (int b = 0; b < COLUMNS / LINE; b++) {
                const int column = from + mix_column(b * W, i % 2);
                real *to = y + row * stride + column;
                chunk z;
#pragma unroll
                for (int n = 0; n < W; n++) z.x[n] = factor[m][i / 2] * o[m][b * W + n].x[i];
                if (row < there && whole && column < d) {
                    *(chunk *)to = z;
                    lower_group<W>(low, (row * stride + column) / W, z.x);
                }
#pragma unroll
                for (int n = 0; n < W; n++)
                    if (row < there && !whole && column + n < d) to[n] = z.x[n];
            }
        }
}

/* Where rows see only a part of the tile `right`, 0 times a number that is not finite would reach rows that do not
 * see it: such numbers become 0, and the results that do see them NaN.  All threads come here. */
template <int DEPTH, int ROWS, int COLUMNS, int M, class SEES>
static __device__ inline void mix_guard(cell (&o)[M][COLUMNS / 8], real *right, int from, int first, SEES sees)
{
    bool bad = false;
    for (int i = threadIdx.x; i < ROWS * DEPTH; i += blockDim.x) bad |= !isfinite(right[i]);
    if (!__syncthreads_or(bad)) return;
#pragma unroll 1
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < COLUMNS / 8 * 2; n++) {
            if (isfinite(*tile_at<DEPTH>(right, r, from + mix_column(n / 2, n % 2)))) continue;
#pragma unroll
            for (int m = 0; m < M * 2; m++)
                if (sees(first + 8 * m + lane_g(), r)) o[m / 2][n / 2].x[m % 2 * 2 + n % 2] = NAN;
        }
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * DEPTH; i += blockDim.x)
        if (!isfinite(right[i])) right[i] = 0;
    __syncthreads();
}

/* f with the PARTS that products are told to have. */
enum { FINE = sizeof(real) == 8 ? 1 : 3 };
#define TILE_PRODUCTS(f) (cuda_products() == TAUT_PRODUCTS_FP32 ? f<FINE> : f<1>)

/* Over the four lanes that share a row. */
static __device__ inline real row_max(real x)
{
    x = fmax(x, __shfl_xor_sync(~0u, x, 1));
    return fmax(x, __shfl_xor_sync(~0u, x, 2));
}
static __device__ inline real row_sum(real x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}
#endif
