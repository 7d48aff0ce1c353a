/* Halves as bits. */
#ifndef EMULATE_CUDA_FP16_H
#define EMULATE_CUDA_FP16_H
#include "cuda_runtime.h"

struct __half {
    uint16_t bits;
};
struct __half2 {
    __half x, y;
};
uint16_t emulate_half(float x); /* rounded to nearest, ties to even */
float emulate_float(uint16_t half);
static inline __half __float2half_rn(float x) { return { emulate_half(x) }; }
static inline float __half2float(__half x) { return emulate_float(x.bits); }
static inline __half2 __floats2half2_rn(float x, float y) { return { __float2half_rn(x), __float2half_rn(y) }; }
static inline float2 __half22float2(__half2 x) { return { __half2float(x.x), __half2float(x.y) }; }
static inline unsigned short __half_as_ushort(__half x) { return x.bits; }
static inline __half __ushort_as_half(unsigned short x) { return { x }; }
#endif
