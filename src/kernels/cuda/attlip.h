/* What the kernels of AttLip's potential share (formulas: ref/attlip.c): a block holds rows of tokens of one head,
 * tiles of KEYS tokens of the same head pass by, with a few numbers that are known of each.  In units of ln 2,
 *     x_ij = 2 scale v_i.v_j - near 2^(-h/2) |i - j|,  alpha_ij = exp2(x_ij + square_j - level_i),  level = max + ln
 *     sum. */
#ifndef TAUT_KERNELS_CUDA_ATTLIP_H
#define TAUT_KERNELS_CUDA_ATTLIP_H
#include "kernels/cuda/attention.h"
#include "kernels/cuda/reduce.h"

/* Of every row, (n, heads, t); square, level and own are made by lip_facts, in the backend's memory. */
struct facts {
    real *square, *level, *own; /* scale |v|^2 and max + ln sum in units of ln 2; 2 scale v.e */
    const real *mean;           /* attlip_hvp's */
};
enum { FACTS = 4 };

static inline attn lip_of(const taut_attn *a)
{
    attn b = attn_of(a);
    b.tk = b.tq, b.factor *= 2, b.causal = false, b.alibi = false;
    return b;
}

static __device__ inline place lip_place(const attn &a, int rows, real near)
{
    place p = place_of(a, a.tq, rows, false);
    p.slope = near * (real)exp2(-0.5 * p.head) * LOG2E;
    return p;
}

/* Starts copying the tokens from j on: v, then e where there is one, then the facts that there are. */
template <int DEPTH>
static __device__ inline void lip_load(real *to, const real *v, const real *e, const facts &f, const attn &a,
                                       const place &p, int j)
{
    const int64_t at = head_at(a, p, a.tq) + j * a.stride, row = p.of * a.tq + j + threadIdx.x;
    tile_load<DEPTH>(to, KEYS, v + at, a.stride, a.tq - j, a.dh);
    to += KEYS * DEPTH;
    if (e) tile_load<DEPTH>(to, KEYS, e + at, a.stride, a.tq - j, a.dh), to += KEYS * DEPTH;
    const real *fact[FACTS] = { f.square, f.level, f.own, f.mean };
#pragma unroll
    for (int i = 0; i < FACTS; i++)
        if (fact[i] && threadIdx.x < KEYS) {
            const bool there = j + (int)threadIdx.x < a.tq;
            copy_async<sizeof(real)>(to + i * KEYS + threadIdx.x, there ? fact[i] + row : fact[i], there);
        }
    tile_start();
}

/* Products become x_ij; -inf for tokens that are not there. */
template <int N>
static __device__ inline void lip_logits(cell (&s)[1][N], const attn &a, const place &p, int row, int column)
{
#pragma unroll
    for (int n = 0; n < 4 * N; n++) {
        const int i = cell_row(row, 0, n % 4), j = column + cell_column(n / 4, n % 4);
        real &x = s[0][n / 4].x[n % 4];
        x = j < a.tq ? a.factor * x - p.slope * (real)abs(i - j) : -INFINITY;
    }
}

/* A fact of the lane's two rows. */
static __device__ inline void lip_own(real (&to)[2], const real *fact, const attn &a, const place &p, int first)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = p.first + first + 8 * r + lane_g();
        to[r] = i < a.tq ? fact[p.of * a.tq + i] : 0;
    }
}

/* Row by row, over the lane's entries: sum of exp2(x_ij + square_j - max) and max; NaN counts as largest. */
template <int N>
static __device__ inline void lip_gather(real (&max)[2], real (&sum)[2], cell (&s)[1][N], const real *squares)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        real top = max[r], add = 0;
#pragma unroll
        for (int n = 0; n < 2 * N; n++) {
            real &x = s[0][n / 2].x[2 * r + n % 2];
            x += squares[cell_column(n / 2, n % 2)];
            top = x <= top ? top : x;
        }
        const real base = top == -INFINITY ? 0 : top;
#pragma unroll
        for (int n = 0; n < 2 * N; n++) add += attn_exp2(s[0][n / 2].x[2 * r + n % 2] - base);
        sum[r] = sum[r] * attn_exp2(max[r] - base) + add;
        max[r] = top;
    }
}

/* Over the four lanes of a row, in the units of the slot. */
static __device__ inline void lip_value_store(real *max_, real *sum_, const real (&max)[2], const real (&sum)[2],
                                              const attn &a, const place &p, int first)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = p.first + first + 8 * r + lane_g();
        const real top = row_max(max[r]), total = row_sum(sum[r] * attn_exp2(max[r] - top));
        if (i < a.tq && lane_t() == 0) max_[p.of * a.tq + i] = top * LN2, sum_[p.of * a.tq + i] = total;
    }
}

/* One warp per row: square, level from max and sum, own from e; what is not given is not made. */
static __global__ void __launch_bounds__(THREADS)
    lip_facts_kernel(const facts f, const real *v, const real *e, const real *max, const real *sum, const attn a,
                     int64_t rows)
{
    const int64_t row = (int64_t)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    if (row >= rows) return;
    const int64_t i = row % a.tq, of = row / a.tq;
    const int64_t at = (of / a.heads * a.tq + i) * a.stride + of % a.heads * a.dh;
    real square = 0, own = 0;
    for (int c = threadIdx.x % WARP; c < a.dh; c += WARP) {
        square += v[at + c] * v[at + c];
        if (e) own += v[at + c] * e[at + c];
    }
    square = warp_sum(square), own = warp_sum(own);
    if (threadIdx.x % WARP) return;
    f.square[row] = a.factor / 2 * square;
    if (max) f.level[row] = max[row] * LOG2E + log2(sum[row]);
    if (e) f.own[row] = 2 * a.scale * own;
}

/* room: three numbers a row. */
static inline facts lip_facts_at(real *room, const real *v, const real *e, const real *max, const real *sum,
                                 const taut_attn *t)
{
    const int64_t rows = t->n * t->heads * t->tq;
    const facts f = { room, max ? room + rows : NULL, e ? room + 2 * rows : NULL, NULL };
    if (room)
        CUDA_LAUNCH(lip_facts_kernel, blocks_for(rows, THREADS / WARP), THREADS, 0, f, v, e, max, sum, lip_of(t), rows);
    return f;
}

static inline facts lip_facts(const real *v, const real *e, const real *max, const real *sum, const taut_attn *t)
{
    real *room = (real *)cuda_work((size_t)(3 * t->n * t->heads * t->tq) * sizeof(real));
    return lip_facts_at(room, v, e, max, sum, t);
}

/* A kernel with the DEPTH that holds dh. */
#define LIP_DEPTHS(f, dh) \
    ((dh) <= 32 ? f<PARTS, 32> : (dh) <= 64 ? f<PARTS, 64> : (dh) <= 128 ? f<PARTS, 128> : f<PARTS, 256>)

/* attlip_half.cu: of floats with heads of at most 128. */
facts lip_value_by_halves(real *max, real *sum, const real *v, const taut_attn *a);
void lip_grad_by_halves(real *g, real *col, const real *v, const real *max, const real *sum, const taut_attn *a);
#endif
