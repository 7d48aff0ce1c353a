/* bfloat16 as bits: the upper half of a float. */
#ifndef EMULATE_CUDA_BF16_H
#define EMULATE_CUDA_BF16_H
#include "cuda_runtime.h"

struct __nv_bfloat16 {
    uint16_t bits;
};
struct __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
static inline __nv_bfloat16 __float2bfloat16(float x)
{
    const unsigned bits = __float_as_uint(x);
    if (isnan(x)) return { 0x7fff };
    return { (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16) };
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return { __float2bfloat16(x), __float2bfloat16(y) };
}
#endif
