/* y[r] = table[ids[r]], and its adjoint table[ids[r]] += y[r] in row order.  Every id is in range. */
#include "kernels/ref/ref.h"

void taut_ref_gather(taut_real *y_, const taut_real *table_, const taut_index *ids_, int64_t rows, int64_t d)
{
    const int32_t *ids = (const int32_t *)ids_;
    double *y = (double *)y_;
    const double *table = (const double *)table_;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < d; c++) y[r * d + c] = table[ids[r] * d + c];
}

void taut_ref_scatter(taut_real *table_, int64_t entries, const taut_real *y_, const taut_index *ids_, int64_t rows,
                      int64_t d)
{
    const int32_t *ids = (const int32_t *)ids_;
    double *table = (double *)table_;
    const double *y = (const double *)y_;
    for (int64_t r = 0; r < rows; r++) {
        TAUT_CHECK(0 <= ids[r] && ids[r] < entries, "scatter: an id without a row");
        for (int64_t c = 0; c < d; c++) table[ids[r] * d + c] += y[r * d + c];
    }
}
