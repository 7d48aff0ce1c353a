/* axpby, blend and dot: cpu against ref. */
#include "kernels/pair.h"

static void axpby_case(int64_t len)
{
    const double a = rng_int(0, 5) == 0 ? 0 : 3 * rng_pm(), b = rng_int(0, 2) == 0 ? 0 : rng_pm();
    pair x = pair_new(len, 1), y = pair_new(len, 1), y0 = pair_copy(&y);
    double *tol = doubles(len);
    for (int64_t i = 0; i < len; i++) tol[i] = promise_axpby(promised) * (fabs(a * x.d[i]) + fabs(b * y.d[i]));
    ref->axpby(R(&y), a, R(&x), b, len);
    cpu->axpby(y.f, a, x.f, b, len);
    pair_near(&y, tol, 0, 0, "axpby");
    SAME_BITS(y, (memcpy(y.d, y0.d, (size_t)len * sizeof(double)), pair_sync(&y), ref->axpby(R(&y), a, R(&x), b, len),
                  cpu->axpby(y.f, a, x.f, b, len)));
    ref->axpby(R(&x), a, R(&x), 0, len);
    cpu->axpby(x.f, a, x.f, 0, len);
    pair_near(&x, NULL, 0, promise_axpby(promised), "axpby in place");
    pair_free(&x);
    pair_free(&y);
    pair_free(&y0);
    free(tol);
}

/* The last x is y itself; one in four has the factor 0, and NaN, which is not read. */
static void blend_case(int64_t len)
{
    const int count = rng_int(0, TAUT_TERMS);
    pair x[TAUT_TERMS], y = pair_new(len, 1);
    taut_term in_ref[TAUT_TERMS], in_cpu[TAUT_TERMS];
    double *tol = doubles(len);
    for (int j = 0; j < count; j++) {
        const bool last = j == count - 1, read = last || rng_int(0, 3) > 0;
        const double by = read ? 3 * rng_pm() : 0;
        x[j] = last ? pair_copy(&y) : pair_new(len, 1);
        for (int64_t i = 0; i < len; i++) tol[i] += promise_blend(promised, count) * fabs(by * x[j].d[i]);
        for (int64_t i = 0; !read && i < len; i++) x[j].d[i] = NAN;
        pair_sync(&x[j]);
        in_ref[j] = (taut_term){ by, last ? R(&y) : R(&x[j]) };
        in_cpu[j] = (taut_term){ by, last ? y.f : x[j].f };
    }
    pair y0 = pair_copy(&y);
    ref->blend(R(&y), in_ref, count, len);
    cpu->blend(y.f, in_cpu, count, len);
    pair_near(&y, tol, 0, 0, "blend");
    SAME_BITS(y, (memcpy(y.d, y0.d, (size_t)len * sizeof(double)), pair_sync(&y), ref->blend(R(&y), in_ref, count, len),
                  cpu->blend(y.f, in_cpu, count, len)));
    for (int j = 0; j < count; j++) pair_free(&x[j]);
    pair_free(&y), pair_free(&y0);
    free(tol);
}

static void dot_case(int64_t len)
{
    pair x = pair_new(len, 1), y = pair_new(len, 1), got = pair_new(1, 0);
    double sum = 0;
    for (int64_t i = 0; i < len; i++) sum += fabs(x.d[i] * y.d[i]);
    const double terms = (double)len * 0x1p-53 * sum; /* ref adds its len terms one by one */
    near(table_dot(cpu, x.f, y.f, len), table_dot(ref, R(&x), R(&y), len),
         terms + ((double)len / 4096 + 1100) * 0x1p-53 * sum + 1e-300, "dot");
    SAME_BITS(got, (got.d[0] = table_dot(cpu, x.f, y.f, len)));
    if (len > 0) {
        x.d[len / 2] = NAN;
        pair_sync(&x);
        CHECK(isnan(table_dot(cpu, x.f, y.f, len)) && isnan(table_dot(ref, R(&x), R(&y), len)), "dot keeps NaN");
    }
    pair_free(&x);
    pair_free(&y);
    pair_free(&got);
}

