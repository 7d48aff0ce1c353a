/* Products of all heads of all examples in one launch, on the tensor cores (tile.h): most such matrices are small and many, and
 * cuBLASLt's algorithm for one of them is often one that takes no batch, or sums long rows in few blocks.
 *
 * A block has HIGH x HIGH results and passes DEEP numbers of every row at a time; each such sum begins with zero and is added
 * with a proper rounding.  Long sums are cut in slices, each a block's, whose results are added in order afterwards; how many
 * there are depends on the sum's length alone.
 * Error     as gemm.cu's, but for floats 2^-21 of a product's size in the place of u. */
#ifndef TAUT_KERNELS_CUDA_HEADS_H
#define TAUT_KERNELS_CUDA_HEADS_H
#include "kernels/cuda/tile.h"

/* A matrix for every head of every example: how far its next row is, that of the next head, that of the next example. */
struct matrices {
    const real *x;
    int64_t row, head, example;
};

struct heads_product {
    matrices c, a, b;
    int m, n, k, heads;
    real alpha, beta;
    int added;   /* examples of which one C is the sum */
    int passes;  /* of a slice */
    int slices;  /* of a sum */
    real *parts; /* their results, (examples of C, heads, slices, m, n); NULL: no sum is cut */
};

enum {
    HIGH = 64,
    DEEP = 32,
    PASSES = 8,                                  /* of a slice, at least */
    SLICES = 64,                                 /* at most */
    ALONG = DEEP + 4,                            /* numbers from a row to the next where k runs along rows, */
    ACROSS = HIGH + (sizeof(real) == 8 ? 4 : 8), /* and where it runs across: a warp meets every bank once */
    FACTOR = ALONG * HIGH > ACROSS *DEEP ? ALONG *HIGH : ACROSS *DEEP,
    HEADS_CREW = 128
};

static inline int64_t heads_passes(int64_t k, int64_t added) { return added * ((k + DEEP - 1) / DEEP); }
static inline int64_t heads_slices(int64_t k, int64_t added)
{
    const int64_t wanted = heads_passes(k, added) / PASSES;
    return wanted < 1 ? 1 : wanted > SLICES ? SLICES : wanted;
}

/* Starts copying rows x columns of which there are `there` x `wide`, the others become zeros. */
template <int ROWS, int COLUMNS, int STRIDE>
static __device__ inline void heads_load(real *tile, const real *from, int64_t stride, int there, int wide)
{
    const bool whole = wide % W == 0 && stride % W == 0 && (size_t)from % 16 == 0;
    for (int i = threadIdx.x; i < ROWS * (COLUMNS / W); i += HEADS_CREW) {
        const int r = i / (COLUMNS / W), c = i % (COLUMNS / W) * W;
        real *to = tile + r * STRIDE + c;
        const real *x = from + r * stride + c;
        if (whole)
            copy_async<16>(to, x, r < there && c < wide);
        else
            for (int w = 0; w < W; w++) copy_async<sizeof(real)>(to + w, x + w, r < there && c + w < wide);
    }
}

/* HIGH rows (or columns) from `first` on of op's DEEP numbers from `k` on; TURNED: k runs across what is stored. */
template <bool TURNED>
static __device__ inline void heads_factor(real *tile, const real *x, int64_t row, int first, int most, int k, int all)
{
    if (TURNED)
        heads_load<DEEP, HIGH, ACROSS>(tile, x + k * row + first, row, all - k, most - first);
    else
        heads_load<HIGH, DEEP, ALONG>(tile, x + first * row + k, row, most - first, all - k);
}

template <bool TURNED> static __device__ inline real heads_entry(const real *tile, int i, int k)
{
    return TURNED ? tile[k * ACROSS + i] : tile[i * ALONG + k];
}

/* A warp's 32 x 32 results of one pass. */
template <int PARTS, bool TA, bool TB>
static __device__ inline void heads_pass(cell (&sum)[2][4], const real *left, const real *right, int row, int column)
{
    const int g = lane_g(), t = lane_t();
#pragma unroll
    for (int k = 0; k < DEEP; k += 8) {
        factor<PARTS, 4> a[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int r = row + 16 * i + g;
            const real x[4] = { heads_entry<TA>(left, r, k + t), heads_entry<TA>(left, r + 8, k + t),
                                heads_entry<TA>(left, r, k + t + 4), heads_entry<TA>(left, r + 8, k + t + 4) };
            factor_of(a[i], x);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int c = column + 8 * j + g;
            const real x[2] = { heads_entry<!TB>(right, c, k + t), heads_entry<!TB>(right, c, k + t + 4) };
            factor<PARTS, 2> b;
            factor_of(b, x);
#pragma unroll
            for (int i = 0; i < 2; i++) multiply(sum[i][j], a[i], b);
        }
    }
}

