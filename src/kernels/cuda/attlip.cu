/* AttLip's potential and its gradient (formulas: ref/attlip.c), tile by tile (attlip.h); the second derivative is in
 * attlip_hvp.cu.
 *
 * Value     online, as attention.cu: max is the largest t_ij of a row.
 * Poison    NaN or infinity in a token reaches every token of its head.
 * Error     with u = 2^-24 (double: 2^-53, products in tf32 or bf16: 2^-11), V = max |v_i| in the head, F = max
 *           |e_i|, L = 3 (dh + 8) u scale V^2 + 4 u near t the worst error of a logit and R = 2 L + (1000 + t/32) u:
 *           |max + ln sum - exact| <= R;  |f - exact| <= t heads (2 L + 400 u) + u |f|;
 *           |col - exact| <= R (1 + col);  |g - exact| <= R scale [ (1 + col_k) |v_k| + sum_i (a_ki + a_ik) |v_i| ];
 *           |h - exact| <= scale [ R ((1 + col_k)|e_k| + sum_i (a_ki + a_ik)|e_i|) + Q (col_k |v_k| + sum_i (a_ki +
 *           a_ik)|v_i|) ],
 *           Q = 8 scale V F (6 R + (4 dh + 40) u); absolute values entry by entry, and exp drops terms under 1e-37. */
#include "kernels/cuda/attlip.h"

template <int PARTS, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2)
    lip_value(real *max_, real *sum_, const real *v, const facts f, const attn a, real near)
{
    enum { TILE = KEYS * (DEPTH + FACTS) };
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2, first = threadIdx.x / 32 * 16;
    const place p = lip_place(a, rows, near);
    real *own = (real *)room, *tile = own + rows * DEPTH;
    cell s[1][CELLS];
    real max[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 };
    tile_load<DEPTH>(own, rows, v + head_at(a, p, a.tq) + p.first * a.stride, a.stride, a.tq - p.first, a.dh);
    lip_load<DEPTH>(tile, v, NULL, f, a, p, 0);
    for (int j = 0; j < a.tq; j += KEYS) {
        real *now = tile + j / KEYS % 2 * TILE, *square = now + KEYS * DEPTH;
        tile_wait();
        if (j + KEYS < a.tq) lip_load<DEPTH>(tile + (j / KEYS + 1) % 2 * TILE, v, NULL, f, a, p, j + KEYS);
        cells_zero(s);
        tile_dots<PARTS, DEPTH>(s, own, first, now, a.lines);
        lip_logits(s, a, p, p.first + first, j);
        lip_gather(max, sum, s, square);
    }
    lip_value_store(max_, sum_, max, sum, a, p, first);
}

enum { MANY = 1024 };

/* f of an example: half the sum over its heads' rows of scale |v|^2 + max + ln sum.  One block per example. */
static __global__ void __launch_bounds__(MANY)
    lip_total(double *f, const real *square, const real *max, const real *sum, int64_t rows)
{
    double total = 0;
    for (int64_t i = threadIdx.x; i < rows; i += MANY) {
        const int64_t row = blockIdx.x * rows + i;
        total += (double)square[row] * 0.6931471805599453 + (double)max[row] + log((double)sum[row]);
    }
    total = block_sum(total);
    if (threadIdx.x == 0) f[blockIdx.x] = total / 2;
}

template <int PARTS, int DEPTH>
static void value(real *max, real *sum, const real *v, const facts &f, const taut_attn *t, const attn &a)
{
    const crew c = { 4, 16, DEPTH, 2 * KEYS * (DEPTH + FACTS) };
    attn_launch(lip_value<PARTS, DEPTH>, c, t->n, a, a.tq, 1, max, sum, v, f, a, (real)t->near);
}

template <int PARTS> static void value_of(real *max, real *sum, const real *v, const facts &f, const taut_attn *t)
{
    LIP_DEPTHS(value, t->dh)(max, sum, v, f, t, lip_of(t));
}

static facts value_and_facts(real *max, real *sum, const real *v, const taut_attn *a)
{
    if constexpr (sizeof(real) == 4)
        if (a->dh <= 128) return lip_value_by_halves(max, sum, v, a);
    const facts f = lip_facts(v, NULL, NULL, NULL, a);
    TILE_PRODUCTS(value_of)(max, sum, v, f, a);
    return f;
}

void CUDA(attlip)(taut_sum *f, taut_real *max, taut_real *sum, const taut_real *v, const taut_attn *a)
{
    const facts facts = value_and_facts(at(max), at(sum), at(v), a);
    CUDA_LAUNCH(lip_total, a->n, MANY, 0, at(f), facts.square, at(max), at(sum), a->heads * a->tq);
}

