/* Counter-based random numbers: a pure function of (key, counter), so the same numbers come for any
 * batch size, thread count or resume.  Keys name a purpose: taut_rng_key(seed, TAUT_RNG_BATCH, step).
 * The mixing is SplitMix64's. */
#ifndef TAUT_BASE_RNG_H
#define TAUT_BASE_RNG_H
#include <math.h>
#include <stdint.h>

#include "base/inline.h"

__extension__ typedef unsigned __int128 taut_u128;

enum {
    TAUT_RNG_INIT = 1,
    TAUT_RNG_BATCH,
    TAUT_RNG_MASK,
    TAUT_RNG_DROPOUT,
    TAUT_RNG_SAMPLE,
    TAUT_RNG_DATA,
    TAUT_RNG_HASH,
    TAUT_RNG_ATTACK,
    TAUT_RNG_AUGMENT,
    TAUT_RNG_PROBE
};

TAUT_INLINE uint64_t taut_rng_bits(uint64_t key, uint64_t counter)
{
    uint64_t z = key + (counter + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

TAUT_INLINE uint64_t taut_rng_key(uint64_t seed, uint64_t purpose, uint64_t index)
{
    return taut_rng_bits(taut_rng_bits(taut_rng_bits(0, seed), purpose), index);
}

/* In [0, 1). */
TAUT_INLINE double taut_rng_unit(uint64_t key, uint64_t counter)
{
    return (double)(taut_rng_bits(key, counter) >> 11) * 0x1p-53;
}

/* In 0 .. n-1; the bias is below n / 2^64. */
TAUT_INLINE uint64_t taut_rng_below(uint64_t key, uint64_t counter, uint64_t n)
{
    return (uint64_t)(((taut_u128)taut_rng_bits(key, counter) * n) >> 64);
}

/* Where i goes in a shuffling of 0 .. n-1: a Feistel network on the next power of four, walked until it is inside. */
TAUT_INLINE uint64_t taut_rng_place(uint64_t key, uint64_t i, uint64_t n)
{
    int half = 1;
    while (half < 32 && (uint64_t)1 << 2 * half < n) half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t a = i >> half, b = i & mask;
        for (uint64_t round = 0; round < 6; round++) {
            const uint64_t c = a ^ (taut_rng_bits(key, round << 32 | b) & mask);
            a = b;
            b = c;
        }
        i = a << half | b;
    } while (i >= n);
    return i;
}

TAUT_INLINE double taut_rng_normal(uint64_t key, uint64_t counter)
{
    const double u = 1 - taut_rng_unit(key, 2 * counter), v = taut_rng_unit(key, 2 * counter + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}
#endif
