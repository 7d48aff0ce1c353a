/* Softmax attention of floats, forward, heads of at most 128 (formulas: ref/attention.c), where products are told to be bf16
 * (bf16.h).  Masking, poison and batch are those of attention.cu.
 * Error     with E = 2^-7 scale |q|.|k|, the worst of a logit: |lse - exact| <= E, and |o - exact| <= (2 E + 2^-7) times the sum
 *           of w_j |v_j|, both to a hundredth. */
#include "kernels/cuda/bf16.h"

#if TAUT_HALVES

/* Logits become weights, with max and sum brought up to date and o shrunk. */
template <int M, int N, int D>
static __device__ inline void low_softmax(cell (&s)[M][N], cell (&o)[M][D], float (&max)[M][2], float (&sum)[M][2])
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float top = -INFINITY, add = 0;
#pragma unroll
            for (int n = 0; n < 2 * N; n++) top = fmaxf(top, s[m][n / 2].x[2 * r + n % 2]);
            const float now = fmaxf(max[m][r], row_max(top)), base = now == -INFINITY ? 0 : now;
            const float shrink = attn_exp2(max[m][r] - base);
            max[m][r] = now;
#pragma unroll
            for (int n = 0; n < 2 * N; n++) {
                float &x = s[m][n / 2].x[2 * r + n % 2];
                x = attn_exp2(x - base);
                add += x;
            }
            sum[m][r] = sum[m][r] * shrink + add;
#pragma unroll
            for (int n = 0; n < 2 * D; n++) o[m][n / 2].x[2 * r + n % 2] *= shrink;
        }
}

/* lse of the lane's rows, and in `by` what their sums are to be multiplied with. */
template <int M>
static __device__ inline void low_finish(float *lse, float (&by)[M][2], const float (&max)[M][2],
                                         const float (&sum)[M][2], const attn &a, const place &p, int first)
{
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        const int i = first + 8 * m + lane_g();
        const bool blind = !attn_sees(a, i, 0);
        const float total = row_sum(sum[m / 2][m % 2]), top = max[m / 2][m % 2];
        by[m / 2][m % 2] = blind ? 0 : 1 / total;
        if (i < a.tq && lane_t() == 0)
            lse[p.of * a.tq + i] = blind ? -INFINITY : (top == -INFINITY ? 0 : top) * LN2 + logf(total);
    }
}

template <int M, int DEPTH, int PASS>
static __global__ void __launch_bounds__(CREW / 2, 2)
    forward_low(float *o_, void *low, float *lse, const __half *q, const __half *k, const __half *v, const attn a)
{
    extern __shared__ chunk room[];
    const int rows = blockDim.x / 2 * M, first = threadIdx.x / 32 * 16 * M;
    const place p = place_of(a, a.tq, rows, a.causal);
    const int end = keys_end(a, p.first, rows);
    const int64_t k_row = p.of * a.tk;
    __half *queries = (__half *)room, *tiles = queries + rows * DEPTH;
    cell o[M][DEPTH / 8], s[M][PASS / 8];
    float max[M][2], sum[M][2], by[M][2];
    const auto load = [&](int j, int turn) {
        __half *to = tiles + turn * 2 * PASS * DEPTH;
        half_load<DEPTH>(to, PASS, k + (k_row + j) * DEPTH, end - j);
        half_load<DEPTH>(to + PASS * DEPTH, PASS, v + (k_row + j) * DEPTH, end - j);
        tile_start();
    };
    cells_zero(o);
#pragma unroll
    for (int m = 0; m < 2 * M; m++) max[m / 2][m % 2] = -INFINITY, sum[m / 2][m % 2] = 0;
    half_load<DEPTH>(queries, rows, q + (p.of * a.tq + p.first) * DEPTH, a.tq - p.first);
    load(0, 0);
    for (int j = 0, turn = 0; j < end; j += PASS, turn ^= 1) {
        const bool partly = a.causal && j + PASS - 1 > p.first + a.tk - a.tq;
        __half *keys = tiles + turn * 2 * PASS * DEPTH, *values = keys + PASS * DEPTH;
        tile_wait();
        if (j + PASS < end) load(j + PASS, turn ^ 1);
        cells_zero(s);
        low_dots<DEPTH>(s, queries, first, keys);
        attn_logits<false>(s, a, p, p.first + first, j, partly || j + PASS > a.tk);
        low_softmax(s, o, max, sum);
        if (partly)
            half_guard<1, DEPTH, PASS, LOW_EXPONENT>(o, values, p.first + first,
                                                     [&](int i, int r) { return attn_sees(a, i, j + r); });
        low_mix<DEPTH>(o, s, values);
    }
    tile_wait();
    low_finish(lse, by, max, sum, a, p, p.first + first);
    const int64_t o_at = head_at(a, p, a.tq) + p.first * a.stride;
    half_store<DEPTH>(o_ + o_at, a.stride, o, first, a.tq - p.first, a.dh, by, low_behind(low, o_at));
}

template <int M, int DEPTH, int PASS>
static void run(float *o, float *lse, const float *q, const float *k, const float *v, int64_t n, const attn &a)
{
    const int64_t over = n * a.heads * a.tq, under = n * a.heads * a.tk, each = THREADS / (DEPTH / 8);
    char *none = NULL;
    low_at(none, over, DEPTH), low_at(none, under, DEPTH), low_at(none, under, DEPTH);
    if (over == 0) return;
    char *work = (char *)cuda_work((size_t)none);
    if (!work) return;
    const cuda_says says;
    says.writes(lse, over);
    void *const low = says.lowers(o, over * a.dh);
    __half *lq = low_at(work, over, DEPTH), *lk = low_at(work, under, DEPTH), *lv = low_at(work, under, DEPTH);
    const lowered_all all = { { { q, lq, over, a.tq }, { k, lk, under, a.tk }, { v, lv, under, a.tk } } };
    lower<DEPTH><<<dim3((unsigned)blocks_for(over > under ? over : under, each), 3), THREADS, 0, cuda_stream()>>>(
        all, a.heads, a.dh);
    cuda_note(cudaGetLastError(), "attention");
    const size_t per_row = DEPTH / 2; /* two are a float */
    attn_launch(forward_low<M, DEPTH, PASS>, { 4, 16 * M, per_row, 4 * PASS * per_row }, n, a, a.tq, 1, o, low, lse,
                (const __half *)lq, (const __half *)lk, (const __half *)lv, a);
}

template <int M>
static void by_width(float *o, float *lse, const float *q, const float *k, const float *v, int64_t n, const attn &a)
{
    (a.dh <= 32 ? run<M, 32, 64> : a.dh <= 64 ? run<M, 64, 64> : run<M, 128, 32>)(o, lse, q, k, v, n, a);
}

void attention_by_bf16(real *o, real *lse, const real *q, const real *k, const real *v, int64_t n, const attn &a)
{
    const bool many = n * a.heads * ((a.tq + 127) / 128) >= attn_processors();
    (many ? by_width<2> : by_width<1>)(o, lse, q, k, v, n, a);
}
#endif
