/* Rows of an embedding:  e <- e / max(1, RMS(e)/c), c = (1 - 2^-20) cap, so that rounding cannot lift a row above its cap; a
 * shorter row keeps its bits. */
#include "train/constrain/hold.h"

void taut_cap_rows(const taut_kernels *k, taut_real *table, int64_t rows, int64_t cols, double cap)
{
    const double longest = (1 - 0x1p-20) * cap * sqrt((double)cols);
    k->unit_rows(table, table, rows, cols, longest, longest);
}
