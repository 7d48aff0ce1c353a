/* Groups sorted from the largest to the smallest, and the permutation applied (formulas: ref/sort.c).
 *
 * Every entry counts who comes before it: the order is total (NaN first, ties by index), so that is its place.
 * Error     none: y is a permutation of x, and an index below 2^24 is a float. */
#include "kernels/cuda/each.h"

struct ranked {
    real *y, *order;
    const real *x;
    divisor group;
    struct entry {
        real value;
        int64_t rank;
    };
    __device__ static bool before(real a, int64_t i, real b, int64_t j)
    {
        if (isnan(a) || isnan(b)) return isnan(a) && (!isnan(b) || i < j);
        return a > b || (a == b && i < j);
    }
    __device__ entry read(int64_t i) const
    {
        const int64_t own = group.remainder(i), first = i - own;
        const real value = x[i];
        int64_t rank = 0;
        for (int64_t j = 0; j < group.by; j++) rank += before(x[first + j], j, value, own);
        return entry{ value, rank };
    }
    __device__ void write(int64_t i, entry e) const
    {
        const int64_t own = group.remainder(i), place = i - own + e.rank;
        y[place] = e.value;
        order[place] = (real)own;
    }
};

void CUDA(sort_groups)(taut_real *y, taut_real *order, const taut_real *x, int64_t groups, int64_t g)
{
    each(ranked{ at(y), at(order), at(x), divisor(groups * g, g) }, groups * g);
}

struct permuted {
    real *y;
    const real *t, *order;
    divisor group;
    bool back;
    __device__ int64_t there(int64_t i) const { return i - group.remainder(i) + (int64_t)order[i]; }
    __device__ real read(int64_t i) const { return t[back ? i : there(i)]; }
    __device__ void write(int64_t i, real v) const { y[back ? there(i) : i] = v; }
};

void CUDA(permute_groups)(taut_real *y, const taut_real *t, const taut_real *order, int64_t groups, int64_t g,
                          bool back)
{
    each(permuted{ at(y), at(t), at(order), divisor(groups * g, g), back }, groups * g);
}
