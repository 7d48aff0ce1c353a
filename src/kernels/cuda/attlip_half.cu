/* AttLip's potential and its gradient in floats, heads of at most 128 (formulas: ref/attlip.c, attlip.h), by
 * products of halves (half.h).
 *
 * Weights of a head's tokens have their powers of two in common: with E the largest e_j of the head, alpha_ki +
 * alpha_ik, at most 2 and a little, is multiplied by 2^(e_j - E + 10) before it becomes halves.  Everything else is
 * as in attlip.cu. */
#include "kernels/cuda/attlip.h"
#include "kernels/cuda/half.h"

#if TAUT_HALVES

enum { LIFT = 10, OTHERS = 4 }; /* OTHERS: numbers that come with a token: up, e, square, level */

/* The largest e of a head; one block per head. */
static __global__ void __launch_bounds__(THREADS) highest(float *most, const float *e, int t)
{
    __shared__ float part[THREADS / WARP];
    float x = LEAST;
    for (int i = threadIdx.x; i < t; i += THREADS) x = fmaxf(x, e[(int64_t)blockIdx.x * t + i]);
    for (int far = WARP / 2; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, far));
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = x;
    __syncthreads();
    for (int k = 0; k < THREADS / WARP; k++) x = fmaxf(x, part[k]);
    if (threadIdx.x == 0) most[blockIdx.x] = x;
}

/* Starts copying the tokens from j on, and the numbers that come with them. */
template <int PARTS, int DEPTH>
static __device__ inline void tokens_load(__half *tile, const packed &v, const facts &f, const attn &a, const place &p,
                                          int j)
{
    const int64_t row = p.of * a.tq + j;
    const int there = a.tq - j;
    const bool some = (int)threadIdx.x < there;
    half_load<DEPTH>(tile, KEYS, v.hi + row * DEPTH, there);
    if (PARTS == 3) half_load<DEPTH>(tile + KEYS * DEPTH, KEYS, v.lo + row * DEPTH, there);
    float *to = (float *)(tile + KEYS * DEPTH * (PARTS == 3 ? 2 : 1)) + threadIdx.x;
    const float *from[OTHERS] = { v.by.up, v.by.e, f.square, f.level };
#pragma unroll
    for (int i = 0; i < OTHERS; i++)
        if (from[i] && threadIdx.x < KEYS) copy_async<4>(to + i * KEYS, from[i] + row + (some ? threadIdx.x : 0), some);
    tile_start();
}

/* A block's rows of v, and the first tile on its way. */
template <int PARTS, int DEPTH>
static __device__ inline void rows_load(__half *own, int rows, const packed &v, const facts &f, const attn &a,
                                        const place &p)
{
    const int64_t row = p.of * a.tq + p.first;
    half_load<DEPTH>(own, rows, v.hi + row * DEPTH, a.tq - p.first);
    if (PARTS == 3) half_load<DEPTH>(own + rows * DEPTH, rows, v.lo + row * DEPTH, a.tq - p.first);
    tokens_load<PARTS, DEPTH>(own + rows * DEPTH * (PARTS == 3 ? 2 : 1), v, f, a, p, 0);
}

/* s = x_ij for the tile from j on. */
template <int PARTS, int DEPTH>
static __device__ inline void lip_scores(cell (&s)[1][CELLS], const __half *own, int rows, int first,
                                         const __half *tile, const float *ups, const float (&up)[2], const attn &a,
                                         const place &p, int j)
{
    cells_zero(s);
    half_dots<PARTS, DEPTH>(s, own, rows, first, tile);
#pragma unroll
    for (int n = 0; n < 4 * CELLS; n++) s[0][n / 4].x[n % 4] *= up[n % 4 / 2] * ups[cell_column(n / 4, n % 4)];
    lip_logits(s, a, p, p.first + first, j);
}

