#include "train/alike.h"

/* From array 0 to array j, in elements. */
static int64_t away(const taut_kernels *k, taut_real *const at[], int j)
{
    return ((intptr_t)at[j] - (intptr_t)at[0]) / (intptr_t)k->elem;
}

/* Whether every p-th array lies at one distance from the one before it. */
static bool even(const taut_kernels *k, taut_real *const at[], int count, int p)
{
    for (int j = 0; j + p < count; j++)
        if (away(k, at, j + p) - away(k, at, j) != away(k, at, p)) return false;
    return true;
}

void taut_axpby_all(const taut_kernels *k, taut_real *const y[], double a, taut_real *const x[], double b, int count,
                    int64_t len)
{
    const taut_factor by_a = { a, NULL }, by_b = { b, NULL };
    int p = 1;
    while (p < count && !(even(k, y, count, p) && even(k, x, count, p))) p++;
    for (int j = 0; j < p; j++) {
        const int64_t to = p < count ? away(k, y, p) : 0, from = p < count ? away(k, x, p) : 0;
        k->axpby_by(y[j], to, by_a, x[j], from, by_b, (count - j + p - 1) / p, len);
    }
}

void taut_lay_out(const taut_kernels *k, taut_real *at[TAUT_SIDE_BY_SIDE], taut_real *first, int count, int64_t len)
{
    for (int j = 0; j < count; j++) at[j] = taut_at(k, first, j * len);
}
