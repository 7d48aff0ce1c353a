/* Softmax attention, vjp (formulas: ref/attention.c): P = exp(S - lse) is made anew, tile by tile, twice.
 *
 * query_side has rows of queries and lets keys pass: D_i = go_i.o_i, kept for the other, and gq_i.  key_side has
 * rows of keys and lets queries pass: gk_j and gv_j.  Seven products instead of five, but every sum belongs to one
 * warp.  Floats with heads of at most 128 are in attention_vjp_half.cu, with products in bf16 in attention_vjp_bf16.cu.
 * Masking   as in attention.cu; masked keys and blind queries get exact zeros.
 * Poison    NaN in a query's q, go, o or lse reaches gq there and gk, gv of the keys it sees.
 * Error     with u and E of attention.cu (plus the caller's error of lse) and C = (dh + 40) u |go|.(|v|+|o|): dS is
 *           off by P (C + (E + u (8 + |S - lse| + 3 |lse|)) |go|.(|v|+|o|)), and every sum of N products adds (300 + N/64)
 *           u of its absolute terms. */
#include "kernels/cuda/attention.h"

struct arrays : attn_back {
    real *delta; /* (n, heads, tq) */
};

/* D of the lane's two rows: `go` is their tile, o the first row of the block. */
template <int DEPTH>
static __device__ inline void deltas(real (&delta)[2], const real *go, const real *o, const attn &a, int first,
                                     int there)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = first + 8 * r + lane_g();
        real sum = 0;
        for (int c = lane_t(); c < a.lines * 8 && row < there; c += 4)
#pragma unroll
            for (int x = 0; x < W; x++)
                if (c * W + x < a.dh) sum += go[row * DEPTH + (c ^ twist(row)) * W + x] * o[row * a.stride + c * W + x];
        delta[r] = row_sum(sum);
    }
}

/* Tiles that pass by: the next is on its way during the work on one, where there is room for two. */
template <int DEPTH> static constexpr int stages = DEPTH *KEYS * sizeof(real) <= 8192 ? 2 : 1;

/* Starts copying the keys from j on, and the values below them. */
template <int DEPTH>
static __device__ inline void keys_load(real *k, const arrays &x, const attn &a, int64_t k_at, int j, int end)
{
    tile_load<DEPTH>(k, KEYS, x.k + k_at + j * a.stride, a.stride, end - j, a.dh);
    tile_load<DEPTH>(k + KEYS * DEPTH, KEYS, x.v + k_at + j * a.stride, a.stride, end - j, a.dh);
    tile_start();
}

template <int PARTS, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2) query_side(const arrays x, const attn a)
{
    enum { COLUMNS = DEPTH < 128 ? DEPTH : 128, STAGES = stages<DEPTH> };
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2;
    const place p = place_of(a, a.tq, rows, a.causal);
    const int from = blockIdx.y * COLUMNS, first = threadIdx.x / 32 * 16, end = keys_end(a, p.first, rows);
    const int64_t q_at = head_at(a, p, a.tq) + p.first * a.stride, k_at = head_at(a, p, a.tk);
    real *q = (real *)room, *go = q + rows * DEPTH, *tiles = go + rows * DEPTH;
    cell gq[1][COLUMNS / 8], s[1][CELLS], ds[1][CELLS];
    real delta[2], lse[2];
    const real one[1][2] = { { 1, 1 } }, scale[1][2] = { { a.scale, a.scale } };
    factor<PARTS, 4> weights[1][CELLS];
    cells_zero(gq);
    tile_load<DEPTH>(q, rows, x.q + q_at, a.stride, a.tq - p.first, a.dh);
    tile_load<DEPTH>(go, rows, x.go + q_at, a.stride, a.tq - p.first, a.dh);
    keys_load<DEPTH>(tiles, x, a, k_at, 0, end);
    tile_wait();
    deltas<DEPTH>(delta, go, x.o + q_at, a, first, a.tq - p.first);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = p.first + first + 8 * r + lane_g();
        lse[r] = i < a.tq && attn_sees(a, i, 0) ? x.lse[p.of * a.tq + i] * LOG2E : 0;
        if (i < a.tq && lane_t() == 0 && from == 0) x.delta[p.of * a.tq + i] = delta[r];
    }
    for (int j = 0, turn = 0; j < end; j += KEYS, turn = (turn + 1) % STAGES) {
        const bool partly = keys_partly(a, p.first, j), more = j + KEYS < end;
        real *k = tiles + turn * 2 * KEYS * DEPTH, *v = k + KEYS * DEPTH;
        tile_wait();
        if (STAGES == 2 && more) keys_load<DEPTH>(tiles + (turn ^ 1) * 2 * KEYS * DEPTH, x, a, k_at, j + KEYS, end);
        cells_zero(s), cells_zero(ds);
        tile_dots<PARTS, DEPTH>(s, q, first, k, a.lines);
        tile_dots<PARTS, DEPTH>(ds, go, first, v, a.lines);
        attn_logits<false>(s, a, p, p.first + first, j, partly || j + KEYS > a.tk);
#pragma unroll
        for (int n = 0; n < 4 * CELLS; n++) {
            const real logit = s[0][n / 4].x[n % 4];
            real &out = ds[0][n / 4].x[n % 4];
            out = logit == -INFINITY ? 0 : attn_exp2(logit - lse[n % 4 / 2]) * (out - delta[n % 4 / 2]);
        }
        weights_of(weights, ds);
        if (partly)
            mix_guard<DEPTH, KEYS, COLUMNS>(gq, k, from, p.first + first,
                                            [&](int i, int r) { return attn_sees(a, i, j + r); });
        tile_mix<PARTS, DEPTH, COLUMNS>(gq, weights, k, from, one);
        if (STAGES == 1) __syncthreads();
        if (STAGES == 1 && more) keys_load<DEPTH>(tiles, x, a, k_at, j + KEYS, end);
    }
    mix_store<COLUMNS>(x.gq + q_at, a.stride, gq, first, a.tq - p.first, from, a.dh, scale);
}

