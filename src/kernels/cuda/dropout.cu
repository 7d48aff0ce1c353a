/* y_i = x_i keep_i / (1-p), keep_i = [unit(key, i) >= p] (ref/dropout.c): the very elements ref drops.
 *
 * unit >= p is asked in integers: unit is an integer of 53 bits times 2^-53, exactly.
 * Poison    a dropped NaN or infinity is NaN, not 0.  Aliasing: y may be x.
 * Error     2 u |y|, u = 2^-24 (cuda64: 2^-53): 1/(1-p) and the product are rounded. */
#include "base/rng.h"
#include "kernels/cuda/each.h"

struct coins {
    real *y;
    const real *x;
    uint64_t key, least;
    real scale;
    __device__ real read(int64_t i) const
    {
        return x[i] * (taut_rng_bits(key, (uint64_t)i) >> 11 >= least ? scale : (real)0);
    }
    __device__ void write(int64_t i, real v) const { y[i] = v; }
};

void CUDA(dropout)(taut_real *y, const taut_real *x, uint64_t key, double p, int64_t len)
{
    const uint64_t least = p > 0 ? (uint64_t)ceil(fmin(p, 1) * 0x1p53) : 0;
    each(coins{ at(y), at(x), key, least, p < 1 ? (real)(1 / (1 - p)) : (real)0 }, len);
}