/* n vectors at once, each with its own factors: the bits of each alone. */
static void batch_case(int64_t n, int64_t len)
{
    const int64_t ys = len + rng_int(0, 3), xs = len + rng_int(0, 3);
    pair x = pair_new(n * xs, 1), y = pair_new(n * ys, 1), one = pair_copy(&y), z = pair_new(n * xs, 1);
    double *by = doubles(n), *tol = doubles(y.len);
    for (int64_t e = 0; e < n; e++) by[e] = rng_int(0, 3) ? rng_pm() : 0;
    const double a = rng_int(0, 3) ? rng_pm() : 0, b = rng_int(0, 2) ? rng_pm() : 0;
    taut_sum *in_ref = table_sums(ref, n, 0), *in_cpu = table_sums(cpu, n, 0);
    ref->put_sum(in_ref, by, n), cpu->put_sum(in_cpu, by, n);
    for (int64_t i = 0; i < y.len; i++)
        if (ys > 0 && i % ys < len)
            tol[i] = promise_axpby(promised) * (fabs(a * by[i / ys] * x.d[i / ys * xs + i % ys]) + fabs(b * y.d[i]));
    ref->axpby_by(R(&y), ys, (taut_factor){ a, in_ref }, R(&x), xs, (taut_factor){ b, NULL }, n, len);
    cpu->axpby_by(y.f, ys, (taut_factor){ a, in_cpu }, x.f, xs, (taut_factor){ b, NULL }, n, len);
    pair_near(&y, tol, 0, 0, "axpby_by");
    for (int64_t e = 0; e < n; e++)
        cpu->axpby(taut_at(cpu, one.f, e * ys), a * by[e], taut_at(cpu, x.f, e * xs), b, len),
            ref->axpby(taut_at(ref, R(&one), e * ys), a * by[e], taut_at(ref, R(&x), e * xs), b, len);
    pair_same(&y, &one, "each as if it were alone");
    const int64_t zs = rng_int(0, 1) ? xs : 0;
    cpu->dot(in_cpu, x.f, xs, z.f, zs, n, len), ref->dot(in_ref, R(&x), xs, R(&z), zs, n, len);
    for (int64_t e = 0; e < n; e++) {
        CHECK(table_sum(cpu, in_cpu, e) == table_dot(cpu, taut_at(cpu, x.f, e * xs), taut_at(cpu, z.f, e * zs), len),
              "a dot does not depend on its neighbours");
        near(table_sum(cpu, in_cpu, e), table_sum(ref, in_ref, e), 1e-11 * (double)(len + 1), "dots");
    }
    ref->release(in_ref), cpu->release(in_cpu);
    pair_free(&x), pair_free(&y), pair_free(&one), pair_free(&z);
    free(by), free(tol);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        const int64_t len = case_no < 5 ? case_no : rng_int(0, case_no % 4 ? 300 : 100000);
        axpby_case(len);
        blend_case(len);
        dot_case(len);
        batch_case(rng_int(0, 20), case_no % 7 ? rng_int(0, 90) : len);
    }
    pair x = pair_new(3, 1), y = pair_new(3, 1);
    y.d[0] = y.d[1] = NAN;
    x.d[1] = NAN;
    pair_sync(&x);
    pair_sync(&y);
    ref->axpby(R(&y), 2, R(&x), 0, 3);
    cpu->axpby(y.f, 2, x.f, 0, 3);
    CHECK(!isnan(y.d[0]) && isnan(y.d[1]), "b = 0 does not read y");
    pair_near(&y, NULL, 0, promise_axpby(promised), "axpby with NaN");
    ref->axpby(R(&y), 0, R(&x), 0, 3);
    cpu->axpby(y.f, 0, x.f, 0, 3);
    CHECK(y.d[1] == 0, "a = 0 does not read x");
    pair_near(&y, NULL, 0, 0, "axpby by zeros");
    pair_free(&x);
    pair_free(&y);
    return test_end("vector", "worst error / promised = %.3f", worst);
}
