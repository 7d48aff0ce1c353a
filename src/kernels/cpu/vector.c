/* y = a x + b y, where a = 0 means that x is not read and b = 0 that y is not; the same of n vectors with
 * factors of their own; and n dot products sum_i x_i y_i in double.
 *
 * Aliasing  y may be x.  Poison: NaN and infinity propagate from what is read.
 * Error     axpby: |y - exact| <= 3 * 2^-24 (|a x| + |b y|): a and b rounded to float, products, sum.
 *           dot: |dot - exact| <= (len/4096 + 1100) 2^-53 sum |x_i y_i|: a product of floats is exact in
 *           double, a chunk adds at most 1024 terms in sequence, and the 256 chunks are added in order. */
#include <string.h>

#include "kernels/cpu/cpu.h"

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

static double dot(const float *x, const float *y, int64_t len)
{
    enum { CHUNKS = 256 };
    const int64_t even = (len + CHUNKS - 1) / CHUNKS, size = even > CPU_CHUNK ? even : CPU_CHUNK;
    double part[CHUNKS] = { 0 };
#pragma omp parallel for schedule(static) if (len > size)
    for (int64_t chunk = 0; chunk < CHUNKS; chunk++) {
        const int64_t to = cpu_min(len, (chunk + 1) * size);
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = chunk * size; i < to; i++) sum += (double)x[i] * (double)y[i];
        part[chunk] = sum;
    }
    double sum = 0;
    for (int chunk = 0; chunk < CHUNKS; chunk++) sum += part[chunk];
    return sum;
}

void CPU(dot)(taut_sum *s, const taut_real *x, const taut_real *y, int64_t n, int64_t len, int64_t stride)
{
    for (int64_t e = 0; e < n; e++)
        ((double *)s)[e] = dot((const float *)x + e * stride, (const float *)y + e * stride, len);
}
