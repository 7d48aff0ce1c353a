/* One row of attention scores: what attention.c and jasmin.c share. */
#ifndef TAUT_KERNELS_REF_ATTENTION_H
#define TAUT_KERNELS_REF_ATTENTION_H
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/ref/ref.h"

/* Query i sees the keys 0 .. visible-1: causality cuts off the end. */
static inline int64_t visible(const taut_attn *a, int64_t i)
{
    int64_t end = a->tk;
    if (a->causal && i + a->tk - a->tq + 1 < end) end = i + a->tk - a->tq + 1;
    return end > 0 ? end : 0;
}

static inline double inner(const double *x, const double *y, int64_t d)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++) sum += x[c] * y[c];
    return sum;
}

/* Row i of head h in example e of a (n, t, heads*dh) array. */
static inline double *at(const taut_real *x, const taut_attn *a, int64_t t, int64_t e, int64_t h, int64_t i)
{
    return (double *)x + ((e * t + i) * a->heads + h) * a->dh;
}

static inline void logits(double *s, const taut_real *q, const taut_real *k, const taut_attn *a, int64_t e, int64_t h,
                          int64_t i, int64_t keys)
{
    const double slope = a->alibi ? exp2(-8.0 * (double)(h + 1) / (double)a->heads) : 0;
    for (int64_t j = 0; j < keys; j++) {
        const double dot = inner(at(q, a, a->tq, e, h, i), at(k, a, a->tk, e, h, j), a->dh);
        s[j] = a->scale * dot - slope * fabs((double)(i + a->tk - a->tq - j));
    }
}

/* Softmax in place; answers ln sum exp. */
static inline double softmax(double *s, int64_t keys)
{
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < keys; j++)
        if (s[j] > max) max = s[j];
    if (max == -INFINITY) max = 0;
    for (int64_t j = 0; j < keys; j++) sum += s[j] = exp(s[j] - max);
    for (int64_t j = 0; j < keys; j++) s[j] /= sum;
    return max + log(sum);
}

static inline double *rows_new(int64_t len)
{
    double *rows = taut_malloc((size_t)(len > 0 ? len : 1) * sizeof(double));
    TAUT_CHECK(rows, "attention: no memory for a row");
    return rows;
}
#endif
