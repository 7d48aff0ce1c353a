/* exp, tanh and the tail of the normal distribution in float, without branches, tables or library calls,
 * so that a loop over them becomes vector code.  Good with and without fused multiply-add; never with
 * fast-math, which would fold the rounding away.
 *
 * Error (tests/kernels/t_pointwise.c looks at every part of the range), in units of 2^-24 relative:
 *   vm_exp      2, and 2^-149 where the result is subnormal; exp(-inf) = 0, exp(+inf) = +inf, NaN = NaN
 *   vm_exp_low  2; only for x <= 88; 0 where the result would be subnormal
 *   vm_tanh     5
 *   vm_tail     8; 0 where the result would be subnormal */
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

/* The largest of x; NaN is passed over, nothing gives -inf.  Lanes by hand: a compiler that keeps NaN's
 * rules does not take a running maximum apart. */
static inline float vm_max(const float *x, int64_t len)
{
    enum { LANES = 16 };
    float lane[LANES], max = -INFINITY;
    int64_t c = 0;
    for (int l = 0; l < LANES; l++) lane[l] = -INFINITY;
    for (; c + LANES <= len; c += LANES)
        for (int l = 0; l < LANES; l++) lane[l] = x[c + l] > lane[l] ? x[c + l] : lane[l];
    for (; c < len; c++) max = x[c] > max ? x[c] : max;
    for (int l = 0; l < LANES; l++) max = lane[l] > max ? lane[l] : max;
    return max;
}

/* Adding it rounds to an integer n and leaves n + 127, a float's exponent field, in the lowest bits. */
#define VM_ROUND (0x1.8p23f + 127.0f)
#define VM_LOG2E 1.44269504f
/* The high part has 9 bits: n times it is exact. */
#define VM_LN2_HIGH 0.693359375f
#define VM_LN2_LOW  -2.12194440e-4f

/* e^r - 1 for |r| <= ln(2)/2: minimax, relative error 1.4e-8. */
static inline float vm_expm1_near(float r)
{
    float q = 0x1.6d99ecp-10f;
    q = q * r + 0x1.1228a0p-7f;
    q = q * r + 0x1.555486p-5f;
    q = q * r + 0x1.5554aep-3f;
    q = q * r + 0.5f;
    return q * (r * r) + r;
}

/* e^(x + low) for x <= 88 and a low that is small beside x; 0 below the normal numbers. */
static inline float vm_exp_sum(float x, float low)
{
    const float shifted = (x + low) * VM_LOG2E + VM_ROUND, n = shifted - VM_ROUND;
    const float r = (x - n * VM_LN2_HIGH) + (low - n * VM_LN2_LOW);
    const float scale = vm_float(vm_bits(shifted) << 23);
    const float e = vm_expm1_near(r) * scale + scale;
    return x < -87.3365f ? 0.0f : e;
}

static inline float vm_exp_low(float x)
{
    const float shifted = x * VM_LOG2E + VM_ROUND, n = shifted - VM_ROUND;
    const float r = (x - n * VM_LN2_HIGH) - n * VM_LN2_LOW;
    const float scale = vm_float(vm_bits(shifted) << 23);
    const float e = vm_expm1_near(r) * scale + scale;
    return x < -87.3365f ? 0.0f : e;
}

/* The scale goes on in two halves: 2^n alone leaves the floats at both ends. */
static inline float vm_exp(float x)
{
    const float low = x < -104.0f ? -104.0f : x, c = low > 89.0f ? 89.0f : low; /* NaN passes */
    const float shifted = c * VM_LOG2E + VM_ROUND, n = shifted - VM_ROUND;
    const float r = (c - n * VM_LN2_HIGH) - n * VM_LN2_LOW;
    const uint32_t biased = vm_bits(shifted) - (vm_bits(VM_ROUND) - 254); /* n + 254: never negative */
    const uint32_t half = biased >> 1;
    return (vm_expm1_near(r) + 1.0f) * vm_float(half << 23) * vm_float((biased - half) << 23);
}

/* tanh a = w/(w+2), w = e^(2a) - 1, whose small values stay precise; odd in x. */
static inline float vm_tanh(float x)
{
    const float a = fabsf(x), c = a > 10.0f ? 10.0f : a;
    const float shifted = 2.0f * c * VM_LOG2E + VM_ROUND, n = shifted - VM_ROUND;
    const float r = (2.0f * c - n * VM_LN2_HIGH) - n * VM_LN2_LOW;
    const float scale = vm_float(vm_bits(shifted) << 23);
    const float w = vm_expm1_near(r) * scale + (scale - 1.0f);
    return copysignf(w / (w + 2.0f), x);
}

/* The normal tail  Phi(-a) = e * mills,  e = exp(-a^2/2),  for a >= 0 (a is cut at 14, where e is 0).
 * a^2 is split so that its rounding, which exp would magnify, is carried along. */
typedef struct {
    float e, mills;
} vm_normal;

static inline vm_normal vm_tail(float a)
{
    const float c = a > 14.0f ? 14.0f : a;
    const float high = vm_float(vm_bits(c) & 0xfffff000u); /* 12 bits: its square is exact */
    const float e = vm_exp_sum(-0.5f * high * high, -0.5f * (c - high) * (c + high));
    const float s = 1.0f / (c + 4.0f), t = (c - 4.0f) * s;
    float m = -1.262701990e-4f; /* mills * (a + 4): minimax in t, relative error 2.2e-8 */
    m = m * t + 1.918503694e-4f;
    m = m * t + 1.574872062e-3f;
    m = m * t - 3.517973470e-3f;
    m = m * t - 7.528755348e-3f;
    m = m * t + 6.040446088e-2f;
    m = m * t - 1.865229011e-1f;
    m = m * t + 3.871368766e-1f;
    m = m * t - 6.078966260e-1f;
    m = m * t + 7.552851439e-1f;
    return (vm_normal){ e, m * s };
}
#endif
