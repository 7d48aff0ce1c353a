/* taut_float32 against rounding in integers: the bits of a double are cut to 24 digits, or fewer below 2^-126, to the nearest,
 * ties to even.  Alone, in pairs in a struct and in arrays, since that is where gcc 12 dropped a cast; every exponent, halves
 * and their neighbours, subnormals, overflow, infinities, NaN.  Rounding the result again changes nothing. */
#include "base/float32.h"
#include "harness.h"

typedef struct {
    double first, second;
} two;

static uint64_t bits_of(double x)
{
    uint64_t b;
    memcpy(&b, &x, 8);
    return b;
}
static double from_bits(uint64_t b)
{
    double x;
    memcpy(&x, &b, 8);
    return x;
}

/* The nearest float32 number, of bits alone. */
static double oracle(double x)
{
    const uint64_t b = bits_of(x), sign = b & UINT64_C(1) << 63, size = b ^ sign;
    const int e = (int)(size >> 52) - 1023;
    if (size > UINT64_C(0x7FF) << 52) return NAN;
    if (e >= 128) return from_bits(sign | UINT64_C(0x7FF) << 52);
    const int drop = e >= -126 ? 29 : 29 - 126 - e; /* binary digits of 53 that a float has no room for */
    if (drop > 53) return from_bits(sign);          /* below half of the smallest */
    const uint64_t digits = (size & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    uint64_t kept = digits >> drop;
    const uint64_t rest = digits & ((UINT64_C(1) << drop) - 1), half = UINT64_C(1) << (drop - 1);
    if (rest > half || (rest == half && kept % 2)) kept++;
    /* kept <= 2^24 and the power of two are exact, and so is their product */
    double power = 1;
    for (int i = e - 52 + drop; i < 0; i++) power /= 2;
    for (int i = e - 52 + drop; i > 0; i--) power *= 2;
    const double y = (double)kept * power;
    return from_bits(sign | bits_of(y >= 0x1p128 ? INFINITY : y));
}

static bool same(double a, double b) { return isnan(b) ? isnan(a) : bits_of(a) == bits_of(b); }

/* Kept apart from their callers, so that the compiler lays them out as it would anywhere. */
__attribute__((noinline)) static two pair_of(double a, double b) { return (two){ taut_float32(a), taut_float32(b) }; }
__attribute__((noinline)) static two scaled_pair(double a, double b, double c)
{
    return (two){ taut_float32(a * c), taut_float32(b * c) };
}
__attribute__((noinline)) static void array_of(double *to, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = taut_float32(from[i]);
}
__attribute__((noinline)) static void four_of(double to[4], const double from[4])
{
    to[0] = taut_float32(from[0]), to[1] = taut_float32(from[1]);
    to[2] = taut_float32(from[2]), to[3] = taut_float32(from[3]);
}

static double any(void)
{
    static const double special[] = { 0,
                                      -0.0,
                                      INFINITY,
                                      -INFINITY,
                                      NAN,
                                      0x1p-149,
                                      0x1p-150,
                                      0x1.8p-150,
                                      0x1.000002p-150,
                                      0x1p-126,
                                      0x1.fffffep127,
                                      0x1.ffffffp127,
                                      0x1p128,
                                      1,
                                      5e-324,
                                      0x1.fffffefp127,
                                      0x1.fffffcp-127,
                                      1e308 };
    const int64_t kind = rng_int(0, 7);
    if (kind == 0) return special[rng_int(0, 17)] * (rng_int(0, 1) ? 1 : -1);
    if (kind == 1) return from_bits(rng_next());                                          /* any bits */
    if (kind == 2) return ldexp(rng_pm(), (int)rng_int(-160, -120));                      /* subnormal, or nearly */
    if (kind == 3) return ldexp(rng_pm(), (int)rng_int(120, 132));                        /* overflow, or nearly */
    double x = ldexp((double)rng_int(0x800000, 0xffffff) + 0.5, (int)rng_int(-130, 100)); /* halfway */
    if (kind == 4) return x;
    if (kind == 5) return nextafter(x, rng_int(0, 1) ? INFINITY : 0);
    return ldexp(rng_pm(), (int)rng_int(-30, 30));
}

int main(void)
{
    enum { N = 67 };
    double x[N], y[N];
    int64_t rounded = 0;
    test_begin();
    for (case_no = 0; case_no < effort(20000); case_no++) {
        for (int i = 0; i < N; i++) x[i] = any();
        array_of(y, x, N);
        for (int i = 0; i < N; i++) {
            const double want = oracle(x[i]);
            CHECK(same(y[i], want), "in an array");
            CHECK(same(taut_float32(x[i]), want), "alone");
            CHECK(same(taut_float32(y[i]), want), "twice");
            rounded += !same(x[i], want);
        }
        const two p = pair_of(x[0], x[1]), s = scaled_pair(x[2], x[3], 3);
        CHECK(same(p.first, oracle(x[0])) && same(p.second, oracle(x[1])), "in a pair");
        CHECK(same(s.first, oracle(x[2] * 3)) && same(s.second, oracle(x[3] * 3)), "a product, in a pair");
        four_of(y, x + 4);
        for (int i = 0; i < 4; i++) CHECK(same(y[i], oracle(x[4 + i])), "four neighbours");
    }
    CHECK(rounded > (int64_t)case_no * N / 4, "most were no float32 numbers before");
    return test_end("float32", "%lld numbers, %lld of them rounded", (long long)case_no * N, (long long)rounded);
}
