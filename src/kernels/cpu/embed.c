/* y[r] = table[ids[r]], and its adjoint table[ids[r]] += y[r] in row order.  Every id is in range.
 *
 * scatter is cut by columns: a thread owns its columns of the whole table and walks the rows in order.
 * Error     gather: none; scatter: (c+1) 2^-24 (|table| + sum |y|) where an entry is met c times. */
#include <string.h>

#include "kernels/cpu/cpu.h"

enum { COLS = 32 };

void CPU(gather)(taut_real *y, const taut_real *table, const taut_index *ids_, int64_t rows, int64_t d)
{
    const int32_t *ids = (const int32_t *)ids_;
#pragma omp parallel for schedule(static) if (rows * d > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++)
        memcpy((float *)y + r * d, (const float *)table + ids[r] * d, (size_t)d * sizeof(float));
}

void CPU(scatter)(taut_real *table_, int64_t entries, const taut_real *y_, const taut_index *ids_, int64_t rows,
                  int64_t d)
{
    (void)entries;
    const int32_t *ids = (const int32_t *)ids_;
#pragma omp parallel for schedule(static) if (rows * d > CPU_CHUNK)
    for (int64_t from = 0; from < d; from += COLS) {
        const int64_t width = cpu_min(COLS, d - from);
        for (int64_t r = 0; r < rows; r++) {
            float *table = (float *)table_ + ids[r] * d + from;
            const float *y = (const float *)y_ + r * d + from;
#pragma omp simd
            for (int64_t c = 0; c < width; c++) table[c] += y[c];
        }
    }
}
