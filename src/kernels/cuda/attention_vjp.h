/* What the two vjps of attention on tiles of 16 bits share, by halves and by bfloat16. */
#ifndef TAUT_KERNELS_CUDA_ATTENTION_VJP_H
#define TAUT_KERNELS_CUDA_ATTENTION_VJP_H
#include "kernels/cuda/half.h"
#if TAUT_HALVES

/* ROWS numbers that belong to the rows of a tile. */
template <int ROWS> static __device__ inline void fact_load(float *to, const float *from, int there)
{
    const bool some = (int)threadIdx.x < there;
    if (threadIdx.x < ROWS) copy_async<4>(to + threadIdx.x, from + (some ? threadIdx.x : 0), some);
}

/* Logits s become P, and products go.v in ds become dS = P (go.v - D); entry n of the lane's cells m has its own lse and D.
 * `whole`: every query meets every key, and s has products q.k still, of which the logit is a multiple and no more. */
template <int M, int N, class LSE, class D>
static __device__ inline void slopes(cell (&s)[M][N], cell (&ds)[M][N], const attn &a, bool whole, const LSE &lse,
                                     const D &delta)
{
    const auto each = [&](const auto &f) {
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < 4 * N; n++) f(s[m][n / 4].x[n % 4], ds[m][n / 4].x[n % 4], m, n);
    };
    if (whole)
        each([&](float &w, float &out, int m, int n) {
            w = attn_exp2(fmaf(w, a.factor, -lse(m, n)));
            out = w * (out - delta(m, n));
        });
    else
        each([&](float &w, float &out, int m, int n) {
            const bool seen = w != -INFINITY;
            w = seen ? attn_exp2(w - lse(m, n)) : 0;
            out = seen ? w * (out - delta(m, n)) : 0;
        });
}

/* D of the lane's rows, from the first row of the block on; four numbers at a time, since nothing else is under way yet. */
template <int DEPTH, int M>
static __device__ inline void deltas(float (&delta)[M][2], const float *go, const float *o, const attn &a, int first,
                                     int there)
{
#pragma unroll
    for (int r = 0; r < 2 * M; r++) {
        const int row = first + 8 * r + lane_g();
        float sum = 0;
#pragma unroll
        for (int c = 4 * lane_t(); c < DEPTH; c += 16) {
            const int64_t at = row * a.stride + c;
            const float4 x = four(go + at, row < there ? a.dh - c : 0), y = four(o + at, row < there ? a.dh - c : 0);
            sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
        }
        delta[r / 2][r % 2] = row_sum(sum);
    }
}

/* half_store with one factor for all rows. */
template <int DEPTH, int M>
static __device__ inline void store_times(float *y, const attn &a, const cell (&o)[M][DEPTH / 8], int first, int there,
                                          float by, void *low = NULL)
{
    float factor[M][2];
#pragma unroll
    for (int r = 0; r < 2 * M; r++) factor[r / 2][r % 2] = by;
    half_store<DEPTH>(y, a.stride, o, first, there, a.dh, factor, low);
}
#endif
#endif
