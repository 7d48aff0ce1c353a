/* Attention by position alone (formulas: ref/distance.c).
 *
 * p is small and shared by all examples, so its softmax and the softmax's adjoint are done in double and rounded
 * once.  Mixing is a product p^h v per head and example: a block holds a few rows of results, tiles of KEYS tokens
 * pass by, and p comes from memory straight into cells.  mix_vjp holds a square of results and lets examples pass,
 * in slices where there are few squares; slices are added in order.
 * Masking   keys after their query, when causal: p is not read there.  Poison: NaN and infinity propagate.
 *           Aliasing: none.
 * Error     with u = 2^-24 (double: 2^-53):  softmax 2 u p (double: 16 u p) + 2^-149;  softmax_vjp u of the result
 *           and 2^-40 of the absolute values added;  mix (t + 32) (u sum |p||v| + 2^-135 V), V = max(1, |v|);
 *           mix_vjp (n dh + 32) (u sum |go||v| + 2^-135).  Products in tf32 or bf16: 2^-10 of those sums more. */
#include "kernels/cuda/attention.h"
#include "kernels/cuda/reduce.h"

static attn attn_like(const taut_distance *d)
{
    const taut_attn a = { d->n, d->heads, d->t, d->t, d->dh, 1, d->causal, false, 0 };
    return attn_of(&a);
}

/* taut_distance without pointers of the host. */
struct shifts {
    int64_t t, span, row;
    bool causal;
};
static __device__ inline int64_t column_of(const shifts &s, int64_t i, int64_t j)
{
    if (s.row == 0) return i - j + (s.causal ? 0 : s.span / 2);
    const int64_t rows = s.t / s.row, down = i / s.row - j / s.row, right = i % s.row - j % s.row;
    return (down < 0 ? down + rows : down) * s.row + (right < 0 ? right + s.row : right);
}
/* The key that query i meets in column c; outside 0 .. t-1: none. */
static __device__ inline int64_t key_of(const shifts &s, int64_t i, int64_t c)
{
    if (s.row == 0) return i - c + (s.causal ? 0 : s.span / 2);
    const int64_t rows = s.t / s.row, down = i / s.row - c / s.row, right = i % s.row - c % s.row;
    return (down < 0 ? down + rows : down) * s.row + (right < 0 ? right + s.row : right);
}

/* Every thread gets the largest over its block; NaN counts only where there is nothing else. */
static __device__ double block_max(double x)
{
    __shared__ double part[THREADS / WARP];
    for (int far = WARP / 2; far > 0; far /= 2) x = fmax(x, __shfl_xor_sync(~0u, x, far));
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = x;
    __syncthreads();
    for (int k = 0; k < THREADS / WARP; k++) x = fmax(x, part[k]);
    return x;
}

/* One block per row of p. */
static __global__ void __launch_bounds__(THREADS) softmax_rows(real *p, const real *w, const real *gain, const shifts s)
{
    const int64_t h = blockIdx.x / s.t, i = blockIdx.x % s.t, keys = s.causal ? i + 1 : s.t;
    double most = -INFINITY, sum = 0;
    p += blockIdx.x * s.t, w += h * s.span;
    for (int64_t j = threadIdx.x; j < keys; j += THREADS) most = fmax(most, (double)w[column_of(s, i, j)]);
    most = block_max(most);
    for (int64_t j = threadIdx.x; j < keys; j += THREADS) sum += exp((double)w[column_of(s, i, j)] - most);
    sum = block_sum(sum);
    for (int64_t j = threadIdx.x; j < s.t; j += THREADS)
        p[j] = j < keys ? (real)((double)gain[h] * (exp((double)w[column_of(s, i, j)] - most) / sum)) : 0;
}

