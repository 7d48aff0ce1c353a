/* What the kernels about groups of keys share: where a token of a head is. */
#ifndef TAUT_KERNELS_REF_GROUP_H
#define TAUT_KERNELS_REF_GROUP_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/ref/ref.h"

/* Token i of head h in example e of an (n, t, heads*dh) array. */
static inline double *group_at(const taut_real *x, const taut_group *g, int64_t t, int64_t e, int64_t h, int64_t i)
{
    return (double *)x + ((e * t + i) * g->heads + h) * g->dh;
}

static inline double group_dot(const double *x, const double *y, int64_t d)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++) sum += x[c] * y[c];
    return sum;
}

static inline void group_add(double *y, double a, const double *x, int64_t d)
{
    for (int64_t c = 0; c < d; c++) y[c] += a * x[c];
}

static inline void group_softmax(double *s, int64_t m)
{
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < m; j++) max = s[j] > max ? s[j] : max;
    for (int64_t j = 0; j < m; j++) sum += s[j] = exp(s[j] - max);
    for (int64_t j = 0; j < m; j++) s[j] /= sum;
}

static inline void group_clear(taut_real *x, int64_t len) { memset((void *)x, 0, (size_t)len * sizeof(double)); }

static inline double *group_room(int64_t len)
{
    double *p = taut_malloc((size_t)(len > 0 ? len : 1) * sizeof *p);
    TAUT_CHECK(p, "groups: no memory for a row");
    return p;
}
#endif
