/* What the kernels about groups of keys share.  Tokens of a head lie heads*dh apart in (n, t, heads*dh) arrays, so
 * products of all heads of an example are one batch, and so are those of one head of all examples. */
#ifndef TAUT_KERNELS_CUDA_GROUP_H
#define TAUT_KERNELS_CUDA_GROUP_H
#include "kernels/cuda/products.h"
#include "kernels/cuda/reduce.h"

/* A factor of a product: a matrix for every head of every example, and how far the next row, head and example are. */
struct factor_of {
    const real *x;
    int64_t row, head, example;
};

/* Tokens, (n, tokens, heads*dh). */
static inline factor_of tokens_of(const taut_group *g, const real *x, int64_t tokens)
{
    return { x, g->heads * g->dh, g->dh, tokens * g->heads * g->dh };
}

/* Prototypes, (m, heads*dh): all examples have the same. */
static inline factor_of prototypes_of(const taut_group *g, const real *p) { return { p, g->heads * g->dh, g->dh, 0 }; }

/* Weights, (n, heads, rows, m). */
static inline factor_of weights_of(const taut_group *g, const real *x, int64_t rows)
{
    return { x, g->m, rows * g->m, g->heads * rows * g->m };
}

/* C (m,n) = alpha op(A) op(B) + beta C for every head of every example, by as few batches as can be; where examples share C (its
 * `example` is 0) one example after the other. */
static inline void multiply_each(const taut_group *g, factor_of c, factor_of a, factor_of b, int64_t m, int64_t n,
                                 int64_t k, bool ta, bool tb, double alpha, double beta)
{
    const bool across = g->n > g->heads && c.example != 0;
    const int64_t calls = across ? g->heads : g->n, batch = across ? g->n : g->heads;
    const cuda_product p = { m,
                             n,
                             k,
                             ta,
                             tb,
                             batch,
                             { c.row, across ? c.example : c.head },
                             { a.row, across ? a.example : a.head },
                             { b.row, across ? b.example : b.head },
                             (int)sizeof(real),
                             false };
    const real f = (real)alpha, h = (real)beta;
    for (int64_t i = 0; i < calls && m > 0 && n > 0 && k > 0 && batch > 0; i++) {
        const real *to = c.x + i * (across ? c.head : c.example);
        cuda_multiply(&p, (void *)to, to, a.x + i * (across ? a.head : a.example),
                      b.x + i * (across ? b.head : b.example), &f, &h);
    }
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
