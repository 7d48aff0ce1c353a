/* Softmax attention of floats, vjp, heads of at most 128 (formulas: ref/attention.c), by products of halves (half.h).
 *
 * As attention_vjp.cu: query_side has rows of queries and lets keys pass, key_side has rows of keys and lets queries pass.  A
 * weight that multiplies a row r of a tile, P or dS, takes that row's 2^e along; then all weights of a row are multiplied by the
 * power of two that brings the largest of the tile to [2^13, 2^14), which is given back to their sum.
 * Masking and poison are those of attention_vjp.cu.
 * Error     as there, for entries below 2^100 in size; and every weight is off by 2^-38 of the largest that its row has, as
 *           2^e goes along, and every product with one by 2^-112 where the two together underflow. */
#include "kernels/cuda/attention_vjp.h"

#if TAUT_HALVES

struct arrays {
    attn_back of;
    float *delta; /* (n, heads, tq): D_i = go_i.o_i */
    packed q, k, v, go;
};

/* Two arrays side by side, in as many parts as there are. */
template <int PARTS, int DEPTH> struct both {
    enum { PART = PARTS == 3 ? 2 : 1, STAGES = DEPTH * PART <= 128 ? 2 : 1 };
    static __device__ int one(int rows) { return rows * DEPTH * PART; } /* halves of one of them */

    static __device__ void load(__half *tile, int rows, const packed &x, const packed &y, int64_t row, int there)
    {
        const packed *all[2] = { &x, &y };
#pragma unroll
        for (int i = 0; i < 2; i++) {
            __half *to = tile + i * one(rows);
            half_load<DEPTH>(to, rows, all[i]->hi + row * DEPTH, there);
            if (PARTS == 3) half_load<DEPTH>(to + rows * DEPTH, rows, all[i]->lo + row * DEPTH, there);
        }
    }

    /* The same of a tile that passes by, and behind it every row's 2^e.  Returns where more that belongs to rows may stand. */
    static __device__ float *pass(__half *tile, const packed &x, const packed &y, int64_t row, int there)
    {
        float *up = (float *)(tile + 2 * one(KEYS));
        load(tile, KEYS, x, y, row, there);
        fact_load<KEYS>(up, x.by.up + row, there), fact_load<KEYS>(up + KEYS, y.by.up + row, there);
        return up + 2 * KEYS;
    }
};

/* What belongs to the lane's rows, two of every 16; 0 from `there` on. */
template <int M>
static __device__ inline void own(float (&x)[M][2], const float *from, float factor, int first, int there)
{
#pragma unroll
    for (int r = 0; r < 2 * M; r++) {
        const int row = first + 8 * r + lane_g();
        x[r / 2][r % 2] = row < there ? factor * from[row] : 0;
    }
}

template <int M>
static __device__ inline void scale_cells(cell (&s)[M][CELLS], const float (&by)[M][2], const float *up)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < 4 * CELLS; n++) s[m][n / 4].x[n % 4] *= by[m][n % 4 / 2] * up[cell_column(n / 4, n % 4)];
}

/* o += the weights w times the rows of a tile, which are 2^e times what it holds: up. */
template <int PARTS, int DEPTH, int M>
static __device__ inline void add_weighted(cell (&o)[M][DEPTH / 8], cell (&w)[M][CELLS], const __half *tile,
                                           const float *up)
{
    unsigned hi[M][CELLS / 2][4], lo[M][CELLS / 2][4];
    float back[M][2];
#pragma unroll
    for (int m = 0; m < M; m++) {
        float top[2] = { 0, 0 };
#pragma unroll
        for (int n = 0; n < 4 * CELLS; n++) {
            float &x = w[m][n / 4].x[n % 4];
            x *= up[cell_column(n / 4, n % 4)];
            top[n % 4 / 2] = fmaxf(top[n % 4 / 2], fabsf(x));
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int e = min(max((int)(__float_as_uint(row_max(top[r])) >> 23) - 127 - TOP + 1, LEAST), -LEAST);
            back[m][r] = exp2f((float)e), top[r] = exp2f((float)-e);
        }
#pragma unroll
        for (int n = 0; n < 4 * CELLS; n++) w[m][n / 4].x[n % 4] *= top[n % 4 / 2];
    }
    half_weights<PARTS>(hi, lo, w);
    half_mix<PARTS, DEPTH>(o, hi, lo, tile,
                           [&](float so_far, float sum, int m, int r) { return fmaf(back[m][r], sum, so_far); });
}

