/* Cross entropy:  loss = sum over rows with target >= 0 of  ln sum_c exp(x_c - max) - (x_target - max).
 * g, when asked for, is weight (softmax(x) - onehot); rows with target < 0 add no loss and get g = 0.
 * A row is correct when its first largest entry is the target.
 *
 * Shared: loss = sum over rows of sum_c q_c (ln sum exp(x - max) - (x_c - max)), a class without a share not looked at;
 * g = weight (sum_c q_c softmax(x) - q); correct when the first largest entries of x and q are the same.
 *
 * Poison: NaN or +inf in a counted row makes the loss NaN, that row of g NaN, and the row not correct.
 * Aliasing: g may be x. */
#include <math.h>

#include "kernels/ref/ref.h"

static int64_t first_largest(const double *x, int64_t classes)
{
    int64_t best = 0;
    for (int64_t c = 1; c < classes; c++)
        if (x[c] > x[best]) best = c;
    return best;
}

static double row_loss(double *g, int64_t *correct, const double *x, int64_t target, int64_t classes, double weight)
{
    const int64_t best = first_largest(x, classes);
    const double max = x[best];
    double sum = exp(x[0] - max);
    for (int64_t c = 1; c < classes; c++) sum += exp(x[c] - max);
    const double loss = log(sum) - (x[target] - max);
    if (best == target && !isnan(loss)) ++*correct;
    if (g)
        for (int64_t c = 0; c < classes; c++) g[c] = weight * (exp(x[c] - max) / sum - (c == target));
    return loss;
}

void taut_ref_cross_entropy(taut_real *g_, taut_sum *sums, const taut_real *x, const taut_index *target_, int64_t rows,
                            int64_t classes, double weight)
{
    const int32_t *target = (const int32_t *)target_;
    double loss = 0;
    int64_t correct = 0;
    for (int64_t r = 0; r < rows; r++) {
        double *g = g_ ? (double *)g_ + r * classes : NULL;
        if (target[r] >= 0)
            loss += row_loss(g, &correct, (const double *)x + r * classes, target[r], classes, weight);
        else if (g)
            for (int64_t c = 0; c < classes; c++) g[c] = 0;
    }
    ((double *)sums)[0] += loss;
    ((double *)sums)[1] += (double)correct;
}

static double shared_loss(double *g, int64_t *correct, const double *x, const double *q, int64_t classes, double weight)
{
    const int64_t best = first_largest(x, classes);
    const double max = x[best];
    double sum = 0, all = 0, loss = 0;
    for (int64_t c = 0; c < classes; c++) sum += exp(x[c] - max), all += q[c];
    for (int64_t c = 0; c < classes; c++) loss += q[c] == 0 ? 0 : q[c] * (log(sum) - (x[c] - max));
    if (best == first_largest(q, classes) && !isnan(loss)) ++*correct;
    if (g)
        for (int64_t c = 0; c < classes; c++) g[c] = weight * (all * exp(x[c] - max) / sum - q[c]);
    return isnan(sum) ? sum : loss;
}

void taut_ref_shared_cross_entropy(taut_real *g, taut_sum *sums, const taut_real *x, const taut_real *q, int64_t rows,
                                   int64_t classes, double weight)
{
    double loss = 0;
    int64_t correct = 0;
    for (int64_t r = 0; r < rows; r++)
        loss += shared_loss(g ? (double *)g + r * classes : NULL, &correct, (const double *)x + r * classes,
                            (const double *)q + r * classes, classes, weight);
    ((double *)sums)[0] += loss;
    ((double *)sums)[1] += (double)correct;
}
