/* A polynomial P of degree 3 with uniform coefficients over the field GF(2^w).  At four different points its
 * values are uniform on GF(2^w)^4, since the Vandermonde matrix is invertible.  The bucket h is the low m
 * bits of P(i), 2^m buckets, and bit m decides the sign: taking m + 1 bits is linear over GF(2) and onto, so
 * its fibres have one size, and buckets and signs of four features are uniform together.  Nothing is
 * rejected and drawn again, which would spoil exactly this. */
#include "base/hash.h"

#include "base/check.h"
#include "base/rng.h"

/* x^w is this, in terms of lower powers; all irreducible (tests/base/t_hash.c). */
static uint32_t reduction(int w)
{
    switch (w) {
    case 3:
        return 0x3; /* x^3 + x + 1 */
    case 4:
        return 0x3; /* x^4 + x + 1 */
    case 8:
        return 0x1b; /* x^8 + x^4 + x^3 + x + 1 */
    case 16:
        return 0x2b; /* x^16 + x^5 + x^3 + x + 1 */
    default:
        TAUT_CHECK(w == 32, "hash: no such field");
        return 0x8d; /* x^32 + x^7 + x^3 + x^2 + 1 */
    }
}

uint32_t taut_gf_mul(uint32_t a, uint32_t b, int w)
{
    const uint32_t low = reduction(w), mask = w == 32 ? UINT32_MAX : (1u << w) - 1, top = 1u << (w - 1);
    uint32_t product = 0;
    for (; b; b >>= 1) {
        if (b & 1) product ^= a;
        a = ((a << 1) & mask) ^ (a & top ? low : 0);
    }
    return product;
}

uint32_t taut_hash_value(const uint32_t b[TAUT_HASH_TERMS], uint32_t x, int w)
{
    uint32_t p = 0;
    for (int t = TAUT_HASH_TERMS - 1; t >= 0; t--) p = taut_gf_mul(p, x, w) ^ b[t];
    return p;
}

int taut_hash_width(int64_t features, int64_t buckets)
{
    static const int fields[] = { 4, 8, 16, 32 };
    for (int i = 0; i < 4; i++) {
        const int64_t points = (int64_t)1 << fields[i];
        if (features <= points && buckets <= points / 2) return fields[i];
    }
    return 0;
}

void taut_hash_table(int32_t *out, int64_t features, int64_t buckets, uint64_t key)
{
    const int w = taut_hash_width(features, buckets);
    TAUT_CHECK(w && buckets >= 1 && (buckets & (buckets - 1)) == 0 && buckets <= INT32_MAX,
               "hash: buckets must be a power of two");
    uint32_t b[TAUT_HASH_TERMS];
    for (int t = 0; t < TAUT_HASH_TERMS; t++) b[t] = (uint32_t)(taut_rng_bits(key, (uint64_t)t) >> (64 - w));
    for (int64_t i = 0; i < features; i++) {
        const uint32_t p = taut_hash_value(b, (uint32_t)i, w);
        const int32_t bucket = (int32_t)(p & (uint32_t)(buckets - 1));
        out[i] = p & (uint32_t)buckets ? ~bucket : bucket;
    }
}
