/* y_i = x_i keep_i / (1-p), keep_i = [unit(key, i) >= p] (ref/dropout.c): the very elements ref drops.
 *
 * unit >= p is asked in integers: unit is an integer of 53 bits times 2^-53, exactly.
 * Poison    a dropped NaN or infinity is NaN, not 0.  Aliasing: y may be x.
 * Error     2 * 2^-24 |y|: 1/(1-p) and the product are rounded. */
#include <math.h>

#include "base/rng.h"
#include "kernels/cpu/cpu.h"

void CPU(dropout)(taut_real *y_, const taut_real *x_, uint64_t key, double p, int64_t len)
{
    float *y = (float *)y_;
    const float *x = (const float *)x_;
    const uint64_t least = p > 0 ? (uint64_t)ceil(fmin(p, 1) * 0x1p53) : 0;
    const float scale = p < 1 ? (float)(1 / (1 - p)) : 0.0f;
#pragma omp parallel for schedule(static) if (len > CPU_CHUNK)
    for (int64_t from = 0; from < len; from += CPU_CHUNK) {
        const int64_t to = cpu_min(len, from + CPU_CHUNK);
        for (int64_t i = from; i < to; i++)
            y[i] = x[i] * (taut_rng_bits(key, (uint64_t)i) >> 11 >= least ? scale : 0.0f);
    }
}
