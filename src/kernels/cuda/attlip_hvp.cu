/* AttLip's second derivative times e (formulas: ref/attlip.c; poison and error: attlip.cu), twice tile by tile: for
 * the rows' means of dS, which every row needs of every other, then for the product.  dS_ij = 2 scale (v_i.e_j +
 * e_i.v_j) + own_i + own_j. */
#include "kernels/cuda/attlip.h"

/* s becomes x_ij and d becomes dS_ij, for the tile of tokens v, then e, then facts. */
template <int PARTS, int DEPTH>
static __device__ inline void lip_slopes(cell (&s)[1][CELLS], cell (&d)[1][CELLS], const real *own, const real *e,
                                         int first, const real *tile, const real (&mine)[2], const attn &a,
                                         const place &p, int j)
{
    const real *theirs = tile + 2 * KEYS * DEPTH + 2 * KEYS;
    cells_zero(s), cells_zero(d);
    tile_dots<PARTS, DEPTH>(s, own, first, tile, a.lines);
    tile_dots<PARTS, DEPTH>(d, own, first, tile + KEYS * DEPTH, a.lines);
    tile_dots<PARTS, DEPTH>(d, e, first, tile, a.lines);
    lip_logits(s, a, p, p.first + first, j);
#pragma unroll
    for (int n = 0; n < 4 * CELLS; n++) {
        real &x = d[0][n / 4].x[n % 4];
        x = 2 * a.scale * x + mine[n % 4 / 2] + theirs[cell_column(n / 4, n % 4)];
    }
}

/* A block's rows of v and e, and the first tile on its way. */
template <int DEPTH>
static __device__ inline void lip_begin(real *own, int rows, const real *v, const real *e, const facts &f,
                                        const attn &a, const place &p)
{
    const int64_t at = head_at(a, p, a.tq) + p.first * a.stride;
    tile_load<DEPTH>(own, rows, v + at, a.stride, a.tq - p.first, a.dh);
    tile_load<DEPTH>(own + rows * DEPTH, rows, e + at, a.stride, a.tq - p.first, a.dh);
    lip_load<DEPTH>(own + 2 * rows * DEPTH, v, e, f, a, p, 0);
}

template <int PARTS, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2)
    lip_mean(real *mean, const real *v, const real *e_, const facts f, const attn a, real near)
{
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2, first = threadIdx.x / 32 * 16;
    const place p = lip_place(a, rows, near);
    real *own = (real *)room, *e = own + rows * DEPTH, *tile = e + rows * DEPTH, *squares = tile + 2 * KEYS * DEPTH;
    real level[2], mine[2], sum[2] = { 0, 0 }, weight[2] = { 0, 0 };
    cell s[1][CELLS], d[1][CELLS];
    lip_own(level, f.level, a, p, first), lip_own(mine, f.own, a, p, first);
    lip_begin<DEPTH>(own, rows, v, e_, f, a, p);
    for (int j = 0; j < a.tq; j += KEYS) {
        tile_wait();
        lip_slopes<PARTS, DEPTH>(s, d, own, e, first, tile, mine, a, p, j);
#pragma unroll
        for (int n = 0; n < 4 * CELLS; n++) {
            const int r = n % 4 / 2;
            const real w = attn_exp2(s[0][n / 4].x[n % 4] + squares[cell_column(n / 4, n % 4)] - level[r]);
            weight[r] += w, sum[r] += w * d[0][n / 4].x[n % 4];
        }
        __syncthreads();
        if (j + KEYS < a.tq) lip_load<DEPTH>(tile, v, e_, f, a, p, j + KEYS);
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = p.first + first + 8 * r + lane_g();
        const real quotient = row_sum(sum[r]) / row_sum(weight[r]);
        if (i < a.tq && lane_t() == 0) mean[p.of * a.tq + i] = quotient;
    }
}

