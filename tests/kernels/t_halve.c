/* Max-pooling of three by two: cpu against ref bit by bit, ties, NaN and infinity, odd and even lengths, the adjoint. */
#include "kernels/pair.h"

static void compare(int64_t n, int64_t t, int64_t d, bool odd)
{
    static const double strange[] = { 0, -0.0, 1, INFINITY, -INFINITY, NAN };
    const int64_t len = n * t * d, half = n * ((t + 1) / 2) * d;
    pair x = pair_new(len, 2), y = pair_new(half, 0), from = pair_new(half, 0), u = pair_new(len, 1);
    pair ju = pair_new(half, 0), v = pair_new(half, 1), jv = pair_new(len, 0);
    for (int64_t i = 0; odd && i < len; i++) x.d[i] = rng_int(0, 1) ? (double)rng_int(-1, 1) : strange[rng_int(0, 5)];
    pair_sync(&x);
    SAME_BITS(y, (ref->halve(R(&y), R(&from), R(&x), n, t, d), cpu->halve(y.f, from.f, x.f, n, t, d)));
    pair_near(&y, NULL, 0, 0, "the largest");
    pair_near(&from, NULL, 0, 0, "where it is");
    for (int64_t i = 0; i < half; i++) {
        const int64_t e = i / (half / n), j = i / d % ((t + 1) / 2), at = (int64_t)from.d[i];
        CHECK(at >= 0 && at < t && at >= 2 * j - 1 && at <= 2 * j + 1, "in the window");
        for (int64_t s = 2 * j - 1; s <= 2 * j + 1; s++)
            if (s >= 0 && s < t && !isnan(y.d[i])) CHECK(x.d[(e * t + s) * d + i % d] <= y.d[i], "none is larger");
    }
    SAME_BITS(ju, (ref->halve_slope(R(&ju), R(&u), R(&from), n, t, d, false),
                   cpu->halve_slope(ju.f, u.f, from.f, n, t, d, false)));
    pair_near(&ju, NULL, 0, 0, "slope");
    SAME_BITS(jv, (ref->halve_slope(R(&jv), R(&v), R(&from), n, t, d, true),
                   cpu->halve_slope(jv.f, v.f, from.f, n, t, d, true)));
    pair_near(&jv, NULL, 0, UNIT, "transpose");
    CHECK_NEAR(dot(ju.d, v.d, half), dot(u.d, jv.d, len), 1e-13 * (double)(half + 1), "adjoint");
    pair *all[] = { &x, &y, &from, &u, &ju, &v, &jv };
    for (int i = 0; i < 7; i++) pair_free(all[i]);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(120); case_no++)
        compare(rng_int(1, 4), rng_int(1, 12), rng_int(1, 9), case_no % 2);
    compare(5, 97, 40, false);
    compare(5, 96, 40, true);
    compare(0, 4, 3, false);
    return test_end("halve", "cpu = ref bit by bit");
}
