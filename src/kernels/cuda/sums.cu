/* Arithmetic on sums, which are doubles that stay on the device (taut_sum_op in kernels.h).
 *
 * Aliasing  y may be a or b.  Error: as IEEE double; sum_of is exact; add_sum: 2 u |y|, u = 2^-24 (cuda64: 2^-53). */
#include "kernels/cuda/each.h"
#include "kernels/cuda/lowered.h"

struct op_of {
    double *y;
    taut_sum_op op;
    double c;
    const double *a, *b;
    __device__ double read(int64_t i) const
    {
        const double x = a ? a[i] : 1, z = b ? b[i] : 1;
        switch (op) {
        case TAUT_SUM_ADD:
            return x + c * z;
        case TAUT_SUM_MUL:
            return c * x * z;
        case TAUT_SUM_DIV:
            return c * x / z;
        case TAUT_SUM_ROOT:
            return c * sqrt(x);
        case TAUT_SUM_MIN:
            return x < c ? x : c;
        case TAUT_SUM_UNIT:
            return x > 0 ? c / sqrt(x) : 1;
        }
        return NAN;
    }
    __device__ void write(int64_t i, double v) const { y[i] = v; }
};

void CUDA(sum_op)(taut_sum *y, taut_sum_op op, double c, const taut_sum *a, const taut_sum *b, int64_t n)
{
    const cuda_says says;
    says.writes(at(y), n);
    each(op_of{ at(y), op, c, at(a), at(b) }, n);
}

struct sum_of_real {
    double *y;
    const real *x;
    __device__ double read(int64_t i) const { return (double)x[i]; }
    __device__ void write(int64_t i, double v) const { y[i] = v; }
};

void CUDA(sum_of)(taut_sum *y, const taut_real *x, int64_t n)
{
    const cuda_says says;
    says.writes(at(y), n);
    each(sum_of_real{ at(y), at(x) }, n);
}

struct added {
    real *y;
    double a;
    const double *s;
    __device__ real read(int64_t i) const { return (real)((double)y[i] + a * s[i]); }
    __device__ void write(int64_t i, real v) const { y[i] = v; }
};

void CUDA(add_sum)(taut_real *y, double a, const taut_sum *s, int64_t n)
{
    const cuda_says says;
    says.writes(at(y), n);
    each(added{ at(y), a, at(s) }, n);
}
