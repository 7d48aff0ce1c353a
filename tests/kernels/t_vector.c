/* axpby and dot: cpu against ref. */
#include "kernels/pair.h"

static void axpby_case(int64_t len)
{
    const double a = rng_int(0, 5) == 0 ? 0 : 3 * rng_pm(), b = rng_int(0, 2) == 0 ? 0 : rng_pm();
    pair x = pair_new(len, 1), y = pair_new(len, 1), y0 = pair_copy(&y);
    double *tol = doubles(len);
    for (int64_t i = 0; i < len; i++) tol[i] = 3 * UNIT * (fabs(a * x.d[i]) + fabs(b * y.d[i]));
    ref->axpby(R(&y), a, R(&x), b, len);
    cpu->axpby(y.f, a, x.f, b, len);
    pair_near(&y, tol, 0, 0, "axpby");
    SAME_BITS(y, (memcpy(y.d, y0.d, (size_t)len * sizeof(double)), pair_sync(&y), ref->axpby(R(&y), a, R(&x), b, len),
                  cpu->axpby(y.f, a, x.f, b, len)));
    ref->axpby(R(&x), a, R(&x), 0, len);
    cpu->axpby(x.f, a, x.f, 0, len);
    pair_near(&x, NULL, 0, 3 * UNIT, "axpby in place");
    pair_free(&x);
    pair_free(&y);
    pair_free(&y0);
    free(tol);
}

static void dot_case(int64_t len)
{
    pair x = pair_new(len, 1), y = pair_new(len, 1), got = pair_new(1, 0);
    double sum = 0;
    for (int64_t i = 0; i < len; i++) sum += fabs(x.d[i] * y.d[i]);
    const double terms = (double)len * 0x1p-53 * sum; /* ref adds its len terms one by one */
    near(cpu->dot(x.f, y.f, len), ref->dot(R(&x), R(&y), len),
         terms + ((double)len / 4096 + 1100) * 0x1p-53 * sum + 1e-300, "dot");
    SAME_BITS(got, (got.d[0] = cpu->dot(x.f, y.f, len)));
    if (len > 0) {
        x.d[len / 2] = NAN;
        pair_sync(&x);
        CHECK(isnan(cpu->dot(x.f, y.f, len)) && isnan(ref->dot(R(&x), R(&y), len)), "dot keeps NaN");
    }
    pair_free(&x);
    pair_free(&y);
    pair_free(&got);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        const int64_t len = case_no < 5 ? case_no : rng_int(0, case_no % 4 ? 300 : 40000);
        axpby_case(len);
        dot_case(len);
    }
    pair x = pair_new(3, 1), y = pair_new(3, 1);
    y.d[0] = y.d[1] = NAN;
    x.d[1] = NAN;
    pair_sync(&x);
    pair_sync(&y);
    ref->axpby(R(&y), 2, R(&x), 0, 3);
    cpu->axpby(y.f, 2, x.f, 0, 3);
    CHECK(!isnan(y.d[0]) && isnan(y.d[1]), "b = 0 does not read y");
    pair_near(&y, NULL, 0, 3 * UNIT, "axpby with NaN");
    ref->axpby(R(&y), 0, R(&x), 0, 3);
    cpu->axpby(y.f, 0, x.f, 0, 3);
    CHECK(y.d[1] == 0, "a = 0 does not read x");
    pair_near(&y, NULL, 0, 0, "axpby by zeros");
    pair_free(&x);
    pair_free(&y);
    return test_end("vector", "worst error / promised = %.3f", worst);
}
