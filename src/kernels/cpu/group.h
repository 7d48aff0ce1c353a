/* What the kernels about groups of keys share: where a head is, tiles of products, a small softmax. */
#ifndef TAUT_KERNELS_CPU_GROUP_H
#define TAUT_KERNELS_CPU_GROUP_H
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vmath.h"

enum { GROUP_TILE = 128 }; /* keys or queries that meet all m groups at once */

/* Token i of head h in example e of an (n, t, heads*dh) array; tokens are `group_width` apart. */
static inline float *group_at(const taut_real *x, const taut_group *g, int64_t t, int64_t e, int64_t h, int64_t i)
{
    return (float *)x + ((e * t + i) * g->heads + h) * g->dh;
}

static inline int64_t group_width(const taut_group *g) { return g->heads * g->dh; }

static inline void *group_room(int64_t len, size_t elem)
{
    void *p = taut_malloc_aligned((size_t)(len > 0 ? len : 1) * elem);
    TAUT_CHECK(p, "groups: no memory for a tile");
    return p;
}

/* s (rows, m) = alpha x y^T + beta s: tokens x against the m groups y of a head */
static inline void group_scores(float *s, const float *x, const float *y, int64_t rows, double alpha, float beta,
                                const taut_group *g)
{
    const int width = (int)group_width(g), m = (int)g->m;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, m, (int)g->dh, (float)alpha, x, width, y, width,
                beta, s, m);
}

/* y (rows, dh) = alpha s x + beta y: every token gathers from the groups x; y is `stride` wide */
static inline void group_gather(float *y, int64_t stride, const float *s, const float *x, int64_t rows, double alpha,
                                float beta, const taut_group *g)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)g->dh, (int)g->m, (float)alpha, s, (int)g->m,
                x, (int)group_width(g), beta, y, (int)stride);
}

/* y (m, dh) = alpha s^T x + beta y: every group gathers from the tokens x */
static inline void group_collect(float *y, int64_t stride, const float *s, const float *x, int64_t rows, double alpha,
                                 float beta, const taut_group *g)
{
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)g->m, (int)g->dh, (int)rows, (float)alpha, s, (int)g->m,
                x, (int)group_width(g), beta, y, (int)stride);
}

/* Every row of s (rows, m) becomes its softmax. */
static inline void group_softmax(float *s, int64_t rows, int64_t m)
{
    for (int64_t r = 0; r < rows; r++) {
        float *row = s + r * m, sum = 0;
        const float max = vm_max(row, m);
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < m; j++) {
            row[j] = vm_exp(row[j] - max);
            sum += row[j];
        }
        const float scale = 1 / sum;
#pragma omp simd
        for (int64_t j = 0; j < m; j++) row[j] *= scale;
    }
}

/* t = a (t - sum a t) row by row: the derivative of softmax, symmetric */
static inline void group_softmax_slope(float *t, const float *a, int64_t rows, int64_t m)
{
    for (int64_t r = 0; r < rows; r++) {
        float *row = t + r * m, mean = 0;
        const float *p = a + r * m;
#pragma omp simd reduction(+ : mean)
        for (int64_t j = 0; j < m; j++) mean += p[j] * row[j];
#pragma omp simd
        for (int64_t j = 0; j < m; j++) row[j] = p[j] * (row[j] - mean);
    }
}
#endif
