/* Arithmetic on sums, which are doubles here (taut_sum_op in kernels.h); y may be a or b.  sum_of is exact; add_sum adds in
 * double. */
#include <math.h>

#include "kernels/ref/ref.h"

static double result(taut_sum_op op, double c, double a, double b)
{
    switch (op) {
    case TAUT_SUM_ADD:
        return a + c * b;
    case TAUT_SUM_MUL:
        return c * a * b;
    case TAUT_SUM_DIV:
        return c * a / b;
    case TAUT_SUM_ROOT:
        return c * sqrt(a);
    case TAUT_SUM_MIN:
        return a < c ? a : c;
    case TAUT_SUM_UNIT:
        return a > 0 ? c / sqrt(a) : 1;
    }
    return NAN;
}

void taut_ref_sum_op(taut_sum *y, taut_sum_op op, double c, const taut_sum *a, const taut_sum *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        ((double *)y)[i] = result(op, c, a ? ((const double *)a)[i] : 1, b ? ((const double *)b)[i] : 1);
}

void taut_ref_sum_of(taut_sum *y, const taut_real *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((double *)y)[i] = ((const double *)x)[i];
}

void taut_ref_add_sum(taut_real *y, double c, const taut_sum *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((double *)y)[i] = ((double *)y)[i] + c * ((const double *)s)[i];
}
