/* 4-wise independent hashing: the fields are fields, a known polynomial, and all polynomials over GF(2^3)
 * and GF(2^4) counted: at any four points every pattern of buckets and signs comes equally often. */
#include "base/hash.h"
#include "base/rng.h"
#include "harness.h"

static uint32_t power(uint32_t a, int times, int w) /* a^(2^times) */
{
    for (int i = 0; i < times; i++) a = taut_gf_mul(a, a, w);
    return a;
}

/* Multiplication is associative and distributes; x^(2^w) = x for all x while x^(2^(w/p)) - x has an inverse
 * for x = the generator: Rabin's test says that the polynomial is irreducible. */
static void field(int w)
{
    const uint32_t mask = w == 32 ? UINT32_MAX : (1u << w) - 1;
    for (case_no = 0; case_no < effort(500); case_no++) {
        const uint32_t a = (uint32_t)rng_next() & mask, b = (uint32_t)rng_next() & mask,
                       c = (uint32_t)rng_next() & mask;
        CHECK(taut_gf_mul(a, taut_gf_mul(b, c, w), w) == taut_gf_mul(taut_gf_mul(a, b, w), c, w), "associative");
        CHECK(taut_gf_mul(a, b ^ c, w) == (taut_gf_mul(a, b, w) ^ taut_gf_mul(a, c, w)), "distributive");
        CHECK(taut_gf_mul(a, b, w) == taut_gf_mul(b, a, w) && taut_gf_mul(a, 1, w) == a, "commutative");
        CHECK(power(a, w, w) == a, "Frobenius");
    }
    const int prime = w == 3 ? 3 : 2; /* the only prime that divides w */
    const uint32_t d = power(2, w / prime, w) ^ 2;
    uint32_t inverse = 1; /* d^(2^w - 2) */
    for (int i = 1; i < w; i++) inverse = taut_gf_mul(inverse, power(d, i, w), w);
    CHECK(taut_gf_mul(d, inverse, w) == 1, "Rabin: irreducible");
}

static void known(void)
{
    static const uint32_t b[] = { 0x1234, 0xBEEF, 0x0F0F, 0x8001 };
    static const uint32_t want[] = { 0x1234, 0x23d5, 0x5359, 0x62c3, 0x1c0e, 0x2cf5 };
    static const uint32_t bucket[] = { 52, 213, 89, 195, 14, 245 }, minus[] = { 0, 1, 1, 0, 0, 0 };
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t p = taut_hash_value(b, i, 16);
        CHECK(p == want[i], "P3: value");
        CHECK((p & 255) == bucket[i] && (p >> 8 & 1) == minus[i], "P3: bucket and sign");
    }
}

/* Every polynomial at four points: all (2 buckets)^4 patterns, each the same number of times. */
static void count(int w, int buckets, const uint32_t point[4], int expect)
{
    const uint32_t field = 1u << w, keep = 2 * (uint32_t)buckets;
    int *seen = calloc((size_t)keep * keep * keep * keep, sizeof *seen);
    uint32_t b[4];
    for (b[0] = 0; b[0] < field; b[0]++)
        for (b[1] = 0; b[1] < field; b[1]++)
            for (b[2] = 0; b[2] < field; b[2]++)
                for (b[3] = 0; b[3] < field; b[3]++) {
                    uint32_t pattern = 0;
                    for (int i = 0; i < 4; i++) pattern = pattern * keep + taut_hash_value(b, point[i], w) % keep;
                    seen[pattern]++;
                }
    int least = seen[0], most = seen[0];
    for (uint32_t i = 0; i < keep * keep * keep * keep; i++) {
        least = seen[i] < least ? seen[i] : least;
        most = seen[i] > most ? seen[i] : most;
    }
    CHECK(least == most && least == expect, "4-wise uniform");
    free(seen);
}

static void tables(void)
{
    int32_t a[40], b[40];
    taut_hash_table(a, 40, 16, taut_rng_key(7, TAUT_RNG_DATA, 0));
    taut_hash_table(b, 40, 16, taut_rng_key(7, TAUT_RNG_DATA, 0));
    CHECK(memcmp(a, b, sizeof a) == 0, "one key, one table");
    taut_hash_table(b, 40, 16, taut_rng_key(8, TAUT_RNG_DATA, 0));
    CHECK(memcmp(a, b, sizeof a) != 0, "another key, another table");
    for (int i = 0; i < 40; i++) CHECK((a[i] < 0 ? ~a[i] : a[i]) < 16, "buckets are in range");
    CHECK(taut_hash_width(16, 8) == 4 && taut_hash_width(17, 8) == 8 && taut_hash_width(2, 16) == 8, "width");
    CHECK(taut_hash_width(40000, 32768) == 16 && taut_hash_width(70000, 2) == 32, "width");
    CHECK(taut_hash_width(2, (int64_t)1 << 40) == 0, "no field is that large");
}

int main(void)
{
    test_begin();
    static const int widths[] = { 3, 4, 8, 16, 32 };
    for (int i = 0; i < 5; i++) field(widths[i]);
    known();
    count(4, 4, (const uint32_t[]){ 0, 1, 7, 15 }, 16);
    count(4, 4, (const uint32_t[]){ 2, 3, 5, 11 }, 16);
    count(4, 8, (const uint32_t[]){ 0, 6, 9, 14 }, 1);
    count(3, 2, (const uint32_t[]){ 0, 1, 2, 3 }, 16);
    count(3, 4, (const uint32_t[]){ 1, 4, 6, 7 }, 1);
    tables();
    return test_end("hash", "5 fields, 2 of them counted out");
}