template <int PARTS, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2)
    half_value(float *max_, float *sum_, const packed v, const facts f, const attn a, float near)
{
    enum { HALVES = PARTS == 3 ? 2 : 1, TILE = KEYS * (DEPTH * HALVES + 2 * OTHERS) }; /* in halves */
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2, first = threadIdx.x / 32 * 16;
    const place p = lip_place(a, rows, near);
    __half *own = (__half *)room, *tiles = own + rows * DEPTH * HALVES;
    cell s[1][CELLS];
    float up[2], max[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 };
    lip_own(up, v.by.up, a, p, first);
    rows_load<PARTS, DEPTH>(own, rows, v, f, a, p);
    for (int j = 0, turn = 0; j < a.tq; j += KEYS, turn ^= 1) {
        const __half *tile = tiles + turn * TILE;
        const float *ups = (const float *)(tile + KEYS * DEPTH * HALVES), *squares = ups + 2 * KEYS;
        tile_wait();
        if (j + KEYS < a.tq) tokens_load<PARTS, DEPTH>(tiles + (turn ^ 1) * TILE, v, f, a, p, j + KEYS);
        lip_scores<PARTS, DEPTH>(s, own, rows, first, tile, ups, up, a, p, j);
        lip_gather(max, sum, s, squares);
    }
    lip_value_store(max_, sum_, max, sum, a, p, first);
}

template <int PARTS, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2) half_grad(float *g_, float *col_, const float *v_, const packed v,
                                                             const float *most, const facts f, const attn a, float near)
{
    enum { HALVES = PARTS == 3 ? 2 : 1, TILE = KEYS * (DEPTH * HALVES + 2 * OTHERS) };
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2, first = threadIdx.x / 32 * 16;
    const place p = lip_place(a, rows, near);
    const int64_t at = head_at(a, p, a.tq) + p.first * a.stride;
    const float top = most[p.of] - LIFT, scale[1][2] = { { a.scale, a.scale } };
    __half *own = (__half *)room, *tiles = own + rows * DEPTH * HALVES;
    cell s[1][CELLS], g[1][DEPTH / 8];
    float up[2], square[2], level[2], col[2] = { 0, 0 };
    unsigned hi[1][CELLS / 2][4], lo[1][CELLS / 2][4];
    cells_zero(g);
    lip_own(up, v.by.up, a, p, first), lip_own(square, f.square, a, p, first), lip_own(level, f.level, a, p, first);
    rows_load<PARTS, DEPTH>(own, rows, v, f, a, p);
    for (int j = 0, turn = 0; j < a.tq; j += KEYS, turn ^= 1) {
        const __half *tile = tiles + turn * TILE;
        const float *ups = (const float *)(tile + KEYS * DEPTH * HALVES), *e = ups + KEYS, *squares = e + KEYS;
        const float *levels = squares + KEYS;
        tile_wait();
        if (j + KEYS < a.tq) tokens_load<PARTS, DEPTH>(tiles + (turn ^ 1) * TILE, v, f, a, p, j + KEYS);
        lip_scores<PARTS, DEPTH>(s, own, rows, first, tile, ups, up, a, p, j);
#pragma unroll
        for (int n = 0; n < 4 * CELLS; n++) {
            const int c = cell_column(n / 4, n % 4), r = n % 4 / 2;
            float &x = s[0][n / 4].x[n % 4];
            const float back = attn_exp2(x + square[r] - levels[c]);
            col[r] += back;
            x = (attn_exp2(x + squares[c] - level[r]) + back) * attn_exp2(e[c] - top);
        }
        half_weights<PARTS>(hi, lo, s);
        half_mix<PARTS, DEPTH>(g, hi, lo, tile, [](float so_far, float sum, int, int) { return so_far + sum; });
    }
    const float down = attn_exp2(top);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = first + 8 * r + lane_g();
        const float total = row_sum(col[r]);
        if (p.first + row < a.tq && lane_t() == 0) col_[p.of * a.tq + p.first + row] = total;
#pragma unroll
        for (int n = 0; n < DEPTH / 4; n++) {
            const int c = 8 * (n / 2) + 2 * lane_t() + n % 2;
            float &x = g[0][n / 2].x[2 * r + n % 2];
            x *= down;
            if (p.first + row < a.tq && c < a.dh) x += (1 + total) * v_[at + row * a.stride + c];
        }
    }
    half_store<DEPTH>(g_ + at, a.stride, g, first, a.tq - p.first, a.dh, scale);
}