/* Starts copying the queries from i on, with all that belongs to them: go below q, then lse and D. */
template <int DEPTH>
static __device__ inline void queries_load(real *q, const arrays &x, const attn &a, const place &p, int i)
{
    const int64_t at = head_at(a, p, a.tq) + (int64_t)i * a.stride, row = p.of * a.tq + i;
    tile_load<DEPTH>(q, KEYS, x.q + at, a.stride, a.tq - i, a.dh);
    tile_load<DEPTH>(q + KEYS * DEPTH, KEYS, x.go + at, a.stride, a.tq - i, a.dh);
    real *to = q + 2 * KEYS * DEPTH + threadIdx.x;
    const bool there = i + (int)threadIdx.x < a.tq;
    if (threadIdx.x < KEYS) {
        copy_async<sizeof(real)>(to, there ? x.lse + row + threadIdx.x : x.lse, there);
        copy_async<sizeof(real)>(to + KEYS, there ? x.delta + row + threadIdx.x : x.delta, there);
    }
    tile_start();
}

template <int PARTS, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2) key_side(const arrays x, const attn a)
{
    enum { COLUMNS = DEPTH < 128 ? DEPTH : 128, STAGES = stages<DEPTH>, TILE = 2 * KEYS * (DEPTH + 1) };
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2;
    const place p = place_of(a, a.tk, rows, false);
    const int from = blockIdx.y * COLUMNS, first = threadIdx.x / 32 * 16;
    const int64_t k_at = head_at(a, p, a.tk) + p.first * a.stride;
    real *k = (real *)room, *v = k + rows * DEPTH, *tiles = v + rows * DEPTH;
    cell gk[1][COLUMNS / 8], gv[1][COLUMNS / 8], s[1][CELLS], ds[1][CELLS];
    const real one[1][2] = { { 1, 1 } }, scale[1][2] = { { a.scale, a.scale } };
    factor<PARTS, 4> weights[1][CELLS];
    cells_zero(gk), cells_zero(gv);
    tile_load<DEPTH>(k, rows, x.k + k_at, a.stride, a.tk - p.first, a.dh);
    tile_load<DEPTH>(v, rows, x.v + k_at, a.stride, a.tk - p.first, a.dh);
    const int begin = a.causal && p.first > a.tk - a.tq ? (p.first - (a.tk - a.tq)) / KEYS * KEYS : 0;
    if (begin < a.tq) queries_load<DEPTH>(tiles, x, a, p, begin);
    for (int i = begin, turn = 0; i < a.tq; i += KEYS, turn = (turn + 1) % STAGES) {
        const bool partly = a.causal && p.first + rows - 1 > i + a.tk - a.tq, more = i + KEYS < a.tq;
        real *q = tiles + turn * TILE, *go = q + KEYS * DEPTH, *lse = go + KEYS * DEPTH, *delta = lse + KEYS;
        tile_wait();
        if (STAGES == 2 && more) queries_load<DEPTH>(tiles + (turn ^ 1) * TILE, x, a, p, i + KEYS);
        cells_zero(s), cells_zero(ds);
        tile_dots<PARTS, DEPTH>(s, k, first, q, a.lines);
        tile_dots<PARTS, DEPTH>(ds, v, first, go, a.lines);
        attn_logits<true>(s, a, p, p.first + first, i, partly || i + KEYS > a.tq);
#pragma unroll
        for (int n = 0; n < 4 * CELLS; n++) {
            const int c = cell_column(n / 4, n % 4);
            real &w = s[0][n / 4].x[n % 4], &out = ds[0][n / 4].x[n % 4];
            const bool seen = w != -INFINITY;
            w = seen ? attn_exp2(w - lse[c] * LOG2E) : 0;
            out = seen ? w * (out - delta[c]) : 0;
        }
        if (partly) {
            const auto sees = [&](int j, int r) { return attn_sees(a, i + r, j); };
            mix_guard<DEPTH, KEYS, COLUMNS>(gv, go, from, p.first + first, sees);
            mix_guard<DEPTH, KEYS, COLUMNS>(gk, q, from, p.first + first, sees);
        }
        weights_of(weights, s);
        tile_mix<PARTS, DEPTH, COLUMNS>(gv, weights, go, from, one);
        weights_of(weights, ds);
        tile_mix<PARTS, DEPTH, COLUMNS>(gk, weights, q, from, one);
        if (STAGES == 1) __syncthreads();
        if (STAGES == 1 && more) queries_load<DEPTH>(tiles, x, a, p, i + KEYS);
    }
    tile_start();
    tile_wait();
    mix_store<COLUMNS>(x.gk + k_at, a.stride, gk, first, a.tk - p.first, from, a.dh, scale);
    mix_store<COLUMNS>(x.gv + k_at, a.stride, gv, first, a.tk - p.first, from, a.dh, one);
}

