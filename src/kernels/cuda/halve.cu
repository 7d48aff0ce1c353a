/* The largest of three neighbours, every other token (formulas: ref/halve.c).
 *
 * Error: none, but u = 2^-24 (cuda64: 2^-53) relative in the transpose's sums of two. */
#include "kernels/cuda/each.h"

struct largest {
    real *y, *from;
    const real *x;
    int64_t t, half, d;
    divisor row, example;
    struct found {
        real value, token;
    };
    __device__ found read(int64_t i) const
    {
        const int64_t e = example.quotient(i), j = row.quotient(i) - e * half, c = row.remainder(i);
        const real *at = x + e * t * d + c;
        int64_t best = j > 0 ? 2 * j - 1 : 0;
        for (int64_t s = best + 1; s <= 2 * j + 1 && s < t; s++) {
            const real a = at[s * d], b = at[best * d];
            if (a > b || (isnan(a) && !isnan(b))) best = s;
        }
        return found{ at[best * d], (real)best };
    }
    __device__ void write(int64_t i, found f) const { y[i] = f.value, from[i] = f.token; }
};

void CUDA(halve)(taut_real *y, taut_real *from, const taut_real *x, int64_t n, int64_t t, int64_t d)
{
    const int64_t half = (t + 1) / 2, len = n * half * d;
    each(largest{ at(y), at(from), at(x), t, half, d, divisor(len, d), divisor(len, half * d) }, len);
}

struct picked {
    real *y;
    const real *s, *from;
    int64_t t, d;
    divisor row, example;
    __device__ real read(int64_t i) const
    {
        return s[(example.quotient(i) * t + (int64_t)from[i]) * d + row.remainder(i)];
    }
    __device__ void write(int64_t i, real v) const { y[i] = v; }
};

/* Token i may be the largest of the windows i/2 and, if i is odd, i/2 + 1. */
struct put_back {
    real *y;
    const real *s, *from;
    int64_t t, half, d;
    divisor row, example;
    __device__ real read(int64_t k) const
    {
        const int64_t e = example.quotient(k), i = row.quotient(k) - e * t, c = row.remainder(k);
        real sum = 0;
        for (int64_t j = i / 2; j <= (i + 1) / 2 && j < half; j++) {
            const int64_t small = (e * half + j) * d + c;
            if ((int64_t)from[small] == i) sum += s[small];
        }
        return sum;
    }
    __device__ void write(int64_t k, real v) const { y[k] = v; }
};

void CUDA(halve_slope)(taut_real *y, const taut_real *s, const taut_real *from, int64_t n, int64_t t, int64_t d,
                       bool back)
{
    const int64_t half = (t + 1) / 2, len = n * (back ? t : half) * d;
    if (back)
        each(put_back{ at(y), at(s), at(from), t, half, d, divisor(len, d), divisor(len, t * d) }, len);
    else
        each(picked{ at(y), at(s), at(from), t, d, divisor(len, d), divisor(len, half * d) }, len);
}
