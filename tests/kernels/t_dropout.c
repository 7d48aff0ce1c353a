/* Dropout: cpu drops what ref drops, about p of them; NaN is not hidden. */
#include "kernels/pair.h"

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        const int64_t len = rng_int(0, case_no % 5 ? 200 : 30000);
        const double corner[] = { 0, 1, 0.5 }, p = case_no % 4 ? rng_unit() : corner[case_no / 4 % 3];
        const uint64_t key = rng_next();
        pair x = pair_new(len, 1), y = pair_new(len, 0), z = pair_copy(&x);
        int64_t kept = 0;
        SAME_BITS(y, (ref->dropout(R(&y), R(&x), key, p, len), cpu->dropout(y.f, x.f, key, p, len)));
        pair_near(&y, NULL, 0, 2 * UNIT, "dropout");
        for (int64_t i = 0; i < len; i++) {
            kept += y.d[i] != 0;
            CHECK(y.d[i] == 0 || fabs(y.d[i] * (1 - p) - x.d[i]) < 1e-12, "kept entries grow by 1/(1-p)");
        }
        CHECK_NEAR((double)kept, (1 - p) * (double)len, 6 * sqrt(p * (1 - p) * (double)len) + 1, "how many are kept");
        ref->dropout(R(&z), R(&z), key, p, len);
        cpu->dropout(z.f, z.f, key, p, len);
        pair_same(&z, &y, "in place");
        for (int64_t i = 0; i < len; i++) x.d[i] = i % 2 ? NAN : INFINITY;
        pair_sync(&x);
        ref->dropout(R(&y), R(&x), key, p, len);
        cpu->dropout(y.f, x.f, key, p, len);
        for (int64_t i = 0; i < len; i++) CHECK(!isfinite(y.d[i]), "poison is not dropped");
        pair_near(&y, NULL, 0, 0, "dropout of poison");
        pair_free(&x);
        pair_free(&y);
        pair_free(&z);
    }
    return test_end("dropout", "worst error / promised = %.3f", worst);
}
