/* Groups sorted from the largest to the smallest, and the permutation applied (formulas: ref/sort.c).
 *
 * Pairs are compared directly; larger groups are heaps of (value, index) built in the two outputs, so no
 * memory is needed.  The order is total (NaN first, ties by index), so any way of sorting gives the same.
 * Error     none: y is a permutation of x, and an index below 2^24 is a float.  A group is one thread's. */
#include <math.h>

#include "kernels/cpu/cpu.h"

static bool before(float a, float i, float b, float j)
{
    if (a > b) return true;
    if (a < b) return false;
    if (a == b || (isnan(a) && isnan(b))) return i < j;
    return isnan(a);
}

static void swap(float *a, float *b)
{
    const float t = *a;
    *a = *b;
    *b = t;
}

/* The root of a heap of n, whose last in order is on top, moves down to its place. */
static void sift(float *y, float *order, int64_t root, int64_t n)
{
    for (int64_t child = 2 * root + 1; child < n; child = 2 * root + 1) {
        if (child + 1 < n && before(y[child], order[child], y[child + 1], order[child + 1])) child++;
        if (!before(y[root], order[root], y[child], order[child])) return;
        swap(&y[root], &y[child]);
        swap(&order[root], &order[child]);
        root = child;
    }
}

static void sort_group(float *y, float *order, const float *x, int64_t g)
{
    for (int64_t i = 0; i < g; i++) {
        y[i] = x[i];
        order[i] = (float)i;
    }
    for (int64_t root = g / 2 - 1; root >= 0; root--) sift(y, order, root, g);
    for (int64_t last = g - 1; last > 0; last--) {
        swap(&y[0], &y[last]);
        swap(&order[0], &order[last]);
        sift(y, order, 0, last);
    }
}

static void sort_pair(float *y, float *order, const float *x)
{
    const bool stay = !before(x[1], 1, x[0], 0);
    y[0] = stay ? x[0] : x[1];
    y[1] = stay ? x[1] : x[0];
    order[0] = stay ? 0 : 1;
    order[1] = stay ? 1 : 0;
}

void CPU(sort_groups)(taut_real *y, taut_real *order, const taut_real *x, int64_t groups, int64_t g)
{
#pragma omp parallel for schedule(static) if (groups * g > CPU_CHUNK)
    for (int64_t group = 0; group < groups; group++) {
        const int64_t at = group * g;
        if (g == 2)
            sort_pair((float *)y + at, (float *)order + at, (const float *)x + at);
        else
            sort_group((float *)y + at, (float *)order + at, (const float *)x + at, g);
    }
}

void CPU(permute_groups)(taut_real *y_, const taut_real *t_, const taut_real *order_, int64_t groups, int64_t g,
                         bool back)
{
#pragma omp parallel for schedule(static) if (groups * g > CPU_CHUNK)
    for (int64_t group = 0; group < groups; group++) {
        float *y = (float *)y_ + group * g;
        const float *t = (const float *)t_ + group * g, *order = (const float *)order_ + group * g;
        if (back)
            for (int64_t k = 0; k < g; k++) y[(int64_t)order[k]] = t[k];
        else
            for (int64_t k = 0; k < g; k++) y[k] = t[(int64_t)order[k]];
    }
}
