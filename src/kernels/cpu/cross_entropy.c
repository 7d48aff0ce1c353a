/* Cross entropy with its gradient (formulas: ref/cross_entropy.c).
 *
 * Rows are dealt out in 256 fixed chunks whose losses are added in order.  The largest entry is subtracted
 * first, so nothing overflows; sums and the loss are double.
 * Poison    NaN or +inf in a counted row makes the loss NaN, that row of g NaN, and the row not correct.
 * Aliasing  g may be x.
 * Error     with u = 2^-24: the loss of a row is off by (4 + ln classes) u plus 2^-48 (|loss| + |max|), since exp is good to
 *           2 u and its argument to u times itself: all arguments together, each times its p, are at most ln classes;
 *           g: 8 u weight.  Shared: the same times the sum of a row's shares, and the
 *           shares' terms of the loss to 2^-50 of each; one thread, since it is for a handful of classes. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vmath.h"

/* The first entry that reaches the maximum; NaN never does. */
static int64_t first_at(const float *x, float max, int64_t classes)
{
    int64_t c = 0;
    while (c < classes && x[c] != max) c++;
    return c;
}

/* The exponentials are left in g when there is one, so that they are taken once. */
static double exp_sum(float *g, const float *x, float max, int64_t classes)
{
    double sum = 0;
    if (g) {
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < classes; c++) {
            const float e = vm_exp(x[c] - max);
            g[c] = e;
            sum += (double)e;
        }
    } else {
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < classes; c++) sum += (double)vm_exp(x[c] - max);
    }
    return sum;
}

static double row_loss(float *g, int64_t *correct, const float *x, int64_t target, int64_t classes, double weight)
{
    const float max = vm_max(x, classes);
    const double gap = (double)x[target] - (double)max;
    const bool first = first_at(x, max, classes) == target;
    const double sum = exp_sum(g, x, max, classes), loss = log(sum) - gap;
    if (first && !isnan(loss)) ++*correct;
    if (!g) return loss;
    const float scale = (float)(weight / sum);
#pragma omp simd
    for (int64_t c = 0; c < classes; c++) g[c] *= scale;
    g[target] -= (float)weight;
    return loss;
}

void CPU(cross_entropy)(taut_real *g_, taut_sum *sums, const taut_real *x, const taut_index *target_, int64_t rows,
                        int64_t classes, double weight)
{
    const int32_t *target = (const int32_t *)target_;
    enum { CHUNKS = 256 };
    const int64_t size = (rows + CHUNKS - 1) / CHUNKS;
    double part[CHUNKS] = { 0 };
    int64_t right = 0;
#pragma omp parallel for schedule(static) reduction(+ : right) if (rows * classes > CPU_CHUNK / 4)
    for (int64_t chunk = 0; chunk < CHUNKS; chunk++)
        for (int64_t r = chunk * size; r < cpu_min(rows, (chunk + 1) * size); r++) {
            float *g = g_ ? (float *)g_ + r * classes : NULL;
            if (target[r] >= 0)
                part[chunk] += row_loss(g, &right, (const float *)x + r * classes, target[r], classes, weight);
            else if (g)
                for (int64_t c = 0; c < classes; c++) g[c] = 0;
        }
    double loss = 0;
    for (int chunk = 0; chunk < CHUNKS; chunk++) loss += part[chunk];
    ((double *)sums)[0] += loss;
    ((double *)sums)[1] += (double)right;
}

static double shared_loss(float *g, int64_t *correct, const float *x, const float *q, int64_t classes, double weight)
{
    const float max = vm_max(x, classes), top = vm_max(q, classes);
    const bool first = first_at(x, max, classes) == first_at(q, top, classes);
    double all = 0, loss = 0, share = 0;
    for (int64_t c = 0; c < classes; c++) {
        all += (double)q[c];
        if (q[c] != 0) share += (double)q[c] * ((double)x[c] - (double)max);
    }
    const double sum = exp_sum(g, x, max, classes);
    loss = all * log(sum) - share;
    if (first && !isnan(loss)) ++*correct;
    for (int64_t c = 0; g && c < classes; c++) g[c] = (float)(weight * (all * (double)g[c] / sum - (double)q[c]));
    return loss;
}

void CPU(shared_cross_entropy)(taut_real *g, taut_sum *sums, const taut_real *x, const taut_real *q, int64_t rows,
                               int64_t classes, double weight)
{
    double loss = 0;
    int64_t correct = 0;
    for (int64_t r = 0; r < rows; r++)
        loss += shared_loss(g ? (float *)g + r * classes : NULL, &correct, (const float *)x + r * classes,
                            (const float *)q + r * classes, classes, weight);
    ((double *)sums)[0] += loss;
    ((double *)sums)[1] += (double)correct;
}
