/* How far the right class leads each other one (formula: ref/lead.c), worked in double.
 *
 * Poison    where the difference or a is NaN, so is e.
 * Error     one rounding: u |e| + the smallest number, u = 2^-24 (cuda64: 2^-53). */
#include "kernels/cuda/each.h"
#include "kernels/cuda/lowered.h"

struct leads {
    real *e;
    const real *x, *apart;
    const int32_t *target;
    divisor classes;
    double wanted, least;
    __device__ real read(int64_t i) const
    {
        const int64_t row = classes.quotient(i), first = row * classes.by, t = target[row];
        const double ahead = (double)x[first + t] - (double)x[i];
        const double full = wanted * (double)apart[t * classes.by + classes.remainder(i)];
        const double share = full == 0 ? ahead - ahead + 1 : ahead / full;
        return (real)(share < least ? least : share > 1 ? 1 : share);
    }
    __device__ void write(int64_t i, real v) const { e[i] = v; }
};

void CUDA(lead)(taut_real *e, const taut_real *x, const taut_real *apart, const taut_index *target, int64_t rows,
                int64_t classes, double wanted, double least)
{
    const int64_t len = rows * classes;
    const cuda_says says;
    says.writes(at(e), len);
    each(leads{ at(e), at(x), at(apart), at(target), divisor(len, classes), wanted, least }, len);
}
