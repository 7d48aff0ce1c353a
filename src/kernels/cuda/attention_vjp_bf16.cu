/* Softmax attention of floats, vjp, heads of at most 128 (formulas: ref/attention.c), where products are told to be bf16
 * (bf16.h).  Queries and keys take turns as in attention_vjp.cu; masking and poison are those of it.
 * Error     with E of attention_bf16.cu: a weight P of gv is off by P (E + 2^-7), dS by P (E + 2^-6) |go|.(|v|+|o|), to a
 *           hundredth. */
#include "kernels/cuda/attention_vjp.h"
#include "kernels/cuda/bf16.h"

#if TAUT_HALVES

struct arrays {
    attn_back of;
    float *delta; /* (n, heads, tq): D_i = go_i.o_i */
    const __half *q, *k, *v, *go;
    void *low_gq, *low_gk, *low_gv; /* as bf16 (lowered.h), or NULL */
};

template <int M, int DEPTH, int PASS>
static __global__ void __launch_bounds__(CREW / 2, 2) query_side_low(const arrays x, const attn a)
{
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2 * M, first = threadIdx.x / 32 * 16 * M;
    const place p = place_of(a, a.tq, rows, a.causal);
    const int end = keys_end(a, p.first, rows), there = a.tq - p.first;
    const int64_t q_at = head_at(a, p, a.tq) + p.first * a.stride, q_row = p.of * a.tq + p.first, k_row = p.of * a.tk;
    __half *q = (__half *)room, *go = q + rows * DEPTH, *tiles = go + rows * DEPTH;
    cell gq[M][DEPTH / 8], s[M][PASS / 8], ds[M][PASS / 8];
    float lse[M][2], delta[M][2];
    const auto load = [&](int j, int turn) {
        __half *to = tiles + turn * 2 * PASS * DEPTH;
        half_load<DEPTH>(to, PASS, x.k + (k_row + j) * DEPTH, end - j);
        half_load<DEPTH>(to + PASS * DEPTH, PASS, x.v + (k_row + j) * DEPTH, end - j);
        tile_start();
    };
    cells_zero(gq);
    half_load<DEPTH>(q, rows, x.q + q_row * DEPTH, there), half_load<DEPTH>(go, rows, x.go + q_row * DEPTH, there);
    load(0, 0);
    deltas<DEPTH>(delta, x.of.go + q_at, x.of.o + q_at, a, first, there);
#pragma unroll
    for (int r = 0; r < 2 * M; r++) {
        const int i = first + 8 * r + lane_g();
        lse[r / 2][r % 2] = i < there && attn_sees(a, p.first + i, 0) ? x.of.lse[q_row + i] * LOG2E : 0;
        if (i < there && lane_t() == 0) x.delta[q_row + i] = delta[r / 2][r % 2];
    }
    for (int j = 0, turn = 0; j < end; j += PASS, turn ^= 1) {
        const bool partly = a.causal && j + PASS - 1 > p.first + a.tk - a.tq, edge = partly || j + PASS > a.tk;
        const bool whole = !edge && !a.alibi;
        __half *k = tiles + turn * 2 * PASS * DEPTH;
        tile_wait();
        if (j + PASS < end) load(j + PASS, turn ^ 1);
        cells_zero(s), cells_zero(ds);
        low_dots<DEPTH>(s, q, first, k);
        low_dots<DEPTH>(ds, go, first, k + PASS * DEPTH);
        if (!whole) attn_logits<false>(s, a, p, p.first + first, j, edge);
        slopes(
            s, ds, a, whole, [&](int m, int n) { return lse[m][n % 4 / 2]; },
            [&](int m, int n) { return delta[m][n % 4 / 2]; });
        if (partly)
            half_guard<1, DEPTH, PASS, LOW_EXPONENT>(gq, k, p.first + first,
                                                     [&](int i, int r) { return attn_sees(a, i, j + r); });
        low_mix<DEPTH>(gq, ds, k);
    }
    tile_wait();
    store_times<DEPTH>(x.of.gq + q_at, a, gq, first, there, a.scale, low_behind(x.low_gq, q_at));
}

