/* C (m,n) = alpha op(A) op(B) + beta C, row-major, by cuBLASLt (products.cu).
 *
 * Poison    NaN and infinity propagate; with alpha = 0 nothing in A and B does, with beta = 0 nothing in C.
 * Error     |C - exact| <= (k+8) u (|alpha| |op A| |op B| + |beta C|), entry by entry, u = 2^-24 (cuda64: 2^-53); where
 *           products are told to be tf32 or bf16, 2^-10 or 2^-8 more of |alpha| |op A| |op B|: factors rounded. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/products.h"

/* C = beta P, `batch` times. */
struct scaled {
    real *c;
    const real *p;
    double beta;
    divisor len;
    int64_t stride;
    __device__ int64_t place(int64_t i) const { return len.quotient(i) * stride + len.remainder(i); }
    __device__ real read(int64_t i) const { return beta == 0 ? 0 : (real)beta * p[place(i)]; }
    __device__ void write(int64_t i, real v) const { c[place(i)] = v; }
};

static void product(const cuda_product *p, taut_real *c, const taut_real *plus, const taut_real *a, const taut_real *b,
                    double alpha, double beta)
{
    const int64_t len = p->m * p->n;
    const real f = (real)alpha, g = (real)beta;
    if (len <= 0 || p->batch <= 0) return;
    if (alpha == 0 || p->k <= 0)
        each(scaled{ at(c), at(plus), beta, divisor(len * p->batch, len), p->c.next }, len * p->batch);
    else
        cuda_multiply(p, c, plus, a, b, &f, &g);
}

void CUDA(gemm)(taut_real *c, const taut_real *a, const taut_real *b, int64_t m, int64_t n, int64_t k, bool ta, bool tb,
                double alpha, double beta)
{
    const cuda_product p = { m, n, k, ta, tb, 1, {}, {}, {}, (int)sizeof(real), false };
    product(&p, c, c, a, b, alpha, beta);
}

void CUDA(affine)(taut_real *y, const taut_real *x, const taut_real *w, const taut_real *b, int64_t rows, int64_t out,
                  int64_t in, double alpha)
{
    const cuda_product p = { rows, out, in, false, true, 1, {}, {}, {}, (int)sizeof(real), false, b };
    const real f = (real)alpha, none = 0;
    const bool some = rows > 0 && out > 0 && in > 0 && alpha != 0,
               added = some && cuda_multiply(&p, y, y, x, w, &f, &none);
    if (!some) CUDA(gemm)(y, x, w, rows, out, in, false, true, alpha, 0);
    if (b && !added) CUDA(add_rows)(y, y, b, rows, out, 1);
}

static __device__ real factors[2]; /* alpha and beta */

static __global__ void set_factors(double alpha, const double *by, double beta)
{
    factors[0] = (real)(alpha * *by);
    factors[1] = (real)beta;
}

void CUDA(gemm_by)(taut_real *c, const taut_real *a, const taut_real *b, int64_t m, int64_t n, int64_t k, bool ta,
                   bool tb, taut_factor alpha, double beta)
{
    const cuda_product p = { m, n, k, ta, tb, 1, {}, {}, {}, (int)sizeof(real), true };
    void *f = NULL;
    if (!alpha.by || alpha.value == 0 || k <= 0) {
        CUDA(gemm)(c, a, b, m, n, k, ta, tb, alpha.value, beta);
        return;
    }
    if (m <= 0 || n <= 0) return;
    cuda_note(cudaGetSymbolAddress(&f, factors), "gemm_by");
    CUDA_LAUNCH(set_factors, 1, 1, 0, alpha.value, at(alpha.by), beta);
    cuda_multiply(&p, c, c, a, b, f, (const real *)f + 1);
}

void CUDA(gemm_each)(taut_real *c, const taut_real *p, const taut_real *a, const taut_real *b, int64_t count, int64_t m,
                     int64_t n, int64_t k, bool ta, bool tb, double alpha, double beta)
{
    const cuda_steps next_c = { 0, m * n }, next_a = { 0, m * k }, next_b = { 0, k * n };
    const cuda_product each = { m, n, k, ta, tb, count, next_c, next_a, next_b, (int)sizeof(real), false };
    product(&each, c, p, a, b, alpha, beta);
}

taut_status CUDA(products)(taut_products how)
{
    if (sizeof(real) == 8 && how != TAUT_PRODUCTS_FP32)
        return cuda_host()->fail(TAUT_BAD_CONFIG, "kernels cuda64: products of doubles are neither tf32 nor bf16");
    cuda_products_set(how);
    return TAUT_OK;
}
