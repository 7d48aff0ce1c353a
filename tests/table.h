/* Sums and indices of a table for tests, which look at them one by one. */
#ifndef TABLE_H
#define TABLE_H
#include "harness.h"
#include "kernels/kernels.h"

/* n sums that start at `first`. */
static inline taut_sum *table_sums(const taut_kernels *k, int64_t n, double first)
{
    taut_sum *s = k->alloc((size_t)n * sizeof(double) + 1);
    for (int64_t i = 0; i < n; i++) k->put_sum(taut_sum_at(s, i), &first, 1);
    return s;
}

static inline double table_sum(const taut_kernels *k, const taut_sum *s, int64_t i)
{
    double x;
    CHECK(k->read(&x, taut_sum_at(s, i), 1) == TAUT_OK, "a sum can be read");
    return x;
}

static inline taut_index *table_index(const taut_kernels *k, const int32_t *x, int64_t n)
{
    taut_index *y = k->alloc((size_t)n * sizeof *x + 1);
    k->put_index(y, x, n);
    return y;
}

static inline double table_dot(const taut_kernels *k, const taut_real *x, const taut_real *y, int64_t len)
{
    taut_sum *s = table_sums(k, 1, NAN);
    const double dot = taut_dot(k, s, x, y, len);
    k->release(s);
    return dot;
}
#endif
