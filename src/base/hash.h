/* Hashing that is exactly 4-wise independent: polynomials of degree 3 over GF(2^w), hash.c. */
#ifndef TAUT_BASE_HASH_H
#define TAUT_BASE_HASH_H
#include <stdint.h>

enum { TAUT_HASH_TERMS = 4 };

/* a b in GF(2^w), w in { 3, 4, 8, 16, 32 }; a, b < 2^w. */
uint32_t taut_gf_mul(uint32_t a, uint32_t b, int w);

/* b0 + b1 x + b2 x^2 + b3 x^3 in GF(2^w). */
uint32_t taut_hash_value(const uint32_t b[TAUT_HASH_TERMS], uint32_t x, int w);

/* The smallest w whose field has room for `features` points and for a bucket and a sign; 0: none has. */
int taut_hash_width(int64_t features, int64_t buckets);

/* out[i] = h(i), a bucket, where feature i has the sign +, and ~h(i) where it has the sign -.  `buckets` is
 * a power of two.  The same key gives the same table. */
void taut_hash_table(int32_t *out, int64_t features, int64_t buckets, uint64_t key);
#endif