void CUDA(distance_softmax)(taut_real *p, const taut_real *w, const taut_distance *a)
{
    const shifts s = { a->t, a->span, a->row, a->causal };
    const cuda_says says;
    says.writes(at(p), a->heads * a->t * a->t);
    CUDA_LAUNCH(softmax_rows, a->heads * a->t, THREADS, 0, at(p), at(w), at(a->gain), s);
}

/* mean_i = sum over j of p_ij / gain * gp_ij */
static __global__ void __launch_bounds__(THREADS)
    means(double *mean, const real *gp, const real *p, const real *gain, const shifts s)
{
    const int64_t h = blockIdx.x / s.t, i = blockIdx.x % s.t, keys = s.causal ? i + 1 : s.t, at = blockIdx.x * s.t;
    double sum = 0;
    for (int64_t j = threadIdx.x; j < keys; j += THREADS)
        sum += (double)p[at + j] / (double)gain[h] * (double)gp[at + j];
    sum = block_sum(sum);
    if (threadIdx.x == 0) mean[blockIdx.x] = sum;
}

/* Every warp of a block has the same 32 columns of w and every eighth query; their sums are added in order. */
static __global__ void __launch_bounds__(THREADS)
    gather_columns(real *gw, const real *gp, const real *p, const double *mean, const shifts s)
{
    __shared__ double part[THREADS / WARP][WARP];
    const int64_t blocks = (s.span + WARP - 1) / WARP, h = blockIdx.x / blocks;
    const int64_t c = blockIdx.x % blocks * WARP + threadIdx.x % WARP;
    double sum = 0;
    for (int64_t i = threadIdx.x / WARP; i < s.t; i += THREADS / WARP) {
        const int64_t j = c < s.span ? key_of(s, i, c) : -1, at = (h * s.t + i) * s.t + j;
        if (0 <= j && j < (s.causal ? i + 1 : s.t)) sum += (double)p[at] * ((double)gp[at] - mean[h * s.t + i]);
    }
    part[threadIdx.x / WARP][threadIdx.x % WARP] = sum;
    __syncthreads();
    if (threadIdx.x >= WARP || c >= s.span) return;
    for (int k = 1; k < THREADS / WARP; k++) sum += part[k][threadIdx.x];
    gw[h * s.span + c] = (real)((double)gw[h * s.span + c] + sum);
}

void CUDA(distance_softmax_vjp)(taut_real *gw, const taut_real *gp, const taut_real *p, const taut_distance *a)
{
    const shifts s = { a->t, a->span, a->row, a->causal };
    double *mean = (double *)cuda_work((size_t)(a->heads * a->t) * sizeof(double));
    if (!mean || a->t == 0) return;
    const cuda_says says;
    says.writes(at(gw), a->heads * a->span);
    CUDA_LAUNCH(means, a->heads * a->t, THREADS, 0, mean, at(gp), at(p), at(a->gain), s);
    CUDA_LAUNCH(gather_columns, a->heads * blocks_for(a->span, WARP), THREADS, 0, at(gw), at(gp), at(p), mean, s);
}

/* Cells of p where rows first.. meet columns from..; BACK: of its transpose, so that rows are keys. */
template <bool BACK>
static __device__ inline void load_cells(cell (&w)[1][CELLS], const real *p, const attn &a, int first, int from)
{
#pragma unroll
    for (int n = 0; n < 4 * CELLS; n++) {
        const int r = cell_row(first, 0, n % 4), c = from + cell_column(n / 4, n % 4), i = BACK ? c : r,
                  j = BACK ? r : c;
        w[0][n / 4].x[n % 4] = i < a.tq && attn_sees(a, i, j) ? p[(int64_t)i * a.tk + j] : 0;
    }
}

