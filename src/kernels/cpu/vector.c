/* y = a x + b y, where a = 0 means that x is not read and b = 0 that y is not; the same of n vectors with
 * factors of their own; sums of several vectors; and n dot products sum_i x_i y_i in double.
 *
 * Aliasing  y may be an x.  Poison: NaN and infinity propagate from what is read.
 * Error     axpby: |y - exact| <= 3 * 2^-24 (|a x| + |b y|): a and b rounded to float, products, sum.
 *           blend: |y - exact| <= (count + 1) 2^-24 sum_j |a_j x_j|: the same.
 *           dot: |dot - exact| <= (len/4096 + 1100) 2^-53 sum |x_i y_i|: a product of floats is exact in
 *           double, a chunk adds at most 1024 terms in sequence, and the 256 chunks are added in order. */
#include <string.h>

#include "kernels/cpu/cpu.h"

enum { BLOCK = 1024 }; /* elements of a sum of several vectors that are made at once, in the first cache */

/* y = a x, and x may be y. */
static void scale(float *y, float a, const float *x, int64_t len)
{
#pragma omp simd
    for (int64_t i = 0; i < len; i++) y[i] = a * x[i];
}

static void combine(float *y, float a, const float *x, float b, int64_t len)
{
#pragma omp simd
    for (int64_t i = 0; i < len; i++) y[i] = a * x[i] + b * y[i];
}

void CPU(axpby)(taut_real *y_, double a, const taut_real *x_, double b, int64_t len)
{
    if (a == 0 && b == 1) return;
#pragma omp parallel for schedule(static) if (len > CPU_CHUNK)
    for (int64_t from = 0; from < len; from += CPU_CHUNK) {
        const int64_t part = cpu_min(CPU_CHUNK, len - from);
        float *y = (float *)y_ + from;
        const float *x = (const float *)x_ + from;
        if (a == 0 && b == 0)
            memset(y, 0, (size_t)part * sizeof(float));
        else if (a == 0)
            scale(y, (float)b, y, part);
        else if (b == 0)
            scale(y, (float)a, x, part);
        else
            combine(y, (float)a, x, (float)b, part);
    }
}

void CPU(axpby_by)(taut_real *y, int64_t y_stride, taut_factor a, const taut_real *x, int64_t x_stride, taut_factor b,
                   int64_t n, int64_t len)
{
    for (int64_t e = 0; e < n; e++) CPU(axpby)
    ((taut_real *)((float *)y + e * y_stride), cpu_factor(a, e), (const taut_real *)((const float *)x + e * x_stride),
     cpu_factor(b, e), len);
}

void CPU(axpby_all)(taut_real *const *y, double a, taut_real *const *x, double b, int n, int64_t len)
{
    for (int e = 0; e < n; e++) CPU(axpby)(y[e], a, x[e], b, len);
}

/* Elements from `from` on of vector e.  y may be an x: a block is written when all its terms have been read. */
static void blend(float *y, const taut_term *terms, int count, int64_t e, int64_t from, int64_t len)
{
    float sum[BLOCK] = { 0 };
    for (int j = 0; j < count; j++) {
        const double factor = cpu_factor(terms[j].by, e);
        const float by = (float)factor, *x = (const float *)terms[j].x + e * terms[j].stride + from;
        if (factor == 0) continue;
#pragma omp simd
        for (int64_t i = 0; i < len; i++) sum[i] += by * x[i];
    }
    memcpy(y, sum, (size_t)len * sizeof(float));
}

void CPU(blend)(taut_real *y, int64_t y_stride, const taut_term *terms, int count, int64_t n, int64_t len)
{
    const int64_t blocks = (len + BLOCK - 1) / BLOCK;
#pragma omp parallel for schedule(static) if (n * len > CPU_CHUNK)
    for (int64_t b = 0; b < n * blocks; b++) {
        const int64_t e = b / blocks, from = b % blocks * BLOCK;
        blend((float *)y + e * y_stride + from, terms, count, e, from, cpu_min(BLOCK, len - from));
    }
}

static double dot(const float *x, const float *y, int64_t len)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < len; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

/* Several at a time, so that a vector that all meet is read once, chunk by chunk. */
void CPU(dot)(taut_sum *s, const taut_real *x_, int64_t x_stride, const taut_real *y_, int64_t y_stride, int64_t n,
              int64_t len)
{
    enum { CHUNKS = 256, TOGETHER = 16 };
    const int64_t even = (len + CHUNKS - 1) / CHUNKS, size = even > CPU_CHUNK ? even : CPU_CHUNK;
    const int64_t chunks = (len + size - 1) / size;
    for (int64_t first = 0; first < n; first += TOGETHER) {
        const int64_t some = cpu_min(TOGETHER, n - first);
        const float *x = (const float *)x_ + first * x_stride, *y = (const float *)y_ + first * y_stride;
        double part[TOGETHER][CHUNKS];
#pragma omp parallel for schedule(static) if (chunks > 1)
        for (int64_t chunk = 0; chunk < chunks; chunk++)
            for (int64_t e = 0, from = chunk * size; e < some; e++)
                part[e][chunk] = dot(x + e * x_stride + from, y + e * y_stride + from, cpu_min(size, len - from));
        for (int64_t e = 0; e < some; e++) {
            double sum = 0;
            for (int64_t chunk = 0; chunk < chunks; chunk++) sum += part[e][chunk];
            ((double *)s)[first + e] = sum;
        }
    }
}
