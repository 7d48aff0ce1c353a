/* C (m,n) = alpha op(A) op(B) + beta C, row-major, by cuBLASLt (products.cu).
 *
 * Poison    NaN and infinity propagate; with alpha = 0 nothing in A and B does, with beta = 0 nothing in C.
 * Error     |C - exact| <= (k+8) u (|alpha| |op A| |op B| + |beta C|), entry by entry, u = 2^-24 (cuda64: 2^-53); where
 *           products are told to be tf32 or bf16, 2^-9 or 1.01 2^-7 more of |alpha| |op A| |op B|: each factor is rounded,
 *           and tf32 may cut its last bits off. */
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

static const int USUAL = 8; /* weights of one shape, in a network */

/* Products of matrices of at most SMALL rows and columns, one a block, sums in order.  Thread: up to 4 x 4 entries, 16
 * apart. */
static const int SMALL = 64, DEEP = 32;

static __global__ void __launch_bounds__(THREADS)
    small_products(real *c, const real *p, const real *a, const real *b, int m, int n, int k, bool ta, bool tb,
                   real alpha, real beta)
{
    __shared__ real left[SMALL][DEEP + 1], right[DEEP][SMALL + 1];
    const int row = threadIdx.x / 16, col = threadIdx.x % 16;
    const int64_t each = blockIdx.x;
    real sum[4][4] = {};
    c += each * m * n, p += each * m * n, a += each * m * k, b += each * k * n;
    for (int from = 0; from < k; from += DEEP) {
        const int deep = min(DEEP, k - from);
        for (int i = threadIdx.x; i < m * deep; i += THREADS) {
            const int r = ta ? i % m : i / deep, d = ta ? i / m : i % deep;
            left[r][d] = ta ? a[(from + d) * m + r] : a[r * k + from + d];
        }
        for (int i = threadIdx.x; i < deep * n; i += THREADS) {
            const int d = tb ? i % deep : i / n, r = tb ? i / deep : i % n;
            right[d][r] = tb ? b[r * k + from + d] : b[(from + d) * n + r];
        }
        __syncthreads();
        for (int d = 0; d < deep; d++)
#pragma unroll
            for (int i = 0; i < 16; i++) /* where there is no such entry, a sum that nobody reads */
                sum[i / 4][i % 4] += left[row + 16 * (i / 4)][d] * right[d][col + 16 * (i % 4)];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const int r = row + 16 * (i / 4), s = col + 16 * (i % 4);
        if (r < m && s < n) c[r * n + s] = alpha * sum[i / 4][i % 4] + (beta == 0 ? 0 : beta * p[r * n + s]);
    }
}

void CUDA(gemm_each)(taut_real *c, const taut_real *p, const taut_real *a, const taut_real *b, int64_t count, int64_t m,
                     int64_t n, int64_t k, bool ta, bool tb, double alpha, double beta)
{
    const cuda_steps next_c = { 0, m * n }, next_a = { 0, m * k }, next_b = { 0, k * n };
    const cuda_product each = { m, n, k, ta, tb, count, next_c, next_a, next_b, (int)sizeof(real), false, NULL, USUAL };
    if (m <= SMALL && n <= SMALL && k <= SMALL && m > 0 && n > 0 && k > 0 && count > 0 && alpha != 0)
        CUDA_LAUNCH(small_products, (unsigned)count, THREADS, 0, at(c), at(p), at(a), at(b), (int)m, (int)n, (int)k, ta,
                    tb, (real)alpha, (real)beta);
    else
        product(&each, c, p, a, b, alpha, beta);
}

taut_status CUDA(products)(taut_products how)
{
    if (sizeof(real) == 8 && how != TAUT_PRODUCTS_FP32)
        return cuda_host()->fail(TAUT_BAD_CONFIG, "kernels cuda64: products of doubles are neither tf32 nor bf16");
    cuda_products_set(how);
    return TAUT_OK;
}
