/* exp, 1/x and sqrt in double without branches, tables, divisions or library calls, so that a loop over them becomes
 * vector code and stays quick (kernels/cpu/vmath.h has those in float).  Never with fast-math, which would fold the
 * rounding away.  NaN gives anything.
 *
 * Error     relative, in units of 2^-53 (tests/bound/t_vmath.c)
 *   bound_exp      4 for |x| <= 700; x below -700 counts as -700.  x = n ln 2 + r, |r| <= 0.3466, n times VEXP_HIGH is
 *                  exact, and Taylor's polynomial of degree 13 leaves out less than r^14/14! < 5e-18
 *   bound_inverse  8 for 1e-280 <= x <= 1e280
 *   bound_root     8 for 1e-280 <= x <= 1e280; of 0 it is 0.  Both: a guess from the bits, wrong by 6 %, and four steps of
 *                  Newton, which square what is wrong (times 1 and 3/2) */
#ifndef TAUT_BOUND_VMATH_H
#define TAUT_BOUND_VMATH_H
#include <stdint.h>
#include <string.h>

/* Adding it rounds to an integer n and leaves n + 1023, a double's exponent field, in the lowest bits. */
#define VEXP_ROUND (0x1.8p52 + 1023)
#define VEXP_LOG2E 0x1.71547652b82fep0
#define VEXP_HIGH  0x1.62e42feep-1 /* of ln 2: 31 bits */
#define VEXP_LOW   0x1.a39ef35793c76p-33

static inline double bound_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t bound_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double bound_exp(double x)
{
    const double y = x > -700 ? x : -700, shifted = y * VEXP_LOG2E + VEXP_ROUND, n = shifted - VEXP_ROUND;
    const double r = (y - n * VEXP_HIGH) - n * VEXP_LOW;
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1;
    p = p * r + 1;
    return p * bound_of_bits(bound_bits(shifted) << 52);
}

static inline double bound_inverse(double x)
{
    double y = bound_of_bits(UINT64_C(0x7fde623822fc16e6) - bound_bits(x));
    y = y * (2 - x * y);
    y = y * (2 - x * y);
    y = y * (2 - x * y);
    return y * (2 - x * y);
}

static inline double bound_root(double x)
{
    const double half = x / 2;
    double y = bound_of_bits(UINT64_C(0x5fe6eb50c7b537a9) - (bound_bits(x) >> 1));
    y = y * (1.5 - half * y * y);
    y = y * (1.5 - half * y * y);
    y = y * (1.5 - half * y * y);
    return x * (y * (1.5 - half * y * y));
}
#endif
