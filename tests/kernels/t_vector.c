/* axpby and its like, blend and dot: cpu against ref. */
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

/* n vectors; the last x is y itself, one term in four has the factor 0, and NaN, which is not read; one in two has factors of
 * every vector's own. */
static void blend_case(int64_t n, int64_t len)
{
    const int count = rng_int(0, TAUT_TERMS);
    const int64_t ys = len + rng_int(0, 1) * 4;
    pair x[TAUT_TERMS], y = pair_new(n * ys, 1), one = pair_copy(&y);
    taut_term in_ref[TAUT_TERMS], in_cpu[TAUT_TERMS];
    double by[TAUT_TERMS], *own = doubles(TAUT_TERMS * n), *tol = doubles(y.len);
    taut_sum *ref_own = table_sums(ref, TAUT_TERMS * n, 0), *cpu_own = table_sums(cpu, TAUT_TERMS * n, 0);
    for (int64_t i = 0; i < TAUT_TERMS * n; i++) own[i] = rng_int(0, 3) ? rng_pm() : 0;
    ref->put_sum(ref_own, own, TAUT_TERMS * n), cpu->put_sum(cpu_own, own, TAUT_TERMS * n);
    for (int j = 0; j < count; j++) {
        const bool last = j == count - 1, read = last || rng_int(0, 3) > 0, each = rng_int(0, 1);
        const int64_t xs = last ? ys : len + (case_no % 2 ? 4 : 2) * rng_int(0, 2);
        by[j] = read ? 3 * rng_pm() : 0;
        x[j] = last ? pair_copy(&y) : pair_new(n * xs, 1);
        for (int64_t e = 0; e < n; e++) {
            if (!each) own[j * n + e] = 1;
            for (int64_t i = 0; i < len; i++)
                tol[e * ys + i] += promise_blend(promised, count) * fabs(by[j] * own[j * n + e] * x[j].d[e * xs + i]);
        }
        for (int64_t i = 0; !read && i < n * xs; i++) x[j].d[i] = NAN;
        pair_sync(&x[j]);
        in_ref[j] = (taut_term){ { by[j], each ? taut_sum_at(ref_own, j * n) : NULL }, last ? R(&y) : R(&x[j]), xs };
        in_cpu[j] = (taut_term){ { by[j], each ? taut_sum_at(cpu_own, j * n) : NULL }, last ? y.f : x[j].f, xs };
    }
    pair y0 = pair_copy(&y);
    ref->blend(R(&y), ys, in_ref, count, n, len);
    cpu->blend(y.f, ys, in_cpu, count, n, len);
    pair_near(&y, tol, 0, 0, "blend");
    for (int64_t e = 0; e < n; e++) {
        taut_term alone[TAUT_TERMS], cpu_alone[TAUT_TERMS];
        for (int j = 0; j < count; j++) {
            const int64_t at = e * in_ref[j].stride;
            const double factor = by[j] * own[j * n + e];
            const bool last = j == count - 1;
            alone[j] = (taut_term){ { factor, NULL }, taut_at(ref, last ? R(&one) : R(&x[j]), at), 0 };
            cpu_alone[j] = (taut_term){ { factor, NULL }, taut_at(cpu, last ? one.f : x[j].f, at), 0 };
        }
        ref->blend(taut_at(ref, R(&one), e * ys), 0, alone, count, 1, len);
        cpu->blend(taut_at(cpu, one.f, e * ys), 0, cpu_alone, count, 1, len);
    }
    pair_same(&y, &one, "each blend as if it were alone");
    SAME_BITS(y, (memcpy(y.d, y0.d, (size_t)y.len * sizeof(double)), pair_sync(&y),
                  ref->blend(R(&y), ys, in_ref, count, n, len), cpu->blend(y.f, ys, in_cpu, count, n, len)));
    ref->release(ref_own), cpu->release(cpu_own);
    for (int j = 0; j < count; j++) pair_free(&x[j]);
    pair_free(&y), pair_free(&y0), pair_free(&one);
    free(tol), free(own);
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
    const int64_t apart = rng_int(0, 1) ? 4 : 1, ys = len + apart * rng_int(0, 3), xs = len + apart * rng_int(0, 3);
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

/* Arrays wherever they lie: what axpby gives for each, and nothing between them is touched. */
static void all_case(int n, int64_t len)
{
    const int64_t room = len + rng_int(0, 9), apart = room + rng_int(0, 1);
    pair x = pair_new(n * room + 1, 1), y = pair_new(n * apart + 1, 1), one = pair_copy(&y);
    const double a = rng_int(0, 3) ? rng_pm() : 0, b = rng_int(0, 2) ? rng_pm() : 0;
    const int64_t turn = rng_int(0, n - 1);
    taut_real *from[2][TAUT_MANY], *to[2][TAUT_MANY];
    for (int e = 0; e < n; e++) { /* x in another order than y */
        const int64_t read = (e + turn) % n * room, write = e * apart;
        from[0][e] = taut_at(ref, R(&x), read), to[0][e] = taut_at(ref, R(&y), write);
        from[1][e] = taut_at(cpu, x.f, read), to[1][e] = taut_at(cpu, y.f, write);
        ref->axpby(taut_at(ref, R(&one), write), a, from[0][e], b, len);
        cpu->axpby(taut_at(cpu, one.f, write), a, from[1][e], b, len);
    }
    ref->axpby_all(to[0], a, from[0], b, n, len);
    cpu->axpby_all(to[1], a, from[1], b, n, len);
    pair_same(&y, &one, "axpby_all");
    pair_free(&x), pair_free(&y), pair_free(&one);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        const int64_t len = case_no < 5 ? case_no : rng_int(0, case_no % 4 ? 300 : 100000);
        pair_shift = case_no % 5 == 1;
        axpby_case(len);
        blend_case(case_no % 3 ? 1 : rng_int(0, 7), case_no % 3 ? len : len % 2000);
        dot_case(len);
        batch_case(rng_int(0, 20), case_no % 7 ? rng_int(0, 90) : len);
        all_case((int)rng_int(1, case_no % 9 ? 12 : TAUT_MANY), rng_int(0, 90) * (case_no % 2 ? 4 : 1));
        if (case_no % 10 == 3) blend_case(5, 16384), batch_case(5, 16384); /* several that are long together */
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
