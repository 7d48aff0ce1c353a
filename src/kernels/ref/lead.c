/* How far the right class leads each other one, as a share of a wanted distance w a[t][c], t the target of row r:
 *     e[r][c] = min(1, max(least, (x[r][t] - x[r][c]) / (w a[t][c]))),   1 where w a[t][c] = 0
 * Poison: where the difference or a is NaN, so is e. */
#include "kernels/ref/ref.h"

void taut_ref_lead(taut_real *e_, const taut_real *x_, const taut_real *apart, const taut_index *target, int64_t rows,
                   int64_t classes, double wanted, double least)
{
    for (int64_t r = 0; r < rows; r++) {
        const int32_t t = ((const int32_t *)target)[r];
        const double *x = (const double *)x_ + r * classes, *a = (const double *)apart + t * classes;
        double *e = (double *)e_ + r * classes;
        for (int64_t c = 0; c < classes; c++) {
            const double ahead = x[t] - x[c], full = wanted * a[c],
                         share = full == 0 ? ahead - ahead + 1 : ahead / full;
            e[c] = share < least ? least : share > 1 ? 1 : share;
        }
    }
}