template <int PARTS, int DEPTH> static void run(const arrays &x, int64_t n, const attn &a)
{
    const int columns = DEPTH < 128 ? DEPTH : 128;
    const crew by_query = { 4, 16, 2 * DEPTH, 2 * KEYS * DEPTH * stages<DEPTH> };
    const crew by_key = { 4, 16, 2 * DEPTH, 2 * KEYS * (DEPTH + 1) * stages<DEPTH> };
    attn_launch(query_side<PARTS, DEPTH>, by_query, n, a, a.tq, blocks_for(a.dh, columns), x, a);
    attn_launch(key_side<PARTS, DEPTH>, by_key, n, a, a.tk, blocks_for(a.dh, columns), x, a);
}

template <int PARTS> static void choose(const attn_back &of, int64_t n, const attn &a)
{
    if constexpr (sizeof(real) == 4)
        if (a.dh <= 128) {
            (cuda_products() == TAUT_PRODUCTS_BF16 ? attention_vjp_by_bf16 : attention_vjp_by_halves)(of, n, a);
            return;
        }
    real *delta = (real *)cuda_work((size_t)(n * a.heads * a.tq) * sizeof(real));
    const arrays x = { of, delta };
    if constexpr (sizeof(real) == 4)
        run<PARTS, 256>(x, n, a);
    else
        (a.dh <= 32    ? run<PARTS, 32>
         : a.dh <= 64  ? run<PARTS, 64>
         : a.dh <= 128 ? run<PARTS, 128>
                       : run<PARTS, 256>)(x, n, a);
}

void CUDA(attention_vjp)(taut_real *gq, taut_real *gk, taut_real *gv, const taut_real *go, const taut_real *o,
                         const taut_real *lse, const taut_real *q, const taut_real *k, const taut_real *v,
                         const taut_attn *a)
{
    const attn_back x = { at(gq), at(gk), at(gv), at(go), at(o), at(lse), at(q), at(k), at(v) };
    TILE_PRODUCTS(choose)(x, a->n, attn_of(a));
}
