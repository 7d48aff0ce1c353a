/* Groups of g entries, each sorted from the largest to the smallest, and the permutation that did it.
 *
 *   sort_groups     y[k] = x[order[k]],  order[k] in 0 .. g-1: where entry k came from
 *   permute_groups  y[k] = t[order[k]], the derivative;  back: y[order[k]] = t[k], its transpose
 * NaN comes before everything, and entries that are equal stay in their order: the permutation is unique, so
 * forward, jvp and vjp agree also on ties.  Nothing is rounded.  Aliasing: none. */
#include <math.h>

#include "kernels/ref/ref.h"

/* Entry i comes before entry j. */
static bool before(const double *x, int64_t i, int64_t j)
{
    const double a = x[i], b = x[j];
    if (isnan(a) || isnan(b)) return isnan(a) && (!isnan(b) || i < j);
    return a > b || (a == b && i < j);
}

void taut_ref_sort_groups(taut_real *y_, taut_real *order_, const taut_real *x_, int64_t groups, int64_t g)
{
    for (int64_t group = 0; group < groups; group++) {
        double *y = (double *)y_ + group * g, *order = (double *)order_ + group * g;
        const double *x = (const double *)x_ + group * g;
        for (int64_t i = 0; i < g; i++) {
            int64_t rank = 0;
            for (int64_t j = 0; j < g; j++) rank += before(x, j, i);
            y[rank] = x[i];
            order[rank] = (double)i;
        }
    }
}

void taut_ref_permute_groups(taut_real *y_, const taut_real *t_, const taut_real *order_, int64_t groups, int64_t g,
                             bool back)
{
    for (int64_t group = 0; group < groups; group++) {
        double *y = (double *)y_ + group * g;
        const double *t = (const double *)t_ + group * g, *order = (const double *)order_ + group * g;
        for (int64_t k = 0; k < g; k++) {
            const int64_t from = (int64_t)order[k];
            y[back ? from : k] = t[back ? k : from];
        }
    }
}