template <int M, int DEPTH, int PASS>
static __global__ void __launch_bounds__(CREW / 2, 2) key_side_low(const arrays x, const attn a)
{
    extern __shared__ chunk room[];
    enum { SIZE = 2 * PASS * DEPTH + 4 * PASS }; /* of a stage: two tiles, and a row's lse and D */
    const int rows = blockDim.x / 2 * M, first = threadIdx.x / 32 * 16 * M;
    const place p = place_of(a, a.tk, rows, false);
    const int there = a.tk - p.first;
    const int64_t k_at = head_at(a, p, a.tk) + p.first * a.stride, k_row = p.of * a.tk + p.first, q_row = p.of * a.tq;
    __half *k = (__half *)room, *v = k + rows * DEPTH, *tiles = v + rows * DEPTH;
    cell gk[M][DEPTH / 8], gv[M][DEPTH / 8], s[M][PASS / 8], ds[M][PASS / 8];
    const auto load = [&](int i, int turn) {
        __half *to = tiles + turn * SIZE;
        float *facts = (float *)(to + 2 * PASS * DEPTH);
        half_load<DEPTH>(to, PASS, x.q + (q_row + i) * DEPTH, a.tq - i);
        half_load<DEPTH>(to + PASS * DEPTH, PASS, x.go + (q_row + i) * DEPTH, a.tq - i);
        fact_load<PASS>(facts, x.of.lse + q_row + i, a.tq - i);
        fact_load<PASS>(facts + PASS, x.delta + q_row + i, a.tq - i);
        tile_start();
    };
    cells_zero(gk), cells_zero(gv);
    half_load<DEPTH>(k, rows, x.k + k_row * DEPTH, there), half_load<DEPTH>(v, rows, x.v + k_row * DEPTH, there);
    const int begin = a.causal && p.first > a.tk - a.tq ? (p.first - (a.tk - a.tq)) / PASS * PASS : 0;
    if (begin < a.tq) load(begin, 0);
    for (int i = begin, turn = 0; i < a.tq; i += PASS, turn ^= 1) {
        const bool partly = a.causal && p.first + rows - 1 > i + a.tk - a.tq;
        const bool edge = partly || i + PASS > a.tq || p.first + rows > a.tk, whole = !edge && !a.alibi;
        __half *q = tiles + turn * SIZE, *go = q + PASS * DEPTH;
        const float *lse = (const float *)(go + PASS * DEPTH), *delta = lse + PASS;
        tile_wait();
        if (i + PASS < a.tq) load(i + PASS, turn ^ 1);
        cells_zero(s), cells_zero(ds);
        low_dots<DEPTH>(s, k, first, q);
        low_dots<DEPTH>(ds, v, first, go);
        if (!whole) attn_logits<true>(s, a, p, p.first + first, i, edge);
        slopes(
            s, ds, a, whole, [&](int, int n) { return lse[cell_column(n / 4, n % 4)] * LOG2E; },
            [&](int, int n) { return delta[cell_column(n / 4, n % 4)]; });
        if (partly) {
            const auto sees = [&](int j, int r) { return attn_sees(a, i + r, j); };
            half_guard<1, DEPTH, PASS, LOW_EXPONENT>(gv, go, p.first + first, sees);
            half_guard<1, DEPTH, PASS, LOW_EXPONENT>(gk, q, p.first + first, sees);
        }
        low_mix<DEPTH>(gv, s, go);
        low_mix<DEPTH>(gk, ds, q);
    }
    tile_wait();
    store_times<DEPTH>(x.of.gk + k_at, a, gk, first, there, a.scale, low_behind(x.low_gk, k_at));
    store_times<DEPTH>(x.of.gv + k_at, a, gv, first, there, 1, low_behind(x.low_gv, k_at));
}

template <int M, int DEPTH, int PASS> static void run(const attn_back &of, int64_t n, const attn &a)
{
    const int64_t over = n * a.heads * a.tq, under = n * a.heads * a.tk, each = THREADS / (DEPTH / 8);
    const int64_t most = over > under ? over : under;
    char *none = NULL;
    for (int i = 0; i < 4; i++) low_at(none, i % 2 ? under : over, DEPTH);
    if (most == 0) return;
    char *work = (char *)cuda_work((size_t)none + (size_t)over * sizeof(float));
    if (!work) return;
    __half *low[4];
    for (int i = 0; i < 4; i++) low[i] = low_at(work, i % 2 ? under : over, DEPTH);
    const void *const out[] = { of.gq, of.gk, of.gv };
    void *left[3] = { NULL, NULL, NULL };
    const cuda_says says;
    says.writes(of.gq, over * a.dh), says.writes(of.gk, under * a.dh), says.writes(of.gv, under * a.dh);
    if (over == under) (void)cuda_lowered_places(left, out, 3, over * a.dh);
    const arrays x = { of, (float *)work, low[0], low[1], low[3], low[2], left[0], left[1], left[2] };
    const lowered_all all = { { { of.q, low[0], over, a.tq },
                                { of.k, low[1], under, a.tk },
                                { of.go, low[2], over, a.tq },
                                { of.v, low[3], under, a.tk } } };
    lower<DEPTH><<<dim3((unsigned)blocks_for(most, each), 4), THREADS, 0, cuda_stream()>>>(all, a.heads, a.dh);
    cuda_note(cudaGetLastError(), "attention_vjp");
    const size_t tile = PASS * DEPTH; /* of two arrays: two numbers are a float */
    attn_launch(query_side_low<M, DEPTH, PASS>, { 4, 16 * M, DEPTH, 2 * tile }, n, a, a.tq, 1, x, a);
    attn_launch(key_side_low<M, DEPTH, PASS>, { 4, 16 * M, DEPTH, 2 * (tile + 2 * PASS) }, n, a, a.tk, 1, x, a);
}

void attention_vjp_by_bf16(const attn_back &of, int64_t n, const attn &a)
{
    const bool many = n * a.heads * ((a.tq + 127) / 128) >= attn_processors();
    (a.dh <= 32   ? (many ? run<2, 32, 32> : run<1, 32, 32>)
     : a.dh <= 64 ? (many ? run<2, 64, 32> : run<1, 64, 32>)
                  : run<1, 128, 32>)(of, n, a);
}
#endif