/* v as halves, behind the facts in the backend's memory; most follows it. */
template <int PARTS, int DEPTH>
static packed tokens_pack(float *&most, const float *v, const float *max, const float *sum, facts &f,
                          const taut_attn *t)
{
    const int64_t rows = t->n * t->heads * t->tq, before = 3 * rows * (int64_t)sizeof(float) + 256;
    char *none = NULL;
    packed_at(none, rows, DEPTH);
    char *work = (char *)cuda_work((size_t)(before + (int64_t)(size_t)none + t->n * t->heads * 4));
    if (!work) return { 0 };
    f = lip_facts_at((float *)work, v, NULL, max, sum, t);
    work += before / 256 * 256;
    const packed p = packed_at(work, rows, DEPTH);
    most = (float *)work;
    const bundle all = { { { v, p, rows, (int)t->tq } } };
    CUDA_LAUNCH(pack<DEPTH>, blocks_for(rows, THREADS / (DEPTH / PACKED)), THREADS, 0, all, (int)t->heads, (int)t->dh,
                PARTS == 3);
    return p;
}

template <int PARTS, int DEPTH> static crew crew_of(void)
{
    const size_t row = DEPTH * (PARTS == 3 ? 4 : 2) / sizeof(float);
    return { 4, 16, row, 2 * KEYS * (row + OTHERS) };
}

template <int PARTS, int DEPTH> static facts value(float *max, float *sum, const float *v, const taut_attn *t)
{
    facts f = { 0 };
    float *most = NULL;
    const packed p = tokens_pack<PARTS, DEPTH>(most, v, NULL, NULL, f, t);
    const attn a = lip_of(t);
    if (p.hi)
        attn_launch(half_value<PARTS, DEPTH>, crew_of<PARTS, DEPTH>(), t->n, a, a.tq, 1, max, sum, p, f, a,
                    (real)t->near);
    return f;
}

template <int PARTS, int DEPTH>
static void grad(float *g, float *col, const float *v, const float *max, const float *sum, const taut_attn *t)
{
    facts f = { 0 };
    float *most = NULL;
    const packed p = tokens_pack<PARTS, DEPTH>(most, v, max, sum, f, t);
    const attn a = lip_of(t);
    if (!p.hi) return;
    CUDA_LAUNCH(highest, t->n * t->heads, THREADS, 0, most, p.by.e, a.tq);
    attn_launch(half_grad<PARTS, DEPTH>, crew_of<PARTS, DEPTH>(), t->n, a, a.tq, 1, g, col, v, p, (const float *)most,
                f, a, (real)t->near);
}

template <int PARTS> static facts value_of(float *max, float *sum, const float *v, const taut_attn *t)
{
    return (t->dh <= 64 ? value<PARTS, 64> : value<PARTS, 128>)(max, sum, v, t);
}
template <int PARTS>
static void grad_of(float *g, float *col, const float *v, const float *max, const float *sum, const taut_attn *t)
{
    (t->dh <= 64 ? grad<PARTS, 64> : grad<PARTS, 128>)(g, col, v, max, sum, t);
}

facts lip_value_by_halves(real *max, real *sum, const real *v, const taut_attn *a)
{
    return TILE_PRODUCTS(value_of)(max, sum, v, a);
}
void lip_grad_by_halves(real *g, real *col, const real *v, const real *max, const real *sum, const taut_attn *a)
{
    TILE_PRODUCTS(grad_of)(g, col, v, max, sum, a);
}
#endif
