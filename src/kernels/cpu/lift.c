/* Distances as inner products (ref/lift.c).  A row is one thread's.
 *
 * Error, u = 2^-24: copies are exact; the last entries are sums of d products, off by (d + 1) u sum |q_c t_c|, of
 * lift promise_lift (kernels/promise.h); g is off by 2 u (|gq'| + |gk'| + |q gk'_last|). */
#include "kernels/cpu/cpu.h"

void CPU(lift)(taut_real *left_, taut_real *right_, const taut_real *q_, int64_t rows, int64_t d)
{
#pragma omp parallel for schedule(static) if (rows * d > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        float *left = (float *)left_ + r * (d + 1), *right = (float *)right_ + r * (d + 1), sum = 0;
        const float *q = (const float *)q_ + r * d;
        for (int64_t c = 0; c < d; c++) left[c] = right[c] = q[c];
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < d; c++) sum += q[c] * q[c];
        left[d] = 1;
        right[d] = -0.5f * sum;
    }
}

void CPU(lift_jvp)(taut_real *left_, taut_real *right_, const taut_real *t_, const taut_real *q_, int64_t rows,
                   int64_t d)
{
#pragma omp parallel for schedule(static) if (rows * d > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        float *left = (float *)left_ + r * (d + 1), *right = (float *)right_ + r * (d + 1), sum = 0;
        const float *q = (const float *)q_ + r * d, *t = (const float *)t_ + r * d;
        for (int64_t c = 0; c < d; c++) left[c] = right[c] = t[c];
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < d; c++) sum += q[c] * t[c];
        left[d] = 0;
        right[d] = -sum;
    }
}

void CPU(lift_vjp)(taut_real *g_, const taut_real *left_, const taut_real *right_, const taut_real *q_, int64_t rows,
                   int64_t d)
{
#pragma omp parallel for schedule(static) if (rows * d > CPU_CHUNK)
    for (int64_t r = 0; r < rows; r++) {
        const float *left = (const float *)left_ + r * (d + 1), *right = (const float *)right_ + r * (d + 1);
        const float *q = (const float *)q_ + r * d;
        for (int64_t c = 0; c < d; c++) ((float *)g_)[r * d + c] = left[c] + right[c] - q[c] * right[d];
    }
}
