/* Softmax attention, jvp.  With T_ij = scale (tq_i.k_j + q_i.tk_j) and any number c_i:
 *     to_i = sum_j P_ij tv_j + sum_j P_ij (T_ij - c_i) v_j - m_i o_i,   m_i = sum_j P_ij (T_ij - c_i)
 * c_i is T at the largest logit so far, which makes the terms of a saturated row small one by one; when another
 * logit is the largest, sums that were made with the old c_i are brought to the new one by what was gathered of o_i.
 * Masking and poison as in attention.cu, with tq, tk, tv beside q, k, v.
 * Error     with u and E of attention.cu, F = (2 dh + 80) u scale (|tq|.|k| + |q|.|tk|) the worst error of T, V =
 *           max |v|, W = max |tv|,
 *           D = max |T| over what the query sees:  |to - exact| <= (2 E + (700 + tk/64) u) (W + 4 D V) + 2 F V. */
#include "kernels/cuda/attention.h"

struct tangent {
    real max, sum, centre, tilt; /* tilt: the sum of P (T - centre) */
};

/* The largest logit of a row, and T there, over the lane's entries and then over the four lanes; the first of
 * equals. */
template <int N>
static __device__ inline void row_top(real &top, real &there, const cell (&s)[N], const cell (&t)[N], int r)
{
    top = -INFINITY, there = 0;
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int x = 2 * r; x < 2 * r + 2; x++)
            if (s[n].x[x] > top) top = s[n].x[x], there = t[n].x[x];
#pragma unroll
    for (int far = 1; far < 4; far *= 2) {
        const real other = __shfl_xor_sync(~0u, top, far), beside = __shfl_xor_sync(~0u, there, far);
        const bool mine = top > other || (top == other && !(lane_t() & far));
        if (!mine) top = other, there = beside;
    }
}

/* s, the logits, become P; t, the products, become P (T - centre); and u = shrink u + shift o is to bring what was
 * gathered up to date. */
template <int N>
static __device__ inline void tangent_step(cell (&s)[N], cell (&t)[N], real scale, tangent (&w)[2], real (&shrink)[2],
                                           real (&shift)[2])
{
#pragma unroll
    for (int n = 0; n < 4 * N; n++) t[n / 4].x[n % 4] *= scale;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        real top, there, add = 0, tilt = 0;
        row_top(top, there, s, t, r);
        const real now = fmax(w[r].max, top), base = now == -INFINITY ? 0 : now;
        const real centre = top > w[r].max ? there : w[r].centre;
        shrink[r] = attn_exp2(w[r].max - base);
        shift[r] = shrink[r] * (w[r].centre - centre);
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int x = 2 * r; x < 2 * r + 2; x++) {
                const bool seen = s[n].x[x] != -INFINITY;
                add += s[n].x[x] = attn_exp2(s[n].x[x] - base);
                tilt += t[n].x[x] = seen ? s[n].x[x] * (t[n].x[x] - centre) : 0;
            }
        w[r] = { now, w[r].sum * shrink[r] + add, centre, w[r].tilt * shrink[r] + shift[r] * w[r].sum + tilt };
    }
}

/* What is left to do: u becomes shrink (u + shift o). */
static __device__ inline void tangent_finish(const tangent (&w)[2], real (&shrink)[2], real (&shift)[2], const attn &a,
                                             int first)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const real sum = row_sum(w[r].sum), tilt = row_sum(w[r].tilt);
        const bool sees = attn_sees(a, first + 8 * r + lane_g(), 0);
        shrink[r] = sees ? 1 / sum : 0, shift[r] = sees ? -tilt / sum : 0;
    }
}

struct inputs {
    const real *tq, *tk, *tv, *q, *k, *v;
};

/* Starts copying a tile and, right below, that of its tangent. */
template <int DEPTH>
static __device__ inline void pair_load(real *tile, int rows, const real *x, const real *tx, int64_t stride, int there,
                                        int d)
{
    tile_load<DEPTH>(tile, rows, x, stride, there, d);
    tile_load<DEPTH>(tile + rows * DEPTH, rows, tx, stride, there, d);
}

/* u = shrink u + shift o */
template <int COLUMNS>
static __device__ inline void shifted(cell (&u)[COLUMNS / 8], const cell (&o)[COLUMNS / 8], const real (&shrink)[2],
                                      const real (&shift)[2])
{
#pragma unroll
    for (int n = 0; n < COLUMNS / 2; n++) {
        real &x = u[n / 4].x[n % 4];
        x = shrink[n % 4 / 2] * x + shift[n % 4 / 2] * o[n / 4].x[n % 4];
    }
}

