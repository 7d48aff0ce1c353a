/* kernels/cuda/products.h where no device is: sums in double, of factors rounded as products are told. */
#include <vector>

#include "kernels/cuda/products.h"

static taut_products how;

taut_products cuda_products(void) { return how; }

void cuda_products_set(taut_products asked) { how = asked; }

static double number(const void *x, int64_t i, int bytes)
{
    return bytes == 8 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* To nearest, without the last `bits` bits; ties away from 0. */
static double rounded(double x, unsigned bits)
{
    const unsigned half = 1u << bits >> 1, low = (1u << bits) - 1;
    return isfinite(x) ? (double)__uint_as_float((__float_as_uint((float)x) + half) & ~low) : x;
}

/* op(x), (rows, cols), in double. */
static std::vector<double> factor(const void *x, int64_t rows, int64_t cols, bool turned, int64_t step, int bytes,
                                  unsigned lost)
{
    std::vector<double> y((size_t)(rows * cols));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            const double v = number(x, turned ? j * step + i : i * step + j, bytes);
            y[(size_t)(i * cols + j)] = lost ? rounded(v, lost) : v;
        }
    return y;
}

static void multiply_one(const cuda_product *p, char *c, const char *plus, const char *a, const char *b, double alpha,
                         double beta)
{
    const bool matrices = p->m > 1 && p->n > 1, coarse = p->bytes == 4;
    const unsigned lost = coarse && how == TAUT_PRODUCTS_TF32               ? 13
                          : coarse && matrices && how == TAUT_PRODUCTS_BF16 ? 16
                                                                            : 0;
    const int64_t a_step = p->a.row ? p->a.row : p->ta ? p->m : p->k, c_step = p->c.row ? p->c.row : p->n;
    const int64_t b_step = p->b.row ? p->b.row : p->tb ? p->k : p->n;
    const auto left = factor(a, p->m, p->k, p->ta, a_step, p->bytes, lost);
    const auto right = factor(b, p->k, p->n, p->tb, b_step, p->bytes, lost);
    std::vector<double> sum((size_t)p->n);
    for (int64_t i = 0; i < p->m; i++) {
        sum.assign((size_t)p->n, 0);
        for (int64_t l = 0; alpha != 0 && l < p->k; l++)
            for (int64_t j = 0; j < p->n; j++)
                sum[(size_t)j] += left[(size_t)(i * p->k + l)] * right[(size_t)(l * p->n + j)];
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t at = i * c_step + j;
            const double y = alpha * sum[(size_t)j] + (beta != 0 ? beta * number(plus, at, p->bytes) : 0) +
                             (p->bias ? number(p->bias, j, p->bytes) : 0);
            if (p->bytes == 8)
                ((double *)c)[at] = y;
            else
                ((float *)c)[at] = (float)y;
        }
    }
}

bool cuda_multiply(const cuda_product *p, void *c, const void *plus, const void *a, const void *b, const void *alpha,
                   const void *beta)
{
    for (int64_t e = 0; e < p->batch; e++)
        multiply_one(p, (char *)c + e * p->c.next * p->bytes, (const char *)plus + e * p->c.next * p->bytes,
                     (const char *)a + e * p->a.next * p->bytes, (const char *)b + e * p->b.next * p->bytes,
                     number(alpha, 0, p->bytes), number(beta, 0, p->bytes));
    return p->bias != nullptr;
}
