/* Row normalisation, its symmetric derivative, and centring (formulas: ref/normalise.c).
 *
 * A row is worked in double, so a large mean costs nothing; a row is one warp's, or one block's if it is long.  Where arrays
 * allow it a warp reads its row once, 16 bytes at a time, and keeps it.
 * Poison    one NaN or infinity makes its whole row NaN.
 * Aliasing  normalise: z may be x; normalise_slope: y may be t; centre_rows: y may be x.
 * Error     with u = 2^-24 (cuda64: 2^-53): z, rstd: 2 u |value| plus (d+4) 2^-52 max|x| rstd from the double sums;
 *           what is asked for besides: 2 u (|gain z| + |bias|) for the z beside it;
 *           slope: 2 u |y| + (d+4) 2^-52 rstd (|u| + mean|u| + |z| mean|z u|), u = gain t;
 *           centre: 2 u |y| + (d+4) 2^-52 max|x|. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/lowered.h"
#include "kernels/cuda/reduce.h"

enum { MOST = 8 }; /* groups of a row that a lane keeps */

/* Group number n of the lane begins at this entry of its row. */
__device__ static inline int64_t entry_of(int n) { return (threadIdx.x % WARP + WARP * n) * WIDE; }

/* A warp's row of d entries; 0 behind its end. */
template <int N> __device__ static inline void keep_row(group<WIDE> (&kept)[N], const real *row, int64_t d)
{
#pragma unroll
    for (int n = 0; n < N; n++) {
        kept[n] = {};
        if (entry_of(n) < d) kept[n] = *(const group<WIDE> *)(row + entry_of(n));
    }
}

/* How many groups a lane keeps of a row of d entries; 0: arrays or rows do not lie so. */
static int kept_groups(int64_t d, uintptr_t addresses)
{
    const bool so = d > 0 && d % WIDE == 0 && d <= MOST * WARP * WIDE && addresses % 16 == 0;
    return so ? (int)blocks_for(d, WARP * WIDE) : 0;
}

/* kernel<N> for the least N that holds so many. */
#define KEPT_ROWS(kernel, groups, rows, ...)                               \
    do {                                                                   \
        const int64_t blocks_of = blocks_for(rows, THREADS / WARP);        \
        if ((groups) <= 2)                                                 \
            CUDA_LAUNCH(kernel<2>, blocks_of, THREADS, 0, __VA_ARGS__);    \
        else if ((groups) <= 4)                                            \
            CUDA_LAUNCH(kernel<4>, blocks_of, THREADS, 0, __VA_ARGS__);    \
        else if ((groups) <= 6)                                            \
            CUDA_LAUNCH(kernel<6>, blocks_of, THREADS, 0, __VA_ARGS__);    \
        else                                                               \
            CUDA_LAUNCH(kernel<MOST>, blocks_of, THREADS, 0, __VA_ARGS__); \
    } while (0)

template <int TEAM> __device__ static inline double row_mean(const real *x, int64_t d, int lane)
{
    double sum = 0;
    for (int64_t c = lane; c < d; c += TEAM) sum += (double)x[c];
    return team_sum<TEAM>(sum) / (double)d;
}

struct scaled {
    real *y;
    const real *gain, *bias;
    void *low; /* y, or z where there is no y, as bf16 (lowered.h); or NULL */
};

template <int TEAM>
static __global__ void __launch_bounds__(THREADS) normalise_rows(real *z, real *rstd, const scaled also, const real *x,
                                                                 int64_t rows, int64_t d, bool centre, double eps)
{
    const int64_t row = team_row<TEAM>();
    const int lane = team_lane<TEAM>();
    if (row >= rows) return;
    x += row * d, z += row * d;
    const double mu = centre ? row_mean<TEAM>(x, d, lane) : 0;
    double var = 0;
    for (int64_t c = lane; c < d; c += TEAM) var += ((double)x[c] - mu) * ((double)x[c] - mu);
    const double scale = 1 / sqrt(team_sum<TEAM>(var) / (double)d + eps);
    for (int64_t c = lane; c < d; c += TEAM) {
        const real here = (real)(((double)x[c] - mu) * scale);
        real last[1] = { here };
        z[c] = here;
        if (also.y) also.y[row * d + c] = last[0] = also.gain[c] * here + (also.bias ? also.bias[c] : 0);
        lower_group<1>(also.low, row * d + c, last);
    }
    if (lane == 0) rstd[row] = (real)scale;
}

template <int N>
static __global__ void __launch_bounds__(THREADS) normalise_kept(real *z, real *rstd, const scaled also, const real *x,
                                                                 int64_t rows, int64_t d, bool centre, double eps)
{
    const int64_t row = team_row<WARP>();
    if (row >= rows) return;
    group<WIDE> kept[N];
    keep_row(kept, x + row * d, d);
    double sum = 0, var = 0;
#pragma unroll
    for (int i = 0; i < N * WIDE; i++) sum += (double)kept[i / WIDE].x[i % WIDE];
    const double mu = centre ? warp_sum(sum) / (double)d : 0;
#pragma unroll
    for (int i = 0; i < N * WIDE; i++) {
        const double off = (double)kept[i / WIDE].x[i % WIDE] - mu;
        if (entry_of(i / WIDE) < d) var += off * off;
    }
    const double scale = 1 / sqrt(warp_sum(var) / (double)d + eps);
#pragma unroll
    for (int n = 0; n < N; n++) {
        const int64_t c = entry_of(n), at = row * d + c;
        if (c >= d) continue;
        group<WIDE> here, last;
#pragma unroll
        for (int w = 0; w < WIDE; w++) here.x[w] = (real)(((double)kept[n].x[w] - mu) * scale);
        *(group<WIDE> *)(z + at) = last = here;
        if (also.y) {
            const group<WIDE> gain = *(const group<WIDE> *)(also.gain + c);
            group<WIDE> bias = {};
            if (also.bias) bias = *(const group<WIDE> *)(also.bias + c);
#pragma unroll
            for (int w = 0; w < WIDE; w++) last.x[w] = gain.x[w] * here.x[w] + bias.x[w];
            *(group<WIDE> *)(also.y + at) = last;
        }
        lower_group<WIDE>(also.low, at / WIDE, last.x);
    }
    if (threadIdx.x % WARP == 0) rstd[row] = (real)scale;
}

