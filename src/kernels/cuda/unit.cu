/* Rows scaled to the sphere, and the symmetric derivative (formulas: ref/unit.c).
 *
 * A row is worked in double; a row is one warp's, or one block's if it is long.
 * Poison    NaN in a row makes it NaN.  Aliasing: unit_rows: y may be x.
 * Error     with u = 2^-24 (cuda64: 2^-53): 2 u |y| for the rows; slope: 2 u |y| + (d + 8) 2^-50 factor |t| / max(|x|,
 *           floor). */
#include "kernels/cuda/reduce.h"

template <int TEAM>
static __global__ void __launch_bounds__(THREADS)
    on_sphere(real *y, const real *x, int64_t rows, int64_t d, double floor, double factor)
{
    const int64_t row = team_row<TEAM>();
    const int lane = team_lane<TEAM>();
    if (row >= rows) return;
    x += row * d, y += row * d;
    double sum = 0;
    for (int64_t c = lane; c < d; c += TEAM) sum += (double)x[c] * (double)x[c];
    const double size = sqrt(team_sum<TEAM>(sum)), scale = factor / (size <= floor ? floor : size);
    for (int64_t c = lane; c < d; c += TEAM) y[c] = (real)((double)x[c] * scale);
}

void CUDA(unit_rows)(taut_real *y, const taut_real *x, int64_t rows, int64_t d, double floor, double factor)
{
    CUDA_ROWS(on_sphere, rows, d, at(y), at(x), rows, d, floor, factor);
}

template <int TEAM>
static __global__ void __launch_bounds__(THREADS)
    sphere_slope(real *y, const real *t, const real *x, int64_t rows, int64_t d, double floor, double factor)
{
    const int64_t row = team_row<TEAM>();
    const int lane = team_lane<TEAM>();
    if (row >= rows) return;
    x += row * d, t += row * d, y += row * d;
    double sum = 0, along = 0;
    for (int64_t c = lane; c < d; c += TEAM) sum += (double)x[c] * (double)x[c], along += (double)x[c] * (double)t[c];
    const double size = sqrt(team_sum<TEAM>(sum)), over = size <= floor ? 0 : 1 / size;
    const double scale = factor / (size <= floor ? floor : size);
    along = team_sum<TEAM>(along) * over;
    for (int64_t c = lane; c < d; c += TEAM) y[c] = (real)(scale * ((double)t[c] - (double)x[c] * over * along));
}

void CUDA(unit_rows_slope)(taut_real *y, const taut_real *t, const taut_real *x, int64_t rows, int64_t d, double floor,
                           double factor)
{
    CUDA_ROWS(sphere_slope, rows, d, at(y), at(t), at(x), rows, d, floor, factor);
}
