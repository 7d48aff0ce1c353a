/* Squared error: cpu against ref, in place, without a gradient, NaN. */
#include "kernels/pair.h"

static void compare(int64_t len)
{
    pair x = pair_new(len, 3), y = pair_new(len, 3), g = pair_new(len, 1);
    double a = 1, b = 1;
    const double weight = rng_unit();
    const double want = ref->squared_error(R(&g), &a, R(&x), R(&y), len, weight);
    const double got = cpu->squared_error(g.f, &b, x.f, y.f, len, weight);
    CHECK_NEAR(got, want, (double)(len + 2) * 0x1p-52 * want, "sum");
    CHECK_NEAR(b, a, (double)(len + 2) * 0x1p-52 * a, "absolute");
    pair_near(&g, NULL, 0, 2 * UNIT, "gradient");
    CHECK(cpu->squared_error(NULL, &b, x.f, y.f, len, weight) == got, "without a gradient");
    cpu->squared_error(x.f, &b, x.f, y.f, len, weight);
    ref->squared_error(R(&x), &a, R(&x), R(&y), len, weight);
    pair_same(&x, &g, "g may be x");
    pair_free(&x), pair_free(&y), pair_free(&g);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(50); case_no++) compare(rng_int(0, 300));
    double x[] = { NAN, 1 }, y[] = { 0, 0 }, absolute = 0;
    CHECK(isnan(ref->squared_error(NULL, &absolute, (taut_real *)x, (taut_real *)y, 2, 1)) && isnan(absolute), "NaN");
    return test_end("squared", "worst error / promised = %.3f", worst);
}
