/* Numbers of a safetensors file to double and back, byte by byte (little-endian, no alignment) and, for
 * floats, bit by bit: a cast would make signalling NaNs quiet, and then a round trip would not be exact. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "model/safetensors_impl.h"

static const taut_st_dtype dtypes[] = {
    { "F64", 64, TAUT_ST_FLOAT, 52 },       { "F32", 32, TAUT_ST_FLOAT, 23 },   { "F16", 16, TAUT_ST_FLOAT, 10 },
    { "BF16", 16, TAUT_ST_FLOAT, 7 },       { "I64", 64, TAUT_ST_SIGNED, 0 },   { "I32", 32, TAUT_ST_SIGNED, 0 },
    { "I16", 16, TAUT_ST_SIGNED, 0 },       { "I8", 8, TAUT_ST_SIGNED, 0 },     { "U64", 64, TAUT_ST_UNSIGNED, 0 },
    { "U32", 32, TAUT_ST_UNSIGNED, 0 },     { "U16", 16, TAUT_ST_UNSIGNED, 0 }, { "U8", 8, TAUT_ST_UNSIGNED, 0 },
    { "BOOL", 8, TAUT_ST_BOOL, 0 },         { "C64", 64, TAUT_ST_OTHER, 0 },    { "F4", 4, TAUT_ST_OTHER, 0 },
    { "F6_E2M3", 6, TAUT_ST_OTHER, 0 },     { "F6_E3M2", 6, TAUT_ST_OTHER, 0 }, { "F8_E5M2", 8, TAUT_ST_OTHER, 0 },
    { "F8_E4M3", 8, TAUT_ST_OTHER, 0 },     { "F8_E8M0", 8, TAUT_ST_OTHER, 0 }, { "F8_E4M3FNUZ", 8, TAUT_ST_OTHER, 0 },
    { "F8_E5M2FNUZ", 8, TAUT_ST_OTHER, 0 },
};

const taut_st_dtype *taut_st_dtype_find(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    return NULL;
}

uint64_t taut_st_load(const unsigned char *bytes, int size)
{
    uint64_t raw = 0;
    for (int i = 0; i < size; i++) raw |= (uint64_t)bytes[i] << 8 * i;
    return raw;
}

void taut_st_store(unsigned char *bytes, uint64_t raw, int size)
{
    for (int i = 0; i < size; i++) bytes[i] = (unsigned char)(raw >> 8 * i);
}

/* The bits of the double with the value of a narrower float; every such value has one. */
static inline uint64_t widen(uint64_t raw, int bits, int mantissa)
{
    const int exponents = bits - 1 - mantissa, bias = (1 << (exponents - 1)) - 1;
    const uint64_t sign = raw >> (bits - 1) << 63, part = raw & ((UINT64_C(1) << mantissa) - 1);
    const int exponent = (int)(raw >> mantissa) & ((1 << exponents) - 1);
    if (exponent == 0) {
        const double tiny = ldexp((double)part, 1 - bias - mantissa);
        uint64_t wide;
        memcpy(&wide, &tiny, sizeof wide);
        return sign | wide;
    }
    const int top = exponent == (1 << exponents) - 1 ? 0x7FF : exponent - bias + 1023; /* inf, NaN or normal */
    return sign | (uint64_t)top << 52 | part << (52 - mantissa);
}

/* Returns false if no double has the value. */
static inline bool widen_integer(double *dst, uint64_t raw, const taut_st_dtype *dtype)
{
    if (dtype->kind == TAUT_ST_SIGNED) {
        const int rest = 64 - dtype->bits;
        const int64_t value = (int64_t)(raw << rest) >> rest; /* gcc and clang both promise the sign is kept */
        *dst = (double)value;
        return *dst < 0x1p63 && (int64_t)*dst == value;
    }
    *dst = (double)raw;
    return dtype->kind == TAUT_ST_BOOL ? raw <= 1 : *dst < 0x1p64 && (uint64_t)*dst == raw;
}

int64_t taut_st_unpack(double *dst, const unsigned char *src, int64_t count, const taut_st_dtype *dtype)
{
    const int size = dtype->bits / 8;
    for (int64_t i = 0; i < count; i++, src += size) {
        uint64_t raw;
        switch (dtype->kind == TAUT_ST_FLOAT ? dtype->mantissa : 0) {
        case 52:
            raw = taut_st_load(src, 8);
            break;
        case 23:
            raw = widen(taut_st_load(src, 4), 32, 23);
            break;
        case 10:
            raw = widen(taut_st_load(src, 2), 16, 10);
            break;
        case 7:
            raw = widen(taut_st_load(src, 2), 16, 7);
            break;
        default:
            if (!widen_integer(&dst[i], taut_st_load(src, size), dtype)) return i;
            continue;
        }
        memcpy(&dst[i], &raw, sizeof raw);
    }
    return count;
}

static uint32_t narrow_nan(uint64_t bits)
{
    const uint32_t payload = (uint32_t)(bits >> 29) & 0x7FFFFF;
    return (uint32_t)(bits >> 32 & 0x80000000) | 0x7F800000 | (payload ? payload : 0x400000);
}

int64_t taut_st_pack(unsigned char *dst, const double *src, int64_t count, const taut_st_dtype *dtype)
{
    for (int64_t i = 0; i < count; i++) {
        uint64_t wide;
        memcpy(&wide, &src[i], sizeof wide);
        if (dtype->bits == 64) {
            taut_st_store(dst + 8 * i, wide, 8);
            continue;
        }
        uint32_t raw;
        if ((wide & ~(UINT64_C(1) << 63)) > UINT64_C(0x7FF) << 52) {
            raw = narrow_nan(wide);
        } else {
            const float narrow = (float)src[i];
            if (isinf(narrow) && !isinf(src[i])) return i;
            memcpy(&raw, &narrow, sizeof raw);
        }
        taut_st_store(dst + 4 * i, raw, 4);
    }
    return count;
}
