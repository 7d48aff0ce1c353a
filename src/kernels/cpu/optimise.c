/* One step of SGD or AdamW, in place (formulas: ref/optimise.c).
 *
 * Poison    NaN and infinity propagate into m, v and w.
 * Error     with u = 2^-24: m: 3 u (|b m| + |(1-b) g|), likewise v, plus 2^-126 where g^2 underflows;
 *           w: 3 u |w| + 10 u |step| beyond what the rounded m and v bring, which for AdamW is the error of
 *           m and half that of v, relative to each. */
#include <math.h>

#include "kernels/cpu/cpu.h"

void CPU(sgd)(taut_real *w_, taut_real *m_, const taut_real *g_, int64_t len, double lr_, double momentum, double decay)
{
    float *w = (float *)w_, *m = (float *)m_;
    const float *g = (const float *)g_;
    const float lr = (float)lr_, b = (float)momentum, keep = (float)(1 - decay);
#pragma omp parallel for schedule(static) if (len > CPU_CHUNK)
    for (int64_t from = 0; from < len; from += CPU_CHUNK) {
        const int64_t to = cpu_min(len, from + CPU_CHUNK);
#pragma omp simd
        for (int64_t i = from; i < to; i++) {
            m[i] = b * m[i] + g[i];
            w[i] = w[i] * keep - lr * m[i];
        }
    }
}

void CPU(adamw)(taut_real *w_, taut_real *m_, taut_real *v_, const taut_real *g_, int64_t len, const taut_adam *s)
{
    float *w = (float *)w_, *m = (float *)m_, *v = (float *)v_;
    const float *g = (const float *)g_;
    const float b1 = (float)s->b1, b1_rest = (float)(1 - s->b1), b2 = (float)s->b2, b2_rest = (float)(1 - s->b2);
    const float keep = (float)(1 - s->decay), eps = (float)s->eps;
    const float rate = (float)(s->lr / s->c1), root = (float)(1 / sqrt(s->c2));
#pragma omp parallel for schedule(static) if (len > CPU_CHUNK)
    for (int64_t from = 0; from < len; from += CPU_CHUNK) {
        const int64_t to = cpu_min(len, from + CPU_CHUNK);
#pragma omp simd
        for (int64_t i = from; i < to; i++) {
            m[i] = b1 * m[i] + b1_rest * g[i];
            v[i] = b2 * v[i] + b2_rest * g[i] * g[i];
            w[i] = w[i] * keep - rate * m[i] / (sqrtf(v[i]) * root + eps);
        }
    }
}
