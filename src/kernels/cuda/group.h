/* What the kernels about groups of keys share.  Tokens of a head lie heads*dh apart in (n, t, heads*dh) arrays, so
 * products of all heads of an example are one batch. */
#ifndef TAUT_KERNELS_CUDA_GROUP_H
#define TAUT_KERNELS_CUDA_GROUP_H
#include "kernels/cuda/products.h"
#include "kernels/cuda/reduce.h"

/* A factor of a product: a matrix for every head. */
struct factor_of {
    const real *x;
    cuda_steps steps;
};

/* Tokens of example e in an (n, tokens, heads*dh) array. */
static inline factor_of tokens_of(const taut_group *g, const real *x, int64_t tokens, int64_t e)
{
    return { x + e * tokens * g->heads * g->dh, { g->heads * g->dh, g->dh } };
}

/* Weights of example e: (n, heads, rows, m). */
static inline factor_of weights_of(const taut_group *g, const real *x, int64_t rows, int64_t e)
{
    return { x + e * g->heads * rows * g->m, { g->m, rows * g->m } };
}

/* C (m,n) = alpha op(A) op(B) + beta C for every head. */
static inline void heads_multiply(const taut_group *g, factor_of c, factor_of a, factor_of b, int64_t m, int64_t n,
                                  int64_t k, bool ta, bool tb, double alpha, double beta)
{
    const cuda_product p = { m, n, k, ta, tb, g->heads, c.steps, a.steps, b.steps, (int)sizeof(real), false };
    const real f = (real)alpha, h = (real)beta;
    if (m > 0 && n > 0 && k > 0 && g->heads > 0) cuda_multiply(&p, (void *)c.x, c.x, a.x, b.x, &f, &h);
}

/* The largest of a row of m entries; NaN is not. */
__device__ static inline real warp_largest(const real *x, int64_t m, int lane)
{
    real top = (real)-INFINITY;
    for (int64_t j = lane; j < m; j += WARP) top = x[j] > top ? x[j] : top;
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        const real other = __shfl_xor_sync(0xffffffffu, top, step);
        top = other > top ? other : top;
    }
    return top;
}
#endif