/* What a row adds by itself, (1 + col) v, after the sum over others; and col, which the four lanes of a row have in
 * parts. */
template <int COLUMNS>
static __device__ inline void lip_finish(cell (&g)[1][COLUMNS / 8], real *col_, const real (&col)[2], const real *v,
                                         int from, const attn &a, const place &p, int first)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = first + 8 * r + lane_g();
        const real total = row_sum(col[r]);
        if (p.first + row < a.tq && lane_t() == 0 && from == 0) col_[p.of * a.tq + p.first + row] = total;
#pragma unroll
        for (int n = 0; n < COLUMNS / 4; n++) {
            const int c = from + mix_column(n / 2, n % 2);
            if (p.first + row < a.tq && c < a.dh) g[0][n / 2].x[2 * r + n % 2] += (1 + total) * v[row * a.stride + c];
        }
    }
}

template <int PARTS, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2)
    lip_grad(real *g_, real *col_, const real *v, const facts f, const attn a, real near)
{
    enum { COLUMNS = DEPTH < 128 ? DEPTH : 128, TILE = KEYS * (DEPTH + FACTS) };
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2, first = threadIdx.x / 32 * 16, from = blockIdx.y * COLUMNS;
    const place p = lip_place(a, rows, near);
    const int64_t at = head_at(a, p, a.tq) + p.first * a.stride;
    real *own = (real *)room, *tile = own + rows * DEPTH, square[2], level[2], col[2] = { 0, 0 };
    cell s[1][CELLS], g[1][COLUMNS / 8];
    const real one[1][2] = { { 1, 1 } }, scale[1][2] = { { a.scale, a.scale } };
    factor<PARTS, 4> weights[1][CELLS];
    cells_zero(g);
    lip_own(square, f.square, a, p, first), lip_own(level, f.level, a, p, first);
    tile_load<DEPTH>(own, rows, v + at, a.stride, a.tq - p.first, a.dh);
    lip_load<DEPTH>(tile, v, NULL, f, a, p, 0);
    for (int j = 0; j < a.tq; j += KEYS) {
        real *now = tile + j / KEYS % 2 * TILE, *squares = now + KEYS * DEPTH, *levels = squares + KEYS;
        tile_wait();
        if (j + KEYS < a.tq) lip_load<DEPTH>(tile + (j / KEYS + 1) % 2 * TILE, v, NULL, f, a, p, j + KEYS);
        cells_zero(s);
        tile_dots<PARTS, DEPTH>(s, own, first, now, a.lines);
        lip_logits(s, a, p, p.first + first, j);
#pragma unroll
        for (int n = 0; n < 4 * CELLS; n++) {
            const int c = cell_column(n / 4, n % 4), r = n % 4 / 2;
            real &x = s[0][n / 4].x[n % 4];
            const real back = attn_exp2(x + square[r] - levels[c]);
            col[r] += back;
            x = attn_exp2(x + squares[c] - level[r]) + back;
        }
        weights_of(weights, s);
        tile_mix<PARTS, DEPTH, COLUMNS>(g, weights, now, from, one);
    }
    lip_finish<COLUMNS>(g, col_, col, v + at, from, a, p, first);
    mix_store<COLUMNS>(g_ + at, a.stride, g, first, a.tq - p.first, from, a.dh, scale);
}

template <int PARTS, int DEPTH>
static void grad(real *g, real *col, const real *v, const facts &f, const taut_attn *t, const attn &a)
{
    const int columns = DEPTH < 128 ? DEPTH : 128;
    const crew c = { 4, 16, DEPTH, 2 * KEYS * (DEPTH + FACTS) };
    attn_launch(lip_grad<PARTS, DEPTH>, c, t->n, a, a.tq, blocks_for(a.dh, columns), g, col, v, f, a, (real)t->near);
}

template <int PARTS> static void grad_of(real *g, real *col, const real *v, const facts &f, const taut_attn *t)
{
    LIP_DEPTHS(grad, t->dh)(g, col, v, f, t, lip_of(t));
}

void CUDA(attlip_grad)(taut_real *g, taut_real *col, const taut_real *v, const taut_real *max, const taut_real *sum,
                       const taut_attn *a)
{
    if constexpr (sizeof(real) == 4)
        if (a->dh <= 128) return lip_grad_by_halves(at(g), at(col), at(v), at(max), at(sum), a);
    TILE_PRODUCTS(grad_of)(at(g), at(col), at(v), lip_facts(at(v), NULL, at(max), at(sum), a), a);
}
