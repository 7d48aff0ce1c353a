/* exp, tanh and the tail of the normal distribution in float, without branches, tables or library calls,
 * so that a loop over them becomes vector code.  Never with fast-math, which would fold the rounding away.
 * Cuts are made on the bits of a float, which are ordered like its magnitude: compilers turn a comparison
 * that must also be right for NaN into many instructions.
 *
 * Error, in units of 2^-24 relative (tests/kernels/t_pointwise.c and t_attention.c lean on it):
 *   vm_exp   2; for x <= 88; 0 where the result would be subnormal; exp(-inf) = 0, NaN = NaN
 *   vm_tanh  5; NaN = NaN
 *   vm_tail  8 + x^2/2 (exp magnifies the rounding of x^2); NaN is taken for a large number */
#ifndef TAUT_KERNELS_CPU_VMATH_H
#define TAUT_KERNELS_CPU_VMATH_H
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float vm_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t vm_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Integers in the order of the floats they stand for; its own inverse. */
static inline int32_t vm_order(int32_t bits) { return bits ^ (bits < 0 ? INT32_MAX : 0); }

/* The largest of x; nothing gives -inf.  A positive NaN is larger, a negative one smaller than all numbers:
 * whoever goes on to exp(x - max) meets either.  In integers, because a running maximum that is right for
 * NaN does not become vector code. */
static inline float vm_max(const float *x, int64_t len)
{
    int32_t max = vm_order((int32_t)vm_bits(-INFINITY));
    for (int64_t c = 0; c < len; c++) {
        const int32_t now = vm_order((int32_t)vm_bits(x[c]));
        max = now > max ? now : max;
    }
    return vm_float((uint32_t)vm_order(max));
}

/* Adding it rounds to an integer n and leaves n + 127, a float's exponent field, in the lowest bits. */
#define VM_ROUND (0x1.8p23f + 127.0f)
#define VM_LOG2E 1.44269504f
/* The high part has 9 bits: n times it is exact. */
#define VM_LN2_HIGH 0.693359375f
#define VM_LN2_LOW  -2.12194440e-4f

/* min(|x|, top); NaN counts as large. */
static inline float vm_cut(float x, float top)
{
    const int32_t bits = (int32_t)(vm_bits(x) & 0x7fffffffu), most = (int32_t)vm_bits(top);
    return vm_float((uint32_t)(bits < most ? bits : most));
}

/* e^r - 1 for |r| <= ln(2)/2: minimax, relative error 1.4e-8. */
static inline float vm_expm1_near(float r)
{
    const float r2 = r * r;
    const float high = (0x1.1228a0p-7f * r + 0x1.555486p-5f) + 0x1.6d99ecp-10f * r2;
    return r2 * ((0x1.5554aep-3f * r + 0.5f) + high * r2) + r;
}

/* e^x for -88 <= x <= 88; at -88 it is exactly 0. */
static inline float vm_exp_core(float x)
{
    const float shifted = x * VM_LOG2E + VM_ROUND, n = shifted - VM_ROUND;
    const float r = (x - n * VM_LN2_HIGH) - n * VM_LN2_LOW;
    const float scale = vm_float(vm_bits(shifted) << 23);
    return vm_expm1_near(r) * scale + scale;
}

/* Everything from -inf to below -87.34 gives 0; NaN of either sign lies outside of that range of bits. */
static inline float vm_exp(float x)
{
    const uint32_t first = vm_bits(-87.3365f), last = vm_bits(-INFINITY);
    const float e = vm_exp_core(x);
    return vm_bits(x) - first <= last - first ? 0.0f : e;
}

/* tanh |x| = w/(2-w), w = 1 - e^(-2|x|), whose small values stay precise; odd in x. */
static inline float vm_tanh(float x)
{
    const float a = -2.0f * vm_cut(x, 10.0f);
    const float shifted = a * VM_LOG2E + VM_ROUND, n = shifted - VM_ROUND;
    const float r = (a - n * VM_LN2_HIGH) - n * VM_LN2_LOW;
    const float scale = vm_float(vm_bits(shifted) << 23);
    const float w = (1.0f - scale) - vm_expm1_near(r) * scale;
    const float y = copysignf(w / (2.0f - w), x);
    return x == x ? y : x;
}

/* The normal tail  Phi(-a) = e * mills,  e = exp(-a^2/2),  at a = min(|x|, 13.25), where e is exactly 0. */
typedef struct {
    float a, e, mills;
} vm_normal;

static inline vm_normal vm_tail(float x)
{
    const float a = vm_cut(x, 13.25f), s = 1.0f / (a + 3.0f), t = (a - 3.0f) * s, t2 = t * t, t4 = t2 * t2;
    /* mills * (a + 3): minimax in t, relative error 4.8e-8 */
    const float p0 = (-5.093320608e-1f * t + 7.290836573e-1f) + (-4.725929350e-2f * t + 2.300193459e-1f) * t2;
    const float p4 = (6.936710328e-3f * t - 1.047975756e-2f) + (-9.194716695e-4f * t + 1.079865033e-3f) * t2;
    return (vm_normal){ a, vm_exp_core(-0.5f * a * a), (p0 + (p4 - 2.771573782e-4f * t4) * t4) * s };
}
#endif
