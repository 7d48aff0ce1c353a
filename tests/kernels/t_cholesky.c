/* cholesky_inverse: r (a + shift I) r^T = I, r lower triangular; cpu within its promise of ref; what is not positive
 * definite is NaN. */
#include "kernels/pair.h"

static void random_case(int64_t n, double shift)
{
    pair w = pair_new(n * n, 1), a = pair_new(n * n, 0), r = pair_new(n * n, 1);
    for (int64_t i = 0; i < n * n; i++) {
        a.d[i] = 0;
        for (int64_t k = 0; k < n; k++) a.d[i] += w.d[i / n * n + k] * w.d[i % n * n + k];
    }
    pair_sync(&a);
    SAME_BITS(r, {
        ref->cholesky_inverse(R(&r), R(&a), shift, n);
        cpu->cholesky_inverse(r.f, a.f, shift, n);
    });
    double size = 0, large = shift;
    for (int64_t i = 0; i < n; i++) large += a.d[i * n + i];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t x = 0; x < n; x++)
                for (int64_t y = 0; y < n; y++)
                    sum += r.d[i * n + x] * (a.d[x * n + y] + (x == y ? shift : 0)) * r.d[j * n + y];
            CHECK_NEAR(sum, i == j, 1e-10, "r inverts the factor");
            CHECK(i >= j || r.d[i * n + j] == 0, "lower triangular");
            size += r.d[i * n + j] * r.d[i * n + j];
        }
    /* in the worst case the condition number is the trace over the shift; floats of a are symmetric, so exact */
    pair_near(&r, NULL, (UNIT + (double)(n * n) * 0x1p-50 * large / shift) * sqrt(size), 0, "cpu");
    pair_free(&w), pair_free(&a), pair_free(&r);
}

static void not_positive(double value)
{
    pair a = pair_new(9, 0), r = pair_new(9, 1);
    for (int64_t i = 0; i < 9; i++) a.d[i] = i / 3 == i % 3;
    a.d[4] = value;
    pair_sync(&a);
    ref->cholesky_inverse(R(&r), R(&a), 0.5, 3);
    cpu->cholesky_inverse(r.f, a.f, 0.5, 3);
    double got[9];
    cpu->get(got, r.f, 9);
    for (int64_t i = 0; i < 9; i++) CHECK(isnan(r.d[i]) && isnan(got[i]), "not positive definite: NaN");
    pair_free(&a), pair_free(&r);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(12); case_no++)
        random_case(case_no < 2 ? case_no : rng_int(2, 20), 0.1 + rng_unit());
    not_positive(-1), not_positive(NAN), not_positive(INFINITY);
    return test_end("cholesky", "worst error / promised = %.3f", worst);
}
