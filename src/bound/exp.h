/* e^x for -708 <= x <= 709 within 2 units in the last place, without branches, tables or library calls, so that a loop over it
 * becomes vector code.  NaN gives NaN.
 *
 * x = n ln 2 + r with |r| < 0.347, and e^x = 2^n (1 + (r + r^2 P(r))), P the Taylor series of (e^r - 1 - r)/r^2 up to r^11: what
 * it lacks is at most 1.03 |r|^14/14! < 0.04 u, u = 2^-53.
 * Error     n has 11 bits and ln2_high 42: their product is exact, and so is x minus it: for n = 0 it is x itself, else a
 *           multiple of 2^-54 below 1/2.  Then r is off by u/4 and 2^-80 (n ln2_low); r^2 P, below 0.07, by 4 u relatively, so
 *           0.28 u; r + r^2 P, below 1/2, by u/4; the last sum by u/2 below 1, where a unit is u, and by u above, where it is
 *           2 u.  Together that is below 1.4 units.  2^n is multiplied with exactly.  A product and a sum that are rounded
 *           together are off by less. */
#ifndef TAUT_BOUND_EXP_H
#define TAUT_BOUND_EXP_H
#include <math.h>
#include <stdint.h>
#include <string.h>

/* a b + c, rounded once where every processor of the kind can. */
static inline double exp_step(double a, double b, double c)
{
#ifdef __FP_FAST_FMA
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}

static inline double taut_exp(double x)
{
    static const double log2e = 0x1.71547652b82fep0, ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;
    static const double field = 0x1.8p52 +
                                1023; /* added, it leaves n + 1023, an exponent's field, in the lowest bits */
    const double shifted = exp_step(x, log2e, field), n = shifted - field;
    const double r = exp_step(n, -ln2_low, exp_step(n, -ln2_high, x)), s = r * r;
    double even = 1.0 / 479001600, odd = 1.0 / 6227020800, scale;
    even = exp_step(even, s, 1.0 / 3628800), odd = exp_step(odd, s, 1.0 / 39916800);
    even = exp_step(even, s, 1.0 / 40320), odd = exp_step(odd, s, 1.0 / 362880);
    even = exp_step(even, s, 1.0 / 720), odd = exp_step(odd, s, 1.0 / 5040);
    even = exp_step(even, s, 1.0 / 24), odd = exp_step(odd, s, 1.0 / 120);
    even = exp_step(even, s, 1.0 / 2), odd = exp_step(odd, s, 1.0 / 6);
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits <<= 52;
    memcpy(&scale, &bits, sizeof scale);
    return (1 + exp_step(exp_step(odd, r, even), s, r)) * scale;
}
#endif