template <int PARTS, int COLUMNS, bool BACK>
static __global__ void __launch_bounds__(CREW / 2) mix(real *o_, void *low, const real *p, const real *v, const attn a)
{
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2, first = threadIdx.x / 32 * 16, from = blockIdx.y * COLUMNS;
    const place w = place_of(a, a.tq, rows, a.causal && !BACK);
    const int begin = a.causal && BACK ? w.first / KEYS * KEYS : 0;
    const int end = a.causal && !BACK && w.first + rows < a.tq ? w.first + rows : a.tq;
    const int64_t at = head_at(a, w, a.tq);
    real *tile = (real *)room;
    cell o[1][COLUMNS / 8], weight[1][CELLS];
    const real one[1][2] = { { 1, 1 } };
    factor<PARTS, 4> weights[1][CELLS];
    cells_zero(o);
    p += (int64_t)w.head * a.tq * a.tk, v += at + from;
    tile_load<COLUMNS>(tile, KEYS, v + begin * a.stride, a.stride, a.tq - begin, a.dh - from);
    tile_start();
    for (int j = begin, turn = 0; j < end; j += KEYS, turn ^= 1) {
        real *now = tile + turn * KEYS * COLUMNS, *next = tile + (turn ^ 1) * KEYS * COLUMNS;
        load_cells<BACK>(weight, p, a, w.first + first, j);
        tile_wait();
        if (j + KEYS < end)
            tile_load<COLUMNS>(next, KEYS, v + (j + KEYS) * a.stride, a.stride, a.tq - j - KEYS, a.dh - from);
        tile_start();
        if (a.causal && (BACK ? j < w.first + rows : j + KEYS > w.first))
            mix_guard<COLUMNS, KEYS, COLUMNS>(o, now, 0, w.first + first, [&](int r, int c) {
                return BACK ? attn_sees(a, j + c, r) : attn_sees(a, r, j + c);
            });
        weights_of(weights, weight);
        tile_mix<PARTS, COLUMNS, COLUMNS>(o, weights, now, 0, one);
    }
    const int64_t to = at + w.first * a.stride;
    mix_store<COLUMNS>(o_ + to, a.stride, o, first, a.tq - w.first, from, a.dh, one, low_behind(low, to));
}

struct mixing {
    real *o;
    void *low; /* o as bf16 (lowered.h), or NULL */
    const real *p, *v;
    bool back;
};
template <int PARTS, int COLUMNS> static void mix_by(const mixing &x, int64_t n, const attn &a)
{
    const crew c = { 4, 16, 0, 2 * KEYS * COLUMNS };
    attn_launch(x.back ? mix<PARTS, COLUMNS, true> : mix<PARTS, COLUMNS, false>, c, n, a, a.tq,
                blocks_for(a.dh, COLUMNS), x.o, x.low, x.p, x.v, a);
}
template <int PARTS> static void mix_of(const mixing &x, int64_t n, const attn &a)
{
    (a.dh <= 32   ? mix_by<PARTS, 32>
     : a.dh <= 64 ? mix_by<PARTS, 64>
     : a.dh <= 96 ? mix_by<PARTS, 96>
                  : mix_by<PARTS, 128>)(x, n, a);
}

void CUDA(distance_mix)(taut_real *o, const taut_real *p, const taut_real *v, const taut_distance *a, bool back)
{
    const int64_t len = a->n * a->t * a->heads * a->dh;
    const cuda_says says;
    says.writes(at(o), len);
    void *const low = a->dh % W == 0 && (uintptr_t)o % 16 == 0 ? says.lowers(at(o), len) : NULL;
    const mixing x = { at(o), low, at(p), at(v), back };
    TILE_PRODUCTS(mix_of)(x, a->n, attn_like(a));
}

/* Examples that pass by a square: so many that all squares of all slices keep the device busy.  Sizes alone decide. */
static int64_t slice_of(const attn &a, int64_t n)
{
    const int64_t squares = a.heads * blocks_for(a.tq, 64) * blocks_for(a.tq, KEYS), busy = 512;
    const int64_t slices = squares >= busy ? 1 : busy / (squares > 0 ? squares : 1);
    return n <= slices ? 1 : blocks_for(n, slices);
}

