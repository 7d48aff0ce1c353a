/* Softmax attention, forward (formulas: ref/attention.c): a block holds rows of queries, tiles of KEYS keys pass by.
 * Floats with heads of at most 128 are in attention_half.cu, with products in bf16 in attention_bf16.cu.
 *
 * Of every query the running maximum, the sum of exp(S - max) and the unscaled output are kept in registers.  One
 * tile of keys and one of values are in memory: one is on its way while the other is worked on.  A causal call
 * leaves out what nobody sees.
 * Masking   masked keys are exact zeros and are never read into a result, not even a NaN in them.
 * Poison    NaN or infinity in q_i, or in k_j or v_j that i sees, makes o_i NaN.
 * Batch     an example's result does not depend on its neighbours.
 * Error     with u = 2^-24 (double: 2^-53), V = max |v| in the head, E = (dh + 40) u scale |q|.|k| + 4 u |alibi| the
 *           worst error of a logit (absolute values inside the product):
 *           |o - exact| <= (2 E + (600 + tk/64) u) V,  |lse - exact| <= E + (300 + tk/64) u + 2 u |lse|.
 *           Products in tf32, and of wider heads in bf16: the same with u = 2^-11. */
#include "kernels/cuda/attention.h"

/* s becomes exp(s - max), with max and sum brought up to date; shrink is what the sums so far are to be multiplied
 * with. */
template <int N>
static __device__ inline void softmax_step(cell (&s)[N], real (&max)[2], real (&sum)[2], real (&shrink)[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        real top = -INFINITY, add = 0;
#pragma unroll
        for (int n = 0; n < N; n++) top = fmax(top, fmax(s[n].x[2 * r], s[n].x[2 * r + 1]));
        const real now = fmax(max[r], row_max(top)), base = now == -INFINITY ? 0 : now;
        shrink[r] = attn_exp2(max[r] - base);
        max[r] = now;
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int x = 2 * r; x < 2 * r + 2; x++) add += s[n].x[x] = attn_exp2(s[n].x[x] - base);
        sum[r] = sum[r] * shrink[r] + add;
    }
}

template <int PARTS, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2)
    forward(real *o_, real *lse, const real *q, const real *k, const real *v, const attn a)
{
    enum { COLUMNS = DEPTH < 128 ? DEPTH : 128 };
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2;
    const place p = place_of(a, a.tq, rows, a.causal);
    const int from = blockIdx.y * COLUMNS, first = threadIdx.x / 32 * 16, end = keys_end(a, p.first, rows);
    real *queries = (real *)room, *keys = queries + rows * DEPTH, *values = keys + KEYS * DEPTH;
    cell o[1][COLUMNS / 8], s[1][CELLS];
    real max[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 }, shrink[1][2];
    factor<PARTS, 4> weights[1][CELLS];
    cells_zero(o);
    q += head_at(a, p, a.tq) + p.first * a.stride, k += head_at(a, p, a.tk), v += head_at(a, p, a.tk) + from;
    tile_load<DEPTH>(queries, rows, q, a.stride, a.tq - p.first, a.dh);
    tile_load<DEPTH>(keys, KEYS, k, a.stride, end, a.dh);
    tile_start();
    for (int j = 0; j < end; j += KEYS) {
        const bool partly = keys_partly(a, p.first, j);
        tile_wait();
        tile_load<COLUMNS>(values, KEYS, v + j * a.stride, a.stride, a.tk - j, a.dh - from);
        tile_start();
        cells_zero(s);
        tile_dots<PARTS, DEPTH>(s, queries, first, keys, a.lines);
        attn_logits<false>(s, a, p, p.first + first, j, partly || j + KEYS > a.tk);
        softmax_step(s[0], max, sum, shrink[0]);
        weights_of(weights, s);
        tile_wait();
        if (j + KEYS < end) tile_load<DEPTH>(keys, KEYS, k + (j + KEYS) * a.stride, a.stride, end - j - KEYS, a.dh);
        tile_start();
        if (partly)
            mix_guard<COLUMNS, KEYS, COLUMNS>(o, values, 0, p.first + first,
                                              [&](int i, int r) { return attn_sees(a, i, j + r); });
        tile_mix<PARTS, COLUMNS, COLUMNS>(o, weights, values, 0, shrink);
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = p.first + first + 8 * r + lane_g();
        const bool blind = !attn_sees(a, i, 0);
        const real total = row_sum(sum[r]);
        shrink[0][r] = blind ? 0 : 1 / total;
        if (i < a.tq && lane_t() == 0 && from == 0)
            lse[p.of * a.tq + i] = blind ? -INFINITY : (max[r] == -INFINITY ? 0 : max[r]) * LN2 + log(total);
    }
    mix_store<COLUMNS>(o_ + head_at(a, p, a.tq) + p.first * a.stride, a.stride, o, first, a.tq - p.first, from, a.dh,
                       shrink);
}

template <int PARTS, int DEPTH>
static void run(real *o, real *lse, const real *q, const real *k, const real *v, int64_t n, const attn &a)
{
    const int columns = DEPTH < 128 ? DEPTH : 128;
    const crew c = { 4, 16, DEPTH, KEYS * (DEPTH + columns) };
    attn_launch(forward<PARTS, DEPTH>, c, n, a, a.tq, blocks_for(a.dh, columns), o, lse, q, k, v, a);
}

template <int PARTS>
static void choose(real *o, real *lse, const real *q, const real *k, const real *v, int64_t n, const attn &a)
{
    if constexpr (sizeof(real) == 4)
        (a.dh > 128                              ? run<PARTS, 256>
         : cuda_products() == TAUT_PRODUCTS_BF16 ? attention_by_bf16
                                                 : attention_by_halves)(o, lse, q, k, v, n, a);
    else
        (a.dh <= 32    ? run<PARTS, 32>
         : a.dh <= 64  ? run<PARTS, 64>
         : a.dh <= 128 ? run<PARTS, 128>
                       : run<PARTS, 256>)(o, lse, q, k, v, n, a);
}

void CUDA(attention)(taut_real *o, taut_real *lse, const taut_real *q, const taut_real *k, const taut_real *v,
                     const taut_attn *a)
{
    TILE_PRODUCTS(choose)(at(o), at(lse), at(q), at(k), at(v), a->n, attn_of(a));
}
