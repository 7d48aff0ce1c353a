/* Row normalisation, its symmetric derivative, and centring (formulas: ref/normalise.c).
 *
 * A row is worked in double, so a large mean costs nothing; a row is one warp's, or one block's if it is long.
 * Poison    one NaN or infinity makes its whole row NaN.
 * Aliasing  normalise: z may be x; normalise_slope: y may be t; centre_rows: y may be x.
 * Error     with u = 2^-24 (cuda64: 2^-53): z, rstd: 2 u |value| plus (d+4) 2^-52 max|x| rstd from the double sums;
 *           what is asked for besides: 2 u (|gain z| + |bias|) for the z beside it;
 *           slope: 2 u |y| + (d+4) 2^-52 rstd (|u| + mean|u| + |z| mean|z u|), u = gain t;
 *           centre: 2 u |y| + (d+4) 2^-52 max|x|. */
#include "kernels/cuda/lowered.h"
#include "kernels/cuda/reduce.h"

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

void CUDA(normalise)(taut_real *z, taut_real *rstd, const taut_scaled *also, const taut_real *x, int64_t rows,
                     int64_t d, bool centre, double eps)
{
    scaled beside = also ? scaled{ at(also->y), at(also->gain), at(also->bias), NULL } : scaled{};
    cuda_lowered_begin();
    cuda_lowered_wrote(z, (size_t)(rows * d) * sizeof(real));
    cuda_lowered_wrote(rstd, (size_t)rows * sizeof(real));
    beside.low = lowered_one(beside.y ? beside.y : at(z), rows * d);
    CUDA_ROWS(normalise_rows, rows, d, at(z), at(rstd), beside, at(x), rows, d, centre, eps);
    cuda_lowered_end();
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

void CUDA(normalise_slope)(taut_real *y, const taut_real *t, const taut_real *gain, const taut_real *z,
                           const taut_real *rstd, int64_t rows, int64_t d, bool centre)
{
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
    CUDA_ROWS(centred_rows, rows, d, at(y), at(x), rows, d);
}
