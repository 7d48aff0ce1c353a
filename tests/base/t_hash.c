/* 4-wise independent hashing: the fields are fields, a known polynomial, and all polynomials over GF(2^3)
 * and GF(2^4) counted at all sets of four points: every pattern of buckets and signs comes equally often. */
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

/* Every polynomial at any four points: all (2 buckets)^4 patterns, each `expect` times. */
static int count(int w, int buckets, int expect)
{
    const uint32_t field = 1u << w, keep = 2 * (uint32_t)buckets, patterns = keep * keep * keep * keep;
    const uint32_t family = field * field * field * field;
    uint8_t *value = malloc((size_t)family * field); /* bucket and sign of every polynomial at every point */
    int *seen = malloc(patterns * sizeof *seen), sets = 0;
    for (uint32_t f = 0; f < family; f++)
        for (uint32_t x = 0; x < field; x++) {
            const uint32_t b[] = { f % field, f / field % field, f / field / field % field, f / field / field / field };
            value[f * field + x] = (uint8_t)(taut_hash_value(b, x, w) % keep);
        }
    for (uint32_t set = 0; set < 1u << field; set++) {
        uint32_t point[4], points = 0;
        for (uint32_t x = 0; x < field && points < 5; x++)
            if (set >> x & 1) point[points < 4 ? points : 0] = x, points++;
        if (points != 4) continue;
        memset(seen, 0, patterns * sizeof *seen);
        for (const uint8_t *v = value; v < value + (size_t)family * field; v += field)
            seen[((v[point[0]] * keep + v[point[1]]) * keep + v[point[2]]) * keep + v[point[3]]]++;
        for (uint32_t i = 0; i < patterns; i++) CHECK(seen[i] == expect, "4-wise uniform");
        sets++;
    }
    free(value);
    free(seen);
    return sets;
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
    const int sets = count(4, 4, 16) + count(4, 8, 1) + count(3, 2, 16) + count(3, 4, 1);
    CHECK(sets == 2 * 1820 + 2 * 70, "all sets of four points");
    tables();
    return test_end("hash", "5 fields; in two of them all polynomials counted at %d sets of four points", sets);
}
