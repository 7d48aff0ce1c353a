/* Attention by position alone (formulas: ref/distance.c).
 *
 * p is small and shared by all examples, so its softmax and the softmax's adjoint are done in double and rounded once.
 * Mixing is a product p^h v a head and example, single-threaded OpenBLAS in blocks of ROWS queries that leave out the
 * keys nobody in the block can see.
 * Masking   keys after their query, when causal; their p is 0.  Poison: NaN and infinity propagate.  Aliasing: none.
 * Threads   one thread has one block of one head's outputs and goes through the examples in order: same bits always.
 * Error     with u = 2^-24:  softmax 2 u p + 2^-149;  softmax_vjp u of the result and 2^-40 of the absolute values added;
 *           mix (t+8) (u sum |p||v| + 2^-149);  mix_vjp (n dh + 8) u sum |go||v|. */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/cpu/cpu.h"

enum { ROWS = 64 };

static int64_t keys_of(const taut_distance *a, int64_t i) { return a->causal ? i + 1 : a->t; }

void CPU(distance_softmax)(taut_real *p_, const taut_real *w_, const taut_distance *a)
{
#pragma omp parallel for schedule(static) if (a->heads * a->t > 16)
    for (int64_t row = 0; row < a->heads * a->t; row++) {
        const int64_t h = row / a->t, i = row % a->t, keys = keys_of(a, i);
        const float *w = (const float *)w_ + h * a->span;
        float *p = (float *)p_ + row * a->t;
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < keys; j++) p[j] = w[taut_distance_column(a, i, j)];
        for (int64_t j = 0; j < keys; j++) most = p[j] > most ? p[j] : most;
        for (int64_t j = 0; j < keys; j++) sum += exp(p[j] - most);
        for (int64_t j = 0; j < keys; j++) p[j] = (float)(((const float *)a->gain)[h] * (exp(p[j] - most) / sum));
        memset(p + keys, 0, (size_t)(a->t - keys) * sizeof *p);
    }
}

void CPU(distance_softmax_vjp)(taut_real *gw_, const taut_real *gp_, const taut_real *p_, const taut_distance *a)
{
    double *sums = taut_calloc((size_t)(a->heads * a->span + 1), sizeof *sums);
    TAUT_CHECK(sums, "distance_softmax_vjp: no memory for the sums");
#pragma omp parallel for schedule(static)
    for (int64_t h = 0; h < a->heads; h++) {
        for (int64_t i = 0; i < a->t; i++) {
            const float *p = (const float *)p_ + (h * a->t + i) * a->t,
                        *gp = (const float *)gp_ + (h * a->t + i) * a->t;
            double *sum = sums + h * a->span, mean = 0;
            for (int64_t j = 0; j < keys_of(a, i); j++) mean += (double)p[j] * gp[j];
            mean /= ((const float *)a->gain)[h];
            for (int64_t j = 0; j < keys_of(a, i); j++) sum[taut_distance_column(a, i, j)] += p[j] * (gp[j] - mean);
        }
        float *gw = (float *)gw_ + h * a->span;
        for (int64_t c = 0; c < a->span; c++) gw[c] = (float)(gw[c] + sums[h * a->span + c]);
    }
    free(sums);
}

typedef struct {
    int64_t h, first, count;
} block; /* queries (or keys, backwards) of one head */

static int64_t blocks_of(const taut_distance *a) { return a->heads * ((a->t + ROWS - 1) / ROWS); }

static block block_at(const taut_distance *a, int64_t number)
{
    const int64_t down = (a->t + ROWS - 1) / ROWS, first = number % down * ROWS;
    return (block){ number / down, first, cpu_min(ROWS, a->t - first) };
}

void CPU(distance_mix)(taut_real *o_, const taut_real *p_, const taut_real *v_, const taut_distance *a, bool back)
{
    const int64_t d = a->heads * a->dh, blocks = blocks_of(a);
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < a->n * blocks; task++) {
        const block b = block_at(a, task % blocks);
        const int64_t at = task / blocks * a->t * d + b.h * a->dh, end = b.first + b.count;
        const int64_t from = a->causal && back ? b.first : 0, to = a->causal && !back ? end : a->t;
        const float *p = (const float *)p_ + b.h * a->t * a->t;
        cblas_sgemm(CblasRowMajor, back ? CblasTrans : CblasNoTrans, CblasNoTrans, (int)b.count, (int)a->dh,
                    (int)(to - from), 1, back ? p + from * a->t + b.first : p + b.first * a->t + from, (int)a->t,
                    (const float *)v_ + at + from * d, (int)d, 0, (float *)o_ + at + b.first * d, (int)d);
    }
}

void CPU(distance_mix_vjp)(taut_real *gp_, const taut_real *go_, const taut_real *v_, const taut_distance *a)
{
    const int64_t d = a->heads * a->dh, blocks = blocks_of(a);
#pragma omp parallel for schedule(dynamic)
    for (int64_t task = 0; task < blocks; task++) {
        const block b = block_at(a, task);
        const int64_t keys = a->causal ? b.first + b.count : a->t;
        float *gp = (float *)gp_ + (b.h * a->t + b.first) * a->t;
        memset(gp, 0, (size_t)(b.count * a->t) * sizeof *gp);
        for (int64_t e = 0; e < a->n; e++) {
            const int64_t at = e * a->t * d + b.h * a->dh;
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)b.count, (int)keys, (int)a->dh, 1,
                        (const float *)go_ + at + b.first * d, (int)d, (const float *)v_ + at, (int)d, 1, gp,
                        (int)a->t);
        }
        for (int64_t i = 0; a->causal && i < b.count; i++) {
            const int64_t seen = b.first + i + 1;
            memset(gp + i * a->t + seen, 0, (size_t)(keys - seen) * sizeof *gp);
        }
    }
}