void CUDA(normalise)(taut_real *z, taut_real *rstd, const taut_scaled *also, const taut_real *x, int64_t rows,
                     int64_t d, bool centre, double eps)
{
    scaled beside = also ? scaled{ at(also->y), at(also->gain), at(also->bias), NULL } : scaled{};
    const cuda_says says;
    says.writes(at(z), rows * d), says.writes(at(rstd), rows);
    beside.low = says.lowers(beside.y ? beside.y : at(z), rows * d);
    const int groups = kept_groups(d, (uintptr_t)z | (uintptr_t)x | (uintptr_t)beside.y | (uintptr_t)beside.gain |
                                          (uintptr_t)beside.bias);
    if (groups > 0)
        KEPT_ROWS(normalise_kept, groups, rows, at(z), at(rstd), beside, at(x), rows, d, centre, eps);
    else
        CUDA_ROWS(normalise_rows, rows, d, at(z), at(rstd), beside, at(x), rows, d, centre, eps);
}

template <int TEAM>
static __global__ void __launch_bounds__(THREADS) slope_rows(real *y, const real *t, const real *gain, const real *z,
                                                             const real *rstd, int64_t rows, int64_t d, bool centre)
{
    const int64_t row = team_row<TEAM>();
    const int lane = team_lane<TEAM>();
    if (row >= rows) return;
    y += row * d, t += row * d, z += row * d;
    double sum = 0, zt = 0;
    for (int64_t c = lane; c < d; c += TEAM) {
        const double u = (gain ? (double)gain[c] : 1) * (double)t[c];
        sum += u, zt += (double)z[c] * u;
    }
    const double mu = centre ? team_sum<TEAM>(sum) / (double)d : 0, scale = (double)rstd[row];
    zt = team_sum<TEAM>(zt) / (double)d;
    for (int64_t c = lane; c < d; c += TEAM)
        y[c] = (real)(scale * ((gain ? (double)gain[c] : 1) * (double)t[c] - mu - (double)z[c] * zt));
}

template <int N>
static __global__ void __launch_bounds__(THREADS) slope_kept(real *y, const real *t, const real *gain, const real *z,
                                                             const real *rstd, int64_t rows, int64_t d, bool centre)
{
    const int64_t row = team_row<WARP>();
    if (row >= rows) return;
    group<WIDE> tangent[N], kept[N];
    keep_row(tangent, t + row * d, d), keep_row(kept, z + row * d, d);
    /* gain t, not rounded */
    const auto lifted = [&](double *u, int n) {
        group<WIDE> by;
        const bool some = gain && entry_of(n) < d;
        if (some) by = *(const group<WIDE> *)(gain + entry_of(n));
#pragma unroll
        for (int w = 0; w < WIDE; w++) u[w] = (some ? (double)by.x[w] : 1) * (double)tangent[n].x[w];
    };
    double sum = 0, zt = 0, u[WIDE];
#pragma unroll
    for (int n = 0; n < N; n++) {
        lifted(u, n);
#pragma unroll
        for (int w = 0; w < WIDE; w++) sum += u[w], zt += (double)kept[n].x[w] * u[w];
    }
    const double mu = centre ? warp_sum(sum) / (double)d : 0, scale = (double)rstd[row];
    zt = warp_sum(zt) / (double)d;
#pragma unroll
    for (int n = 0; n < N; n++) {
        group<WIDE> here;
        lifted(u, n);
#pragma unroll
        for (int w = 0; w < WIDE; w++) here.x[w] = (real)(scale * (u[w] - mu - (double)kept[n].x[w] * zt));
        if (entry_of(n) < d) *(group<WIDE> *)(y + row * d + entry_of(n)) = here;
    }
}

void CUDA(normalise_slope)(taut_real *y, const taut_real *t, const taut_real *gain, const taut_real *z,
                           const taut_real *rstd, int64_t rows, int64_t d, bool centre)
{
    const cuda_says says;
    says.writes(at(y), rows * d);
    const int groups = kept_groups(d, (uintptr_t)y | (uintptr_t)t | (uintptr_t)gain | (uintptr_t)z);
    if (groups > 0)
        KEPT_ROWS(slope_kept, groups, rows, at(y), at(t), at(gain), at(z), at(rstd), rows, d, centre);
    else
        CUDA_ROWS(slope_rows, rows, d, at(y), at(t), at(gain), at(z), at(rstd), rows, d, centre);
}

template <int TEAM>
static __global__ void __launch_bounds__(THREADS) centred_rows(real *y, const real *x, int64_t rows, int64_t d)
{
    const int64_t row = team_row<TEAM>();
    const int lane = team_lane<TEAM>();
    if (row >= rows) return;
    const double mu = row_mean<TEAM>(x + row * d, d, lane);
    for (int64_t c = lane; c < d; c += TEAM) y[row * d + c] = (real)((double)x[row * d + c] - mu);
}

void CUDA(centre_rows)(taut_real *y, const taut_real *x, int64_t rows, int64_t d)
{
    const cuda_says says;
    says.writes(at(y), rows * d);
    CUDA_ROWS(centred_rows, rows, d, at(y), at(x), rows, d);
}
