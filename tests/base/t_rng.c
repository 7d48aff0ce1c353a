/* The random source: known values of SplitMix64, ranges, and that its numbers look random. */
#include "base/rng.h"
#include "harness.h"

static void known_values(void)
{
    static const uint64_t splitmix64[] = { UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                           UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
                                           UINT64_C(16408922859458223821) };
    for (int i = 0; i < 5; i++)
        CHECK(taut_rng_bits(1234567, (uint64_t)i) == splitmix64[i], "SplitMix64 from seed 1234567");
}

/* chi^2 of 256 cells has mean 255 and standard deviation 22.6; 400 is over 6 of them. */
static double chi2(uint64_t key, int stride)
{
    enum { DRAWS = 1 << 16 };
    int cells[256] = { 0 };
    for (int i = 0; i < DRAWS; i++) cells[taut_rng_below(key, (uint64_t)i * (uint64_t)stride, 256)]++;
    double sum = 0;
    for (int i = 0; i < 256; i++) sum += (cells[i] - DRAWS / 256.0) * (cells[i] - DRAWS / 256.0);
    return sum / (DRAWS / 256.0);
}

int main(void)
{
    test_begin();
    known_values();
    double worst = 0;
    for (case_no = 0; case_no < effort(40); case_no++) {
        const uint64_t key = taut_rng_key(rng_next(), (uint64_t)rng_int(1, 6), (uint64_t)case_no);
        const double x = chi2(key, 1 + case_no % 3);
        if (x > worst) worst = x;
        CHECK_LE(x, 400, "uniform");
        const uint64_t n = (rng_next() >> rng_int(0, 63)) + 1, at = rng_next();
        CHECK(n == 0 || taut_rng_below(key, at, n) < n, "below its limit");
        CHECK(taut_rng_unit(key, at) >= 0 && taut_rng_unit(key, at) < 1, "in [0, 1)");
        CHECK(taut_rng_unit(key, at) == taut_rng_unit(key, at), "a pure function");
    }
    const uint64_t key = taut_rng_key(seed, TAUT_RNG_INIT, 0);
    double mean = 0, square = 0, cube = 0, fourth = 0;
    const int n = 200000;
    for (int i = 0; i < n; i++) {
        const double z = taut_rng_normal(key, (uint64_t)i);
        CHECK(isfinite(z), "finite");
        mean += z / n;
        square += z * z / n;
        cube += z * z * z / n;
        fourth += z * z * z * z / n;
    }
    CHECK_NEAR(mean, 0, 6 / sqrt(n), "mean of a normal");
    CHECK_NEAR(square, 1, 6 * sqrt(2.0 / n), "variance of a normal");
    CHECK_NEAR(cube, 0, 6 * sqrt(15.0 / n), "third moment of a normal");
    CHECK_NEAR(fourth, 3, 6 * sqrt(96.0 / n), "fourth moment of a normal");
    CHECK(taut_rng_key(1, 2, 3) != taut_rng_key(1, 3, 2) && taut_rng_key(1, 2, 3) != taut_rng_key(2, 1, 3),
          "the order of a key's parts counts");
    return test_end("rng", "worst chi^2 = %.0f of 400", worst);
}