template <int PARTS, bool TA, bool TB>
static __global__ void __launch_bounds__(HEADS_CREW) heads_kernel(const heads_product p)
{
    extern __shared__ chunk heads_room[];
    real *room = (real *)heads_room;
    const int columns = (p.n + HIGH - 1) / HIGH, tiles = (p.m + HIGH - 1) / HIGH * columns;
    const int tile = blockIdx.x % tiles, slice = blockIdx.x / tiles % p.slices, of = blockIdx.x / tiles / p.slices;
    const int head = of % p.heads, example = of / p.heads, first = tile / columns * HIGH, left = tile % columns * HIGH;
    const int deep = (p.k + DEEP - 1) / DEEP, end = min((slice + 1) * p.passes, p.added * deep);
    const int row = threadIdx.x / 64 * 32, column = threadIdx.x / 32 % 2 * 32;
    const auto load = [&](int pass) {
        const int64_t from = example + pass / deep;
        const int k = pass % deep * DEEP;
        real *to = room + pass % 2 * 2 * FACTOR;
        heads_factor<TA>(to, p.a.x + from * p.a.example + head * p.a.head, p.a.row, first, p.m, k, p.k);
        heads_factor<!TB>(to + FACTOR, p.b.x + from * p.b.example + head * p.b.head, p.b.row, left, p.n, k, p.k);
    };
    cell sum[2][4];
    cells_zero(sum);
    load(slice * p.passes);
    tile_start();
    for (int pass = slice * p.passes; pass < end; pass++) {
        cell now[2][4];
        cells_zero(now);
        tile_wait();
        if (pass + 1 < end) load(pass + 1);
        tile_start();
        const real *from = room + pass % 2 * 2 * FACTOR;
        heads_pass<PARTS, TA, TB>(now, from, from + FACTOR, row, column);
#pragma unroll
        for (int i = 0; i < 32; i++) sum[i / 16][i / 4 % 4].x[i % 4] += now[i / 16][i / 4 % 4].x[i % 4];
    }
    real *part = p.parts + ((int64_t)of * p.slices + slice) * p.m * p.n;
    real *c = (real *)p.c.x + example * p.c.example + head * p.c.head;
#pragma unroll
    for (int i = 0; i < 32; i++) {
        const int r = first + row + 16 * (i / 16) + 8 * (i % 4 / 2) + lane_g();
        const int s = left + column + 8 * (i / 4 % 4) + 2 * lane_t() + i % 2;
        const real x = sum[i / 16][i / 4 % 4].x[i % 4];
        if (r >= p.m || s >= p.n) continue;
        if (p.slices > 1)
            part[(int64_t)r * p.n + s] = x;
        else
            c[r * p.c.row + s] = p.alpha * x + (p.beta == 0 ? 0 : p.beta * c[r * p.c.row + s]);
    }
}

/* The slices' results, in order; a thread has one number. */
static __global__ void __launch_bounds__(THREADS)
    heads_add(const heads_product p, divisor each, divisor columns, divisor heads, int64_t all)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, size = (int64_t)p.m * p.n;
    if (i >= all) return;
    const int64_t of = each.quotient(i), inside = each.remainder(i), row = columns.quotient(inside);
    const real *part = p.parts + of * p.slices * size + inside;
    real *c = (real *)p.c.x + heads.quotient(of) * p.c.example + heads.remainder(of) * p.c.head + row * p.c.row +
              columns.remainder(inside);
    real sum = 0;
#pragma unroll 8
    for (int s = 0; s < p.slices; s++) sum += part[s * size];
    *c = p.alpha * sum + (p.beta == 0 ? 0 : p.beta * *c);
}

template <int PARTS, bool TA, bool TB> static void heads_launch(const heads_product &p, int64_t blocks)
{
    const size_t room = 4 * FACTOR * sizeof(real);
    if (room > SHARED)
        cuda_note(
            cudaFuncSetAttribute(heads_kernel<PARTS, TA, TB>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)room),
            "heads");
    CUDA_LAUNCH((heads_kernel<PARTS, TA, TB>), blocks, HEADS_CREW, room, p);
}

template <int PARTS> static void heads_choose(const heads_product &p, int64_t blocks, bool ta, bool tb)
{
    (ta ? (tb ? heads_launch<PARTS, true, true> : heads_launch<PARTS, true, false>)
        : (tb ? heads_launch<PARTS, false, true> : heads_launch<PARTS, false, false>))(p, blocks);
}

/* C (m,n) = alpha op(A) op(B) + beta C, k > 0, for `heads` heads of n examples; where examples share C (its `example` is 0) it is
 * the sum over them.  `parts`, if there is one, has room for heads_slices(k, examples summed) times all C. */
static inline void heads_multiply(heads_product p, int64_t examples, bool ta, bool tb)
{
    const int64_t outer = p.c.example ? examples : examples > 0, tile = blocks_for(p.m, HIGH) * blocks_for(p.n, HIGH);
    const int64_t all = outer * p.heads * p.m * p.n;
    if (all <= 0 || p.k <= 0) return;
    p.added = (int)(p.c.example ? 1 : examples);
    p.passes = (int)blocks_for(heads_passes(p.k, p.added), p.parts ? heads_slices(p.k, p.added) : 1);
    p.slices = (int)blocks_for(heads_passes(p.k, p.added), p.passes);
    TILE_PRODUCTS(heads_choose)(p, outer * p.heads * p.slices * tile, ta, tb);
    if (p.slices > 1)
        CUDA_LAUNCH(heads_add, blocks_for(all, THREADS), THREADS, 0, p, divisor(all, (int64_t)p.m * p.n),
                    divisor(all, p.n), divisor(all, p.heads), all);
}
#endif
