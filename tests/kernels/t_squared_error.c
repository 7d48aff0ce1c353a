/* Squared error: cpu against ref, in place, without a gradient, NaN. */
#include "kernels/pair.h"

static void compare(int64_t len)
{
    pair x = pair_new(len, 3), y = pair_new(len, 3), g = pair_new(len, 1);
    const double weight = rng_unit();
    taut_sum *a = table_sums(ref, 2, 1), *b = table_sums(cpu, 2, 1), *c = table_sums(cpu, 2, 1);
    ref->squared_error(R(&g), a, R(&x), R(&y), len, weight);
    cpu->squared_error(g.f, b, x.f, y.f, len, weight);
    for (int i = 0; i < 2; i++)
        CHECK_NEAR(table_sum(cpu, b, i), table_sum(ref, a, i), (double)(len + 2) * 0x1p-52 * table_sum(ref, a, i),
                   "what is added to the sums");
    pair_near(&g, NULL, 0, 2 * UNIT, "gradient");
    cpu->squared_error(NULL, c, x.f, y.f, len, weight);
    CHECK(table_sum(cpu, c, 0) == table_sum(cpu, b, 0) && table_sum(cpu, c, 1) == table_sum(cpu, b, 1),
          "without a gradient");
    cpu->squared_error(x.f, b, x.f, y.f, len, weight);
    ref->squared_error(R(&x), a, R(&x), R(&y), len, weight);
    pair_same(&x, &g, "g may be x");
    pair_free(&x), pair_free(&y), pair_free(&g);
    ref->release(a), cpu->release(b), cpu->release(c);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(50); case_no++) compare(rng_int(0, 300));
    double x[] = { NAN, 1 }, y[] = { 0, 0 }, sums[] = { 0, 0 };
    ref->squared_error(NULL, (taut_sum *)sums, (taut_real *)x, (taut_real *)y, 2, 1);
    CHECK(isnan(sums[0]) && isnan(sums[1]), "NaN");
    return test_end("squared", "worst error / promised = %.3f", worst);
}
