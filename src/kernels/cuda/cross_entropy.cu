/* Cross entropy with its gradient (formulas: ref/cross_entropy.c).
 *
 * A row is one warp's, or one block's if it is long; rows are added up by one block, in a fixed tree.  The largest
 * entry is subtracted first, so nothing overflows; sums and the loss are double.
 * Poison    NaN or +inf in a counted row makes the loss NaN, that row of g NaN, and the row not correct.
 * Aliasing  g may be x.
 * Error     with u = 2^-24 (cuda64: 2^-53) and s = the spread max x - min x of a row: the loss of a row is off by 4 u
 *           plus 2^-48 (|loss| + |max|), since exp is good to 2 u and its argument to u times itself, which
 *           p |ln p| <= 1/e keeps small; g: 8 u weight.  Shared: the same times the sum of a row's shares, and the
 *           shares' terms of the loss to 2^-50 of each. */
#include "kernels/cuda/reduce.h"

/* An entry and where it is; the larger one, the first of equals, and NaN never. */
struct peak {
    real value;
    int64_t at;
};

__device__ static inline peak higher(peak a, peak b)
{
    return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}

__device__ static inline peak warp_peak(peak p)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        p = higher(p, peak{ __shfl_xor_sync(0xffffffffu, p.value, step), __shfl_xor_sync(0xffffffffu, p.at, step) });
    return p;
}

template <int TEAM> __device__ static inline peak row_peak(const real *x, int64_t classes, int lane)
{
    peak p = { (real)-INFINITY, classes };
    for (int64_t c = lane; c < classes; c += TEAM) p = higher(p, peak{ x[c], c });
    p = warp_peak(p);
    if (TEAM == WARP) return p;
    __shared__ peak part[THREADS / WARP];
    __syncthreads();
    if (lane % WARP == 0) part[lane / WARP] = p;
    __syncthreads();
    p = part[0];
    for (int w = 1; w < THREADS / WARP; w++) p = higher(p, part[w]);
    return p;
}

template <int TEAM> __device__ static inline double exp_sum(const real *x, real max, int64_t classes, int lane)
{
    double sum = 0;
    for (int64_t c = lane; c < classes; c += TEAM) sum += (double)exp(x[c] - max);
    return team_sum<TEAM>(sum);
}

struct loss {
    double *loss, *right; /* of each row */
    real *g;
    const real *x;
    int64_t rows, classes;
    double weight;
};

template <int TEAM> static __global__ void __launch_bounds__(THREADS) row_losses(loss l, const int32_t *target)
{
    const int64_t row = team_row<TEAM>(), first = row * l.classes;
    const int lane = team_lane<TEAM>();
    if (row >= l.rows) return;
    const int32_t want = target[row];
    const real *x = l.x + first;
    double value = 0, right = 0;
    if (want >= 0) {
        const peak top = row_peak<TEAM>(x, l.classes, lane);
        const double gap = (double)x[want] - (double)top.value, sum = exp_sum<TEAM>(x, top.value, l.classes, lane);
        const real scale = (real)(l.weight / sum);
        value = log(sum) - gap;
        right = top.at == want && !isnan(value);
        for (int64_t c = lane; l.g && c < l.classes; c += TEAM)
            l.g[first + c] = exp(x[c] - top.value) * scale - (c == want ? (real)l.weight : (real)0);
    } else
        for (int64_t c = lane; l.g && c < l.classes; c += TEAM) l.g[first + c] = 0;
    if (lane == 0) l.loss[row] = value, l.right[row] = right;
}

template <int TEAM> static __global__ void __launch_bounds__(THREADS) shared_losses(loss l, const real *q)
{
    const int64_t row = team_row<TEAM>(), first = row * l.classes;
    const int lane = team_lane<TEAM>();
    if (row >= l.rows) return;
    const real *x = l.x + first;
    q += first;
    const peak top = row_peak<TEAM>(x, l.classes, lane), most = row_peak<TEAM>(q, l.classes, lane);
    double all = 0, share = 0;
    for (int64_t c = lane; c < l.classes; c += TEAM) {
        all += (double)q[c];
        if (q[c] != 0) share += (double)q[c] * ((double)x[c] - (double)top.value);
    }
    all = team_sum<TEAM>(all), share = team_sum<TEAM>(share);
    const double sum = exp_sum<TEAM>(x, top.value, l.classes, lane), value = all * log(sum) - share;
    for (int64_t c = lane; l.g && c < l.classes; c += TEAM)
        l.g[first + c] = (real)(l.weight * (all * (double)exp(x[c] - top.value) / sum - (double)q[c]));
    if (lane == 0) l.loss[row] = value, l.right[row] = top.at == most.at && !isnan(value);
}

static __global__ void __launch_bounds__(1024)
    add_up(double *sums, const double *loss, const double *right, int64_t rows)
{
    double a = 0, b = 0;
    for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) a += loss[r], b += right[r];
    a = block_sum(a), b = block_sum(b);
    if (threadIdx.x == 0) sums[0] += a, sums[1] += b;
}

static loss loss_of(taut_real *g, const taut_real *x, int64_t rows, int64_t classes, double weight)
{
    double *work = (double *)cuda_work((size_t)(2 * rows) * sizeof *work);
    return loss{ work, work + rows, g ? at(g) : NULL, at(x), work ? rows : 0, classes, weight };
}

void CUDA(cross_entropy)(taut_real *g, taut_sum *sums, const taut_real *x, const taut_index *target, int64_t rows,
                         int64_t classes, double weight)
{
    const loss l = loss_of(g, x, rows, classes, weight);
    if (l.rows <= 0) return;
    CUDA_ROWS(row_losses, rows, classes, l, at(target));
    CUDA_LAUNCH(add_up, 1, 1024, 0, at(sums), l.loss, l.right, rows);
}

void CUDA(shared_cross_entropy)(taut_real *g, taut_sum *sums, const taut_real *x, const taut_real *q, int64_t rows,
                                int64_t classes, double weight)
{
    const loss l = loss_of(g, x, rows, classes, weight);
    if (l.rows <= 0) return;
    CUDA_ROWS(shared_losses, rows, classes, l, at(q));
    CUDA_LAUNCH(add_up, 1, 1024, 0, at(sums), l.loss, l.right, rows);
}