template <int PARTS, int M, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2) query_side(const arrays x, const attn a)
{
    typedef both<PARTS, DEPTH> pair;
    enum { STAGES = pair::STAGES };
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2 * M, first = threadIdx.x / 32 * 16 * M;
    const place p = place_of(a, a.tq, rows, a.causal);
    const int end = keys_end(a, p.first, rows), there = a.tq - p.first, size = 2 * pair::one(KEYS) + 4 * KEYS;
    const int64_t q_at = head_at(a, p, a.tq) + p.first * a.stride, q_row = p.of * a.tq + p.first, k_row = p.of * a.tk;
    __half *q = (__half *)room, *go = q + pair::one(rows), *tiles = go + pair::one(rows);
    cell gq[M][DEPTH / 8], s[M][CELLS], ds[M][CELLS];
    float q_up[M][2], go_up[M][2], lse[M][2], delta[M][2];
    const auto load = [&](int j, int turn) {
        pair::pass(tiles + turn * size, x.k, x.v, k_row + j, end - j);
        tile_start();
    };
    cells_zero(gq);
    pair::load(q, rows, x.q, x.go, q_row, there);
    load(0, 0);
    own(q_up, x.q.by.up + q_row, a.factor, first, there), own(go_up, x.go.by.up + q_row, 1, first, there);
    deltas<DEPTH>(delta, x.of.go + q_at, x.of.o + q_at, a, first, there);
#pragma unroll
    for (int r = 0; r < 2 * M; r++) {
        const int i = first + 8 * r + lane_g();
        lse[r / 2][r % 2] = i < there && attn_sees(a, p.first + i, 0) ? x.of.lse[q_row + i] * LOG2E : 0;
        if (i < there && lane_t() == 0) x.delta[q_row + i] = delta[r / 2][r % 2];
    }
    for (int j = 0, turn = 0; j < end; j += KEYS, turn = (turn + 1) % STAGES) {
        const bool partly = keys_partly(a, p.first, j), more = j + KEYS < end;
        __half *k = tiles + turn * size;
        const float *k_up = (const float *)(k + 2 * pair::one(KEYS));
        tile_wait();
        if (STAGES == 2 && more) load(j + KEYS, turn ^ 1);
        cells_zero(s), cells_zero(ds);
        half_dots<PARTS, DEPTH>(s, q, rows, first, k);
        half_dots<PARTS, DEPTH>(ds, go, rows, first, k + pair::one(KEYS));
        scale_cells(s, q_up, k_up), scale_cells(ds, go_up, k_up + KEYS);
        attn_mask<false>(s, a, p, p.first + first, j, partly || j + KEYS > a.tk);
        slopes(
            s, ds, a, false, [&](int m, int n) { return lse[m][n % 4 / 2]; },
            [&](int m, int n) { return delta[m][n % 4 / 2]; });
        if (partly)
            half_guard<PARTS, DEPTH>(gq, k, p.first + first, [&](int i, int r) { return attn_sees(a, i, j + r); });
        add_weighted<PARTS, DEPTH>(gq, ds, k, k_up);
        if (STAGES == 1) __syncthreads();
        if (STAGES == 1 && more) load(j + KEYS, 0);
    }
    tile_start();
    tile_wait();
    store_times<DEPTH>(x.of.gq + q_at, a, gq, first, there, a.scale);
}

