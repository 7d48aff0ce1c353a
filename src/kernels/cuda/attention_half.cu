/* Softmax attention of floats, forward, heads of at most 128 (formulas: ref/attention.c), by products of halves
 * (half.h).
 *
 * 2^e of a row of q or k is given back to the logit.  Of v_j it goes into the weight: with s the logit over ln 2,
 * e_j the exponent of v_j and m_i the largest s_ij + e_j so far,
 *     w_ij = 2^(s_ij + e_j - m_i + 14),   o_i = sum_j w_ij (2^-e_j v_j) / sum_j w_ij 2^-e_j:
 * a weight is at most 2^14, and what its second half drops is below 2^-39 of the largest.  Masking, poison, batch
 * and error are those of attention.cu, for entries below 2^100 in size. */
#include "kernels/cuda/half.h"

#if TAUT_HALVES

/* Starts copying KEYS rows of k or v from j on, in as many parts as there are, and what belongs to them. */
template <int PARTS, int DEPTH>
static __device__ inline void keys_load(__half *tile, float *facts, const packed &x, bool values, int64_t row,
                                        int there)
{
    half_load<DEPTH>(tile, KEYS, x.hi + row * DEPTH, there);
    if (PARTS == 3) half_load<DEPTH>(tile + KEYS * DEPTH, KEYS, x.lo + row * DEPTH, there);
    const float *from[2] = { values ? x.by.e : x.by.up, x.by.down };
    const bool some = (int)threadIdx.x < there;
    if (threadIdx.x < KEYS)
        for (int i = 0; i < (values ? 2 : 1); i++)
            copy_async<4>((real *)facts + i * KEYS + threadIdx.x,
                          (const real *)from[i] + row + (some ? threadIdx.x : 0), some);
}

/* Products become logits over ln 2; then w_ij, with max and sum brought up to date. */
template <int M>
static __device__ inline void half_softmax(cell (&s)[M][CELLS], float (&max)[M][2], float (&sum)[M][2],
                                           float (&shrink)[M][2], const float *e, const float *down)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float top = -INFINITY, add = 0;
#pragma unroll
            for (int n = 0; n < 2 * CELLS; n++) {
                float &x = s[m][n / 2].x[2 * r + n % 2];
                x += e[cell_column(n / 2, n % 2)];
                top = fmaxf(top, x);
            }
            const float now = fmaxf(max[m][r], row_max(top)), base = now == -INFINITY ? 0 : now - TOP;
            shrink[m][r] = attn_exp2(max[m][r] - TOP - base);
            max[m][r] = now;
#pragma unroll
            for (int n = 0; n < 2 * CELLS; n++) {
                float &x = s[m][n / 2].x[2 * r + n % 2];
                x = attn_exp2(x - base);
                add += x * down[cell_column(n / 2, n % 2)];
            }
            sum[m][r] = sum[m][r] * shrink[m][r] + add;
        }
}

/* lse of the lane's rows, and in `shrink` what their sums are to be multiplied with. */
template <int M>
static __device__ inline void half_finish(float *lse, const float (&max)[M][2], const float (&sum)[M][2],
                                          float (&shrink)[M][2], const attn &a, const place &p, int first)
{
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        const int i = first + 8 * m + lane_g();
        const bool blind = !attn_sees(a, i, 0);
        const float total = row_sum(sum[m / 2][m % 2]), top = max[m / 2][m % 2];
        shrink[m / 2][m % 2] = blind ? 0 : 1 / total;
        if (i < a.tq && lane_t() == 0)
            lse[p.of * a.tq + i] = blind ? -INFINITY : (top == -INFINITY ? 0 : top - TOP) * LN2 + logf(total);
    }
}

