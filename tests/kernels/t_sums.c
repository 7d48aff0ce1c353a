/* Arithmetic on sums by both tables, in place too; numbers into sums and sums into numbers. */
#include "kernels/pair.h"

static double want(taut_sum_op op, double c, double a, double b)
{
    const double all[] = { a + c * b, c * a * b, c * a / b, c * sqrt(a), fmin(c, a), a > 0 ? c / sqrt(a) : 1 };
    return all[op];
}

static void operate(const taut_kernels *k, int64_t n)
{
    double *a = doubles(n), *b = doubles(n);
    for (int64_t i = 0; i < n; i++) a[i] = i % 5 ? 3 * rng_pm() : 0, b[i] = 3 * rng_pm();
    if (n > 2) a[1] = NAN, a[2] = INFINITY;
    taut_sum *x = table_sums(k, n, 0), *y = table_sums(k, n, 0), *z = table_sums(k, n, 0);
    for (int op = TAUT_SUM_ADD; op <= TAUT_SUM_UNIT; op++) {
        const double c = 1 + rng_unit();
        k->put_sum(x, a, n), k->put_sum(y, b, n);
        k->sum_op(z, (taut_sum_op)op, c, x, y, n);
        k->sum_op(x, (taut_sum_op)op, c, x, y, n);
        for (int64_t i = 0; i < n; i++) {
            const double is = table_sum(k, z, i), should = want((taut_sum_op)op, c, a[i], b[i]),
                         in = table_sum(k, x, i);
            CHECK(memcmp(&is, &in, sizeof is) == 0 || (isnan(is) && isnan(in)), "in place");
            near(is, should, 0x1p-51 * (op == TAUT_SUM_ADD ? fabs(a[i]) + fabs(c * b[i]) : fabs(should)),
                 "an operation");
        }
    }
    k->put_sum(y, b, n);
    k->sum_op(z, TAUT_SUM_DIV, 2, NULL, y, n);
    for (int64_t i = 0; i < n; i++) CHECK(table_sum(k, z, i) == 2 / b[i], "NULL counts as 1");
    k->release(x), k->release(y), k->release(z);
    free(a), free(b);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(40); case_no++) {
        const int64_t n = rng_int(0, 40);
        operate(ref, n), operate(cpu, n);
        pair x = pair_new(n, 3), y = pair_new(n, 1), before = pair_bits(&y);
        const double c = rng_pm();
        taut_sum *r = table_sums(ref, n, 0), *s = table_sums(cpu, n, 0);
        ref->sum_of(r, R(&x), n), cpu->sum_of(s, x.f, n);
        for (int64_t i = 0; i < n; i++)
            CHECK(table_sum(ref, r, i) == x.d[i] && table_sum(cpu, s, i) == x.d[i], "sum_of is exact");
        ref->add_sum(R(&y), c, r, n), cpu->add_sum(y.f, c, s, n);
        for (int64_t i = 0; i < n; i++) CHECK_NEAR(y.d[i], before.d[i] + c * x.d[i], 1e-15 * 8, "add_sum");
        pair_near(&y, NULL, 1e-15, UNIT, "add_sum");
        ref->release(r), cpu->release(s);
        pair_free(&x), pair_free(&y), pair_free(&before);
    }
    return test_end("sums", "worst error / promised = %.3f", worst);
}
