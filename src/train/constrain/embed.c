/* Rows of an embedding:  e <- e / max(1, RMS(e)/cap).  A row that is scaled ends 2^-20 below the cap, so that its
 * rounding cannot lift it above; a row that is not above is not touched. */
#include "train/constrain/hold.h"

void taut_cap_rows(const taut_kernels *k, taut_real *table, int64_t rows, int64_t cols, double cap, taut_span work)
{
    double part[256];
    taut_real *unit = taut_take(&work, rows * cols), *inverse = taut_take(&work, rows);
    k->normalise(unit, inverse, table, rows, cols, false, 0); /* inverse: 1/RMS of each row */
    for (int64_t i = 0; i < rows; i += 256) {
        const int64_t count = rows - i < 256 ? rows - i : 256;
        k->get(part, taut_at(k, inverse, i), count);
        for (int64_t r = 0; r < count; r++) {
            taut_real *row = taut_at(k, table, (i + r) * cols);
            if (cap * part[r] < 1) k->axpby(row, cap * part[r] * (1 - 0x1p-20), row, 0, cols);
        }
    }
}