template <int PARTS, int DEPTH>
static __global__ void __launch_bounds__(CREW) tangents(real *to, const inputs x, const attn a)
{
    enum { COLUMNS = DEPTH < 128 ? DEPTH : 128 };
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2;
    const place p = place_of(a, a.tq, rows, a.causal);
    const int from = blockIdx.y * COLUMNS, first = threadIdx.x / 32 * 16, end = keys_end(a, p.first, rows);
    const int64_t q_at = head_at(a, p, a.tq) + p.first * a.stride, k_at = head_at(a, p, a.tk);
    real *q = (real *)room, *tq = q + rows * DEPTH, *k = tq + rows * DEPTH, *tk = k + KEYS * DEPTH;
    real *v = tk + KEYS * DEPTH, *tv = v + KEYS * COLUMNS;
    cell o[1][COLUMNS / 8], u[1][COLUMNS / 8], s[1][CELLS], t[1][CELLS];
    tangent w[2] = { { -INFINITY, 0, 0, 0 }, { -INFINITY, 0, 0, 0 } };
    real shrink[1][2], shift[2];
    const real one[1][2] = { { 1, 1 } };
    factor<PARTS, 4> weights[1][CELLS];
    cells_zero(o), cells_zero(u);
    pair_load<DEPTH>(q, rows, x.q + q_at, x.tq + q_at, a.stride, a.tq - p.first, a.dh);
    pair_load<DEPTH>(k, KEYS, x.k + k_at, x.tk + k_at, a.stride, end, a.dh);
    tile_start();
    for (int j = 0; j < end; j += KEYS) {
        const bool partly = keys_partly(a, p.first, j);
        const int64_t v_at = k_at + j * a.stride + from, next = k_at + (j + KEYS) * a.stride;
        tile_wait();
        pair_load<COLUMNS>(v, KEYS, x.v + v_at, x.tv + v_at, a.stride, a.tk - j, a.dh - from);
        tile_start();
        cells_zero(s), cells_zero(t);
        tile_dots<PARTS, DEPTH>(s, q, first, k, a.lines);
        tile_dots<PARTS, DEPTH>(t, tq, first, k, a.lines);
        tile_dots<PARTS, DEPTH>(t, q, first, tk, a.lines);
        attn_logits<false>(s, a, p, p.first + first, j, partly || j + KEYS > a.tk);
        tangent_step(s[0], t[0], a.scale, w, shrink[0], shift);
        tile_wait();
        if (j + KEYS < end) pair_load<DEPTH>(k, KEYS, x.k + next, x.tk + next, a.stride, end - j - KEYS, a.dh);
        tile_start();
        if (partly) {
            const auto sees = [&](int i, int r) { return attn_sees(a, i, j + r); };
            mix_guard<COLUMNS, KEYS, COLUMNS>(o, v, 0, p.first + first, sees);
            mix_guard<COLUMNS, KEYS, COLUMNS>(u, tv, 0, p.first + first, sees);
        }
        shifted<COLUMNS>(u[0], o[0], shrink[0], shift);
        weights_of(weights, t);
        tile_mix<PARTS, COLUMNS, COLUMNS>(u, weights, v, 0, one);
        weights_of(weights, s);
        tile_mix<PARTS, COLUMNS, COLUMNS>(u, weights, tv, 0, one);
        tile_mix<PARTS, COLUMNS, COLUMNS>(o, weights, v, 0, shrink);
    }
    tangent_finish(w, shrink[0], shift, a, p.first + first);
    shifted<COLUMNS>(u[0], o[0], one[0], shift);
    mix_store<COLUMNS>(to + q_at, a.stride, u, first, a.tq - p.first, from, a.dh, shrink);
}

template <int PARTS, int DEPTH> static void run(real *to, const inputs &x, int64_t n, const attn &a)
{
    const int columns = DEPTH < 128 ? DEPTH : 128;
    const crew c = { DEPTH * sizeof(real) >= 512 ? 8 : 4, 16, 2 * DEPTH, 2 * KEYS * (DEPTH + columns) };
    attn_launch(tangents<PARTS, DEPTH>, c, n, a, a.tq, blocks_for(a.dh, columns), to, x, a);
}

template <int PARTS> static void choose(real *to, const inputs &x, int64_t n, const attn &a)
{
    (a.dh <= 32    ? run<PARTS, 32>
     : a.dh <= 64  ? run<PARTS, 64>
     : a.dh <= 128 ? run<PARTS, 128>
                   : run<PARTS, 256>)(to, x, n, a);
}

void CUDA(attention_jvp)(taut_real *to, const taut_real *tq, const taut_real *tk, const taut_real *tv,
                         const taut_real *q, const taut_real *k, const taut_real *v, const taut_attn *a)
{
    const inputs x = { at(tq), at(tk), at(tv), at(q), at(k), at(v) };
    TILE_PRODUCTS(choose)(at(to), x, a->n, attn_of(a));
}