/* A block has `rows` queries and KEYS keys (blockIdx.y) of a head, and adds over the examples of a slice in order. */
template <int PARTS, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2)
    pairs(real *gp, const real *go, const real *v, const attn a, int64_t n, int64_t slice)
{
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2, first = threadIdx.x / 32 * 16, j = blockIdx.y * KEYS;
    const place w = place_of(a, a.tq, rows, false);
    const int64_t at = (int64_t)w.head * a.dh, begin = w.of / a.heads * slice, end = min(n, begin + slice);
    real *left = (real *)room, *right = left + rows * DEPTH;
    cell s[1][CELLS], sum[1][CELLS];
    cells_zero(sum);
    for (int64_t e = begin; e < end && attn_sees(a, w.first + rows - 1, j); e++) {
        const real *of = go + at + (e * a.tq + w.first) * a.stride, *with = v + at + (e * a.tq + j) * a.stride;
        __syncthreads();
        tile_load<DEPTH>(left, rows, of, a.stride, a.tq - w.first, a.dh);
        tile_load<DEPTH>(right, KEYS, with, a.stride, a.tq - j, a.dh);
        tile_start();
        tile_wait();
        cells_zero(s);
        tile_dots<PARTS, DEPTH>(s, left, first, right, a.lines);
#pragma unroll
        for (int i = 0; i < 4 * CELLS; i++) sum[0][i / 4].x[i % 4] += s[0][i / 4].x[i % 4];
    }
#pragma unroll
    for (int x = 0; x < 4 * CELLS; x++) {
        const int i = cell_row(w.first + first, 0, x % 4), k = j + cell_column(x / 4, x % 4);
        if (i < a.tq && k < a.tq) gp[(w.of * a.tq + i) * a.tq + k] = attn_sees(a, i, k) ? sum[0][x / 4].x[x % 4] : 0;
    }
}

/* y_i = the sum of x_i over slices, in order.  One entry a thread, since there are few. */
static __global__ void add_slices(real *y, const real *x, int64_t count, int64_t len)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= len) return;
    real sum = x[i];
#pragma unroll 8
    for (int64_t s = 1; s < count; s++) sum += x[s * len + i];
    y[i] = sum;
}

template <int PARTS, int DEPTH> static void pairs_by(real *gp, const real *go, const real *v, int64_t n, const attn &a)
{
    const int64_t slice = slice_of(a, n), count = n > 0 ? blocks_for(n, slice) : 1;
    const int64_t len = (int64_t)a.heads * a.tq * a.tq;
    real *to = count == 1 ? gp : (real *)cuda_work((size_t)(count * len) * sizeof(real));
    if (!to) return;
    attn_launch(pairs<PARTS, DEPTH>, { 4, 16, DEPTH, KEYS * DEPTH }, count, a, a.tq, blocks_for(a.tq, KEYS), to, go, v,
                a, n, slice);
    if (count > 1) CUDA_LAUNCH(add_slices, blocks_for(len, 64), 64, 0, gp, to, count, len);
}
template <int PARTS> static void pairs_of(real *gp, const real *go, const real *v, int64_t n, const attn &a)
{
    (a.dh <= 32    ? pairs_by<PARTS, 32>
     : a.dh <= 64  ? pairs_by<PARTS, 64>
     : a.dh <= 96  ? pairs_by<PARTS, 96>
     : a.dh <= 128 ? pairs_by<PARTS, 128>
                   : pairs_by<PARTS, 256>)(gp, go, v, n, a);
}

void CUDA(distance_mix_vjp)(taut_real *gp, const taut_real *go, const taut_real *v, const taut_distance *a)
{
    const cuda_says says;
    says.writes(at(gp), a->heads * a->t * a->t);
    TILE_PRODUCTS(pairs_of)(at(gp), at(go), at(v), a->n, attn_like(a));
}