template <int PARTS, int M, int DEPTH>
static __global__ void __launch_bounds__(CREW / 2) key_side(const arrays x, const attn a)
{
    typedef both<PARTS, DEPTH> pair;
    enum { STAGES = pair::STAGES };
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2 * M, first = threadIdx.x / 32 * 16 * M;
    const place p = place_of(a, a.tk, rows, false);
    const int there = a.tk - p.first, size = 2 * pair::one(KEYS) + 8 * KEYS;
    const int64_t k_at = head_at(a, p, a.tk) + p.first * a.stride, k_row = p.of * a.tk + p.first, q_row = p.of * a.tq;
    __half *k = (__half *)room, *v = k + pair::one(rows), *tiles = v + pair::one(rows);
    cell gk[M][DEPTH / 8], gv[M][DEPTH / 8], s[M][CELLS], ds[M][CELLS];
    float k_up[M][2], v_up[M][2];
    const auto load = [&](int i, int turn) {
        float *more = pair::pass(tiles + turn * size, x.q, x.go, q_row + i, a.tq - i);
        fact_load<KEYS>(more, x.of.lse + q_row + i, a.tq - i),
            fact_load<KEYS>(more + KEYS, x.delta + q_row + i, a.tq - i);
        tile_start();
    };
    cells_zero(gk), cells_zero(gv);
    pair::load(k, rows, x.k, x.v, k_row, there);
    own(k_up, x.k.by.up + k_row, a.factor, first, there), own(v_up, x.v.by.up + k_row, 1, first, there);
    const int begin = a.causal && p.first > a.tk - a.tq ? (p.first - (a.tk - a.tq)) / KEYS * KEYS : 0;
    if (begin < a.tq) load(begin, 0);
    for (int i = begin, turn = 0; i < a.tq; i += KEYS, turn = (turn + 1) % STAGES) {
        const bool partly = a.causal && p.first + rows - 1 > i + a.tk - a.tq, more = i + KEYS < a.tq;
        __half *q = tiles + turn * size, *go = q + pair::one(KEYS);
        const float *q_up = (const float *)(q + 2 * pair::one(KEYS)), *go_up = q_up + KEYS, *lse = go_up + KEYS,
                    *delta = lse + KEYS;
        tile_wait();
        if (STAGES == 2 && more) load(i + KEYS, turn ^ 1);
        cells_zero(s), cells_zero(ds);
        half_dots<PARTS, DEPTH>(s, k, rows, first, q);
        half_dots<PARTS, DEPTH>(ds, v, rows, first, go);
        scale_cells(s, k_up, q_up), scale_cells(ds, v_up, go_up);
        attn_mask<true>(s, a, p, p.first + first, i, partly || i + KEYS > a.tq);
        slopes(
            s, ds, a, false, [&](int, int n) { return lse[cell_column(n / 4, n % 4)] * LOG2E; },
            [&](int, int n) { return delta[cell_column(n / 4, n % 4)]; });
        if (partly) {
            const auto sees = [&](int j, int r) { return attn_sees(a, i + r, j); };
            half_guard<PARTS, DEPTH>(gv, go, p.first + first, sees);
            half_guard<PARTS, DEPTH>(gk, q, p.first + first, sees);
        }
        add_weighted<PARTS, DEPTH>(gv, s, go, go_up);
        add_weighted<PARTS, DEPTH>(gk, ds, q, q_up);
        if (STAGES == 1) __syncthreads();
        if (STAGES == 1 && more) load(i + KEYS, 0);
    }
    tile_start();
    tile_wait();
    store_times<DEPTH>(x.of.gk + k_at, a, gk, first, there, a.scale);
    store_times<DEPTH>(x.of.gv + k_at, a, gv, first, there, 1);
}

template <int PARTS, int M, int DEPTH> static void run(const attn_back &of, int64_t n, const attn &a)
{
    const int64_t over = n * a.heads * a.tq, under = n * a.heads * a.tk, each = THREADS / (DEPTH / PACKED);
    const int64_t most = over > under ? over : under;
    char *none = NULL;
    for (int i = 0; i < 4; i++) packed_at(none, i % 2 ? under : over, DEPTH);
    if (most == 0) return;
    char *work = (char *)cuda_work((size_t)none + (size_t)over * sizeof(float));
    if (!work) return;
    arrays x = { of };
    packed *const all[4] = { &x.q, &x.k, &x.go, &x.v };
    for (int i = 0; i < 4; i++) *all[i] = packed_at(work, i % 2 ? under : over, DEPTH);
    x.delta = (float *)work;
    const bundle raw = { { { of.q, x.q, over, a.tq },
                           { of.k, x.k, under, a.tk },
                           { of.go, x.go, over, a.tq },
                           { of.v, x.v, under, a.tk } } };
    pack<DEPTH>
        <<<dim3((unsigned)blocks_for(most, each), 4), THREADS, 0, cuda_stream()>>>(raw, a.heads, a.dh, PARTS == 3);
    cuda_note(cudaGetLastError(), "attention_vjp");
    typedef both<PARTS, DEPTH> pair;
    const size_t per_row = DEPTH * pair::PART, tile = KEYS * per_row; /* two halves are a float */
    attn_launch(query_side<PARTS, M, DEPTH>, { 4, 16 * M, per_row, pair::STAGES * (tile + 2 * KEYS) }, n, a, a.tq, 1, x,
                a);
    attn_launch(key_side<PARTS, M, DEPTH>, { 4, 16 * M, per_row, pair::STAGES * (tile + 4 * KEYS) }, n, a, a.tk, 1, x,
                a);
}

/* With 32 rows a warp reads a tile half as often for each product; those of products in three parts, and of wide heads, would
 * not fit its registers. */
template <int PARTS> static void choose(const attn_back &of, int64_t n, const attn &a)
{
    enum { MOST = PARTS == 1 ? 2 : 1 };
    const bool many = n * a.heads * ((a.tq + 127) / 128) >= attn_processors();
    (a.dh <= 32   ? (many ? run<PARTS, MOST, 32> : run<PARTS, 1, 32>)
     : a.dh <= 64 ? (many ? run<PARTS, MOST, 64> : run<PARTS, 1, 64>)
                  : run<PARTS, 1, 128>)(of, n, a);
}

void attention_vjp_by_halves(const attn_back &of, int64_t n, const attn &a) { TILE_PRODUCTS(choose)(of, n, a); }
#endif