template <int PARTS, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2)
    lip_hvp(real *h_, const real *v, const real *e_, const real *col_, const facts f, const attn a, real near)
{
    enum { COLUMNS = DEPTH < 128 ? DEPTH : 128 };
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2, first = threadIdx.x / 32 * 16, from = blockIdx.y * COLUMNS;
    const place p = lip_place(a, rows, near);
    const int64_t at = head_at(a, p, a.tq) + p.first * a.stride;
    real *own = (real *)room, *e = own + rows * DEPTH, *tile = e + rows * DEPTH;
    const real *squares = tile + 2 * KEYS * DEPTH, *levels = squares + KEYS, *means = levels + 2 * KEYS;
    real square[2], level[2], mine[2], mean[2], col[2], moved[2] = { 0, 0 };
    const real one[1][2] = { { 1, 1 } }, scale[1][2] = { { a.scale, a.scale } };
    cell s[1][CELLS], d[1][CELLS], h[1][COLUMNS / 8];
    factor<PARTS, 4> weights[1][CELLS];
    lip_own(square, f.square, a, p, first), lip_own(level, f.level, a, p, first), lip_own(mine, f.own, a, p, first);
    lip_own(mean, f.mean, a, p, first), lip_own(col, col_, a, p, first);
    cells_zero(h);
    lip_begin<DEPTH>(own, rows, v, e_, f, a, p);
    for (int j = 0; j < a.tq; j += KEYS) {
        tile_wait();
        lip_slopes<PARTS, DEPTH>(s, d, own, e, first, tile, mine, a, p, j);
#pragma unroll
        for (int n = 0; n < 4 * CELLS; n++) {
            const int c = cell_column(n / 4, n % 4), r = n % 4 / 2;
            real &x = s[0][n / 4].x[n % 4], &y = d[0][n / 4].x[n % 4];
            const real to = attn_exp2(x + squares[c] - level[r]), back = attn_exp2(x + square[r] - levels[c]);
            const real turned = back * (y - means[c]);
            moved[r] += turned;
            x = to + back, y = to * (y - mean[r]) + turned;
        }
        weights_of(weights, s);
        tile_mix<PARTS, DEPTH, COLUMNS>(h, weights, tile + KEYS * DEPTH, from, one);
        weights_of(weights, d);
        tile_mix<PARTS, DEPTH, COLUMNS>(h, weights, tile, from, one);
        __syncthreads();
        if (j + KEYS < a.tq) lip_load<DEPTH>(tile, v, e_, f, a, p, j + KEYS);
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = first + 8 * r + lane_g();
        const real total = row_sum(moved[r]);
#pragma unroll
        for (int n = 0; n < COLUMNS / 4; n++) {
            const int c = from + mix_column(n / 2, n % 2);
            if (p.first + row < a.tq && c < a.dh)
                h[0][n / 2].x[2 * r + n % 2] += (1 + col[r]) * e_[at + row * a.stride + c] +
                                                total * v[at + row * a.stride + c];
        }
    }
    mix_store<COLUMNS>(h_ + at, a.stride, h, first, a.tq - p.first, from, a.dh, scale);
}

struct product {
    real *h, *mean;
    const real *e, *v, *col;
};

template <int PARTS, int DEPTH> static void product_by(const product &x, facts f, const taut_attn *t, const attn &a)
{
    const int columns = DEPTH < 128 ? DEPTH : 128;
    const crew c = { 4, 16, 2 * DEPTH, KEYS * (2 * DEPTH + FACTS) };
    attn_launch(lip_mean<PARTS, DEPTH>, c, t->n, a, a.tq, 1, x.mean, x.v, x.e, f, a, (real)t->near);
    f.mean = x.mean;
    attn_launch(lip_hvp<PARTS, DEPTH>, c, t->n, a, a.tq, blocks_for(a.dh, columns), x.h, x.v, x.e, x.col, f, a,
                (real)t->near);
}

template <int PARTS> static void product_of(const product &x, const facts &f, const taut_attn *t)
{
    LIP_DEPTHS(product_by, t->dh)(x, f, t, lip_of(t));
}

void CUDA(attlip_hvp)(taut_real *h, taut_real *mean, const taut_real *e, const taut_real *v, const taut_real *max,
                      const taut_real *sum, const taut_real *col, const taut_attn *a)
{
    const product x = { at(h), at(mean), at(e), at(v), at(col) };
    TILE_PRODUCTS(product_of)(x, lip_facts(x.v, x.e, at(max), at(sum), a), a);
}