template <int PARTS, int M, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2, 2)
    forward(float *o_, float *lse, const packed q, const packed k, const packed v, const attn a)
{
    enum { HALVES = PARTS == 3 ? 2 : 1 };
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2 * M, first = threadIdx.x / 32 * 16 * M;
    const place p = place_of(a, a.tq, rows, a.causal);
    const int end = keys_end(a, p.first, rows);
    const int64_t q_row = p.of * a.tq + p.first, k_row = p.of * a.tk;
    __half *queries = (__half *)room, *keys = queries + rows * DEPTH * HALVES, *values = keys + KEYS * DEPTH * HALVES;
    float *up = (float *)(values + KEYS * DEPTH * HALVES), *e = up + KEYS, *down = e + KEYS;
    cell o[M][DEPTH / 8], s[M][CELLS];
    float max[M][2], sum[M][2], shrink[M][2], by[M][2];
    unsigned hi[M][CELLS / 2][4], lo[M][CELLS / 2][4];
    cells_zero(o);
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        const int i = first + 8 * m + lane_g();
        max[m / 2][m % 2] = -INFINITY, sum[m / 2][m % 2] = 0;
        by[m / 2][m % 2] = p.first + i < a.tq ? a.factor * q.by.up[q_row + i] : 0;
    }
    half_load<DEPTH>(queries, rows, q.hi + q_row * DEPTH, a.tq - p.first);
    if (PARTS == 3) half_load<DEPTH>(queries + rows * DEPTH, rows, q.lo + q_row * DEPTH, a.tq - p.first);
    keys_load<PARTS, DEPTH>(keys, up, k, false, k_row, end);
    tile_start();
    for (int j = 0; j < end; j += KEYS) {
        const bool partly = keys_partly(a, p.first, j);
        tile_wait();
        keys_load<PARTS, DEPTH>(values, e, v, true, k_row + j, a.tk - j);
        tile_start();
        cells_zero(s);
        half_dots<PARTS, DEPTH>(s, queries, rows, first, keys);
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < 4 * CELLS; n++)
                s[m][n / 4].x[n % 4] *= by[m][n % 4 / 2] * up[cell_column(n / 4, n % 4)];
        attn_mask<false>(s, a, p, p.first + first, j, partly || j + KEYS > a.tk);
        tile_wait();
        if (j + KEYS < end) keys_load<PARTS, DEPTH>(keys, up, k, false, k_row + j + KEYS, end - j - KEYS);
        tile_start();
        half_softmax(s, max, sum, shrink, e, down);
        half_weights<PARTS>(hi, lo, s);
        if (partly)
            half_guard<PARTS, DEPTH>(o, values, p.first + first, [&](int i, int r) { return attn_sees(a, i, j + r); });
        half_mix<PARTS, DEPTH>(o, hi, lo, values,
                               [&](float so_far, float sum, int m, int r) { return shrink[m][r] * so_far + sum; });
    }
    half_finish(lse, max, sum, shrink, a, p, p.first + first);
    half_store<DEPTH>(o_ + head_at(a, p, a.tq) + p.first * a.stride, a.stride, o, first, a.tq - p.first, a.dh, shrink);
}

template <int PARTS, int M, int DEPTH>
static void run(float *o, float *lse, const float *q, const float *k, const float *v, int64_t n, const attn &a)
{
    const int64_t over = n * a.heads * a.tq, under = n * a.heads * a.tk, each = THREADS / (DEPTH / PACKED);
    char *none = NULL;
    packed_at(none, over, DEPTH), packed_at(none, under, DEPTH), packed_at(none, under, DEPTH);
    if (over == 0) return;
    char *work = (char *)cuda_work((size_t)none);
    if (!work) return;
    const packed pq = packed_at(work, over, DEPTH), pk = packed_at(work, under, DEPTH),
                 pv = packed_at(work, under, DEPTH);
    const bundle all = { { { q, pq, over, a.tq }, { k, pk, under, a.tk }, { v, pv, under, a.tk } } };
    const dim3 blocks((unsigned)blocks_for(over > under ? over : under, each), 3);
    pack<DEPTH><<<blocks, THREADS, 0, cuda_stream()>>>(all, a.heads, a.dh, PARTS == 3);
    cuda_note(cudaGetLastError(), "attention");
    const size_t per_row = DEPTH * (PARTS == 3 ? 4 : 2) / sizeof(float);
    attn_launch(forward<PARTS, M, DEPTH>, { 4, 16 * M, per_row, 2 * KEYS * per_row + 3 * KEYS }, n, a, a.tq, 1, o, lse,
                pq, pk, pv, a);
}

template <int PARTS, int M>
static void by_width(float *o, float *lse, const float *q, const float *k, const float *v, int64_t n, const attn &a)
{
    (a.dh <= 32 ? run<PARTS, M, 32> : a.dh <= 64 ? run<PARTS, M, 64> : run<PARTS, M, 128>)(o, lse, q, k, v, n, a);
}

template <int PARTS>
static void choose(float *o, float *lse, const float *q, const float *k, const float *v, int64_t n, const attn &a)
{
    const bool many = n * a.heads * ((a.tq + 127) / 128) >= attn_processors();
    (many ? by_width<PARTS, 2> : by_width<PARTS, 1>)(o, lse, q, k, v, n, a);
}

void attention_by_halves(real *o, real *lse, const real *q, const real *k, const real *v, int64_t n, const attn &a)
{
    TILE_PRODUCTS(choose)(o, lse, q, k, v, n, a);
}
#endif
