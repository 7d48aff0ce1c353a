/* Distances as inner products: with q' = [q, 1] and k' = [q, -|q|^2/2], q'_i.k'_j = -|q_i - q_j|^2/2 + |q_i|^2/2, and the
 * last term is the same along a row of a softmax.  q is (rows, d), q' and k' are (rows, d + 1).
 *     lift      q' and k'
 *     lift_jvp  tq' = [tq, 0],  tk' = [tq, -q.tq]
 *     lift_vjp  g = gq' + gk' - q gk'_last  over the first d entries */
#include "kernels/ref/ref.h"

void taut_ref_lift(taut_real *left_, taut_real *right_, const taut_real *q_, int64_t rows, int64_t d)
{
    for (int64_t r = 0; r < rows; r++) {
        double *left = (double *)left_ + r * (d + 1), *right = (double *)right_ + r * (d + 1), sum = 0;
        const double *q = (const double *)q_ + r * d;
        for (int64_t c = 0; c < d; c++) left[c] = right[c] = q[c];
        for (int64_t c = 0; c < d; c++) sum += q[c] * q[c];
        left[d] = 1;
        right[d] = -0.5 * sum;
    }
}

void taut_ref_lift_jvp(taut_real *left_, taut_real *right_, const taut_real *t_, const taut_real *q_, int64_t rows,
                       int64_t d)
{
    for (int64_t r = 0; r < rows; r++) {
        double *left = (double *)left_ + r * (d + 1), *right = (double *)right_ + r * (d + 1), sum = 0;
        const double *q = (const double *)q_ + r * d, *t = (const double *)t_ + r * d;
        for (int64_t c = 0; c < d; c++) left[c] = right[c] = t[c];
        for (int64_t c = 0; c < d; c++) sum += q[c] * t[c];
        left[d] = 0;
        right[d] = -sum;
    }
}

void taut_ref_lift_vjp(taut_real *g_, const taut_real *left_, const taut_real *right_, const taut_real *q_,
                       int64_t rows, int64_t d)
{
    for (int64_t r = 0; r < rows; r++) {
        const double *left = (const double *)left_ + r * (d + 1), *right = (const double *)right_ + r * (d + 1);
        const double *q = (const double *)q_ + r * d;
        for (int64_t c = 0; c < d; c++) ((double *)g_)[r * d + c] = left[c] + right[c] - q[c] * right[d];
    }
}
