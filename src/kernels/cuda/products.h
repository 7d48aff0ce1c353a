/* Products of matrices by cuBLASLt, for all elements: what gemm.cu and far.cu ask for. */
#ifndef TAUT_KERNELS_CUDA_PRODUCTS_H
#define TAUT_KERNELS_CUDA_PRODUCTS_H
#include "kernels/cuda/device.h"

/* `batch` products C (m,n) = alpha op(A) op(B) + beta P, P being C or like it, row-major: the next row of a matrix is
 * `row` elements further on (0: rows are contiguous), the next matrix `next`.  No product depends on `batch`: they are made in
 * the way that is right for `usual` of them (0: for one).  alpha and beta are elements of C: the host's, or the device's where
 * `there`.  bytes: of an element, 4 or 8. */
typedef struct {
    int64_t row, next;
} cuda_steps;

typedef struct {
    int64_t m, n, k;
    bool ta, tb;
    int64_t batch;
    cuda_steps c, a, b;
    int bytes;
    bool there;
    const void *bias; /* n elements, added to every row of C; NULL: none */
    int64_t usual;
} cuda_product;

/* false: `bias` is still to be added. */
bool cuda_multiply(const cuda_product *, void *c, const void *p, const void *a, const void *b, const void *alpha,
                   const void *beta);

taut_products cuda_products(void);
void cuda_products_set(taut_products how);
#endif
