/* The largest |w_i|: of few and of many numbers, of all sizes, and infinite as soon as one is NaN or infinite,
 * wherever it stands. */
#include "bound/range.h"

#include "harness.h"

enum { MANY = 3 * RANGE_SHARED + 5 };

/* Of any size, subnormal ones among them, with either sign. */
static double some(void) { return rng_int(0, 6) ? ldexp(rng_pm(), (int)rng_int(-1074, 1024)) : -0.0; }

static double largest(const double *w, int64_t len)
{
    double most = 0;
    for (int64_t i = 0; i < len; i++) most = fmax(most, fabs(w[i]));
    return most;
}

int main(void)
{
    static double w[MANY];
    const double bad[] = { NAN, -NAN, INFINITY, -INFINITY };
    test_begin();
    for (int64_t i = 0; i < MANY; i++) w[i] = some();
    CHECK(range_max(w, 0) == 0, "nothing has size 0");
    for (int64_t len = 1; len < 100; len++)
        for (int64_t from = 0; from < 2000; from += 37)
            CHECK(range_max(w + from, len) == largest(w + from, len), "few numbers");
    for (int64_t len = RANGE_SHARED - 2; len <= MANY; len += 9973)
        CHECK(range_max(w, len) == largest(w, len), "many numbers");
    for (int b = 0; b < 4; b++)
        for (int64_t at = 0; at < MANY; at += at < 40 || at > MANY - 40 ? 1 : 8191) {
            const double kept = w[at];
            w[at] = bad[b];
            CHECK(range_max(w, MANY) == INFINITY, "one of many is no number");
            CHECK(at >= 99 || range_max(w, 99) == INFINITY, "one of few is no number");
            w[at] = kept;
        }
    CHECK(range_max((double[]){ DBL_MAX, -1 }, 2) == DBL_MAX, "the largest number is one");
    return test_end("range", "few, many, subnormal, signed zeros, NaN and infinity everywhere");
}
