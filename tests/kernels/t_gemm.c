/* gemm: cpu against ref entry by entry, ref against a three-line product, all transposes, thin and empty. */
#include "base/alloc.h"
#include "kernels/pair.h"

typedef struct {
    int64_t m, n, k;
    bool ta, tb;
    double alpha, beta;
} shape;

/* A copy, row by row, of a matrix that is stored so or by columns.  The caller frees. */
static double *by_rows(const double *x, bool columns, int64_t rows, int64_t cols)
{
    double *y = doubles(rows * cols);
    for (int64_t i = 0; i < rows * cols; i++) y[i] = columns ? x[i % cols * rows + i / cols] : x[i];
    return y;
}

static void gemm_case(shape s)
{
    pair a = pair_new(s.m * s.k, 1), b = pair_new(s.k * s.n, 1), c = pair_new(s.m * s.n, 1), c0 = pair_copy(&c);
    double *want = doubles(c.len), *tol = doubles(c.len);
    double *rows = by_rows(a.d, s.ta, s.m, s.k), *cols = by_rows(b.d, !s.tb, s.n, s.k);
    for (int64_t i = 0; i < s.m; i++)
        for (int64_t j = 0; j < s.n; j++) {
            double sum = 0, size = 0;
            for (int64_t l = 0; l < s.k; l++) {
                const double x = rows[i * s.k + l] * cols[j * s.k + l];
                sum += x;
                size += fabs(x);
            }
            want[i * s.n + j] = s.alpha * sum + s.beta * c.d[i * s.n + j];
            tol[i * s.n + j] = fabs(s.alpha) * size + fabs(s.beta * c.d[i * s.n + j]);
        }
    ref->gemm(R(&c), R(&a), R(&b), s.m, s.n, s.k, s.ta, s.tb, s.alpha, s.beta);
    cpu->gemm(c.f, a.f, b.f, s.m, s.n, s.k, s.ta, s.tb, s.alpha, s.beta);
    for (int64_t i = 0; i < c.len; i++) {
        CHECK_NEAR(c.d[i], want[i], ((double)s.k + 4) * 0x1p-52 * tol[i], "ref is the product");
        tol[i] = promise_product(promised, s.k) * tol[i] + promise_product_result(promised) * fabs(want[i]);
    }
    pair_near(&c, tol, 0, 0, "gemm");
    SAME_BITS(c, (memcpy(c.d, c0.d, (size_t)c.len * sizeof(double)), pair_sync(&c),
                  ref->gemm(R(&c), R(&a), R(&b), s.m, s.n, s.k, s.ta, s.tb, s.alpha, s.beta),
                  cpu->gemm(c.f, a.f, b.f, s.m, s.n, s.k, s.ta, s.tb, s.alpha, s.beta)));
    pair_free(&a);
    pair_free(&b);
    pair_free(&c);
    pair_free(&c0);
    free(want), free(tol);
    free(rows), free(cols);
}

/* A factor that is a number of the table's own, 1/x: the same promise of alpha / x. */
static void by_case(shape s)
{
    pair a = pair_new(s.m * s.k, 1), b = pair_new(s.k * s.n, 1), c = pair_new(s.m * s.n, 1), x = pair_new(1, 1);
    pair size_a = pair_bits(&a), size_b = pair_bits(&b), mass = pair_bits(&c);
    taut_sum *by[] = { table_sums(ref, 1, 0), table_sums(cpu, 1, 0) };
    double *tol = doubles(c.len), alpha = s.alpha;
    for (int64_t i = 0; i < a.len; i++) size_a.d[i] = fabs(a.d[i]);
    for (int64_t i = 0; i < b.len; i++) size_b.d[i] = fabs(b.d[i]);
    for (int64_t i = 0; i < c.len; i++) mass.d[i] = fabs(c.d[i]);
    ref->sum_of(by[0], R(&x), 1), cpu->sum_of(by[1], x.f, 1);
    ref->sum_op(by[0], TAUT_SUM_DIV, 1, NULL, by[0], 1), cpu->sum_op(by[1], TAUT_SUM_DIV, 1, NULL, by[1], 1);
    ref->gemm_by(R(&c), R(&a), R(&b), s.m, s.n, s.k, s.ta, s.tb, (taut_factor){ alpha, by[0] }, s.beta);
    cpu->gemm_by(c.f, a.f, b.f, s.m, s.n, s.k, s.ta, s.tb, (taut_factor){ alpha, by[1] }, s.beta);
    ref->gemm(R(&mass), R(&size_a), R(&size_b), s.m, s.n, s.k, s.ta, s.tb, fabs(alpha / x.d[0]), fabs(s.beta));
    for (int64_t i = 0; i < c.len; i++)
        tol[i] = promise_product(promised, s.k) * mass.d[i] + promise_product_result(promised) * fabs(c.d[i]);
    pair_near(&c, tol, 0, 0, "gemm_by");
    pair_free(&a), pair_free(&b), pair_free(&c), pair_free(&x);
    pair_free(&size_a), pair_free(&size_b), pair_free(&mass);
    ref->release(by[0]), cpu->release(by[1]);
    free(tol);
}

/* Several products of their own matrices: ref's are those of gemm, bit by bit. */
static void each_case(shape s, int64_t count, bool apart)
{
    const int64_t mk = s.m * s.k, kn = s.k * s.n, mn = s.m * s.n;
    pair a = pair_new(count * mk, 1), b = pair_new(count * kn, 1), c = pair_new(count * mn, 1), one = pair_copy(&c);
    pair p = pair_copy(&c);
    pair size_a = pair_bits(&a), size_b = pair_bits(&b), mass = pair_new(c.len, 0);
    double *tol = doubles(c.len);
    for (int64_t i = 0; i < a.len; i++) size_a.d[i] = fabs(a.d[i]);
    for (int64_t i = 0; i < b.len; i++) size_b.d[i] = fabs(b.d[i]);
    for (int64_t i = 0; i < c.len; i++) mass.d[i] = fabs(c.d[i]);
    ref->gemm_each(R(&mass), R(&mass), R(&size_a), R(&size_b), count, s.m, s.n, s.k, s.ta, s.tb, fabs(s.alpha),
                   fabs(s.beta));
    for (int64_t i = 0; i < c.len; i++) tol[i] = promise_product(promised, s.k) * mass.d[i];
    for (int64_t i = 0; apart && i < c.len; i++) c.d[i] = NAN;
    if (apart) pair_sync(&c);
    ref->gemm_each(R(&c), R(apart ? &p : &c), R(&a), R(&b), count, s.m, s.n, s.k, s.ta, s.tb, s.alpha, s.beta);
    cpu->gemm_each(c.f, apart ? p.f : c.f, a.f, b.f, count, s.m, s.n, s.k, s.ta, s.tb, s.alpha, s.beta);
    for (int64_t i = 0; i < c.len; i++) tol[i] += promise_product_result(promised) * fabs(c.d[i]);
    for (int64_t i = 0; i < count; i++)
        ref->gemm((taut_real *)(one.d + i * mn), (taut_real *)(a.d + i * mk), (taut_real *)(b.d + i * kn), s.m, s.n,
                  s.k, s.ta, s.tb, s.alpha, s.beta);
    CHECK(memcmp(one.d, c.d, (size_t)c.len * sizeof *c.d) == 0, "each product is gemm's");
    pair_near(&c, tol, 0, 0, "gemm_each");
    pair_free(&a), pair_free(&b), pair_free(&c), pair_free(&one), pair_free(&p);
    pair_free(&size_a), pair_free(&size_b), pair_free(&mass);
    free(tol);
}

/* No product depends on how many there are. */
static void any_count(int64_t m, int64_t n, int64_t k, int64_t count)
{
    const int64_t mk = m * k, kn = k * n, mn = m * n;
    pair a = pair_new(count * mk, 1), b = pair_new(count * kn, 1), all = pair_new(count * mn, 1), one = pair_copy(&all);
    const bool ta = rng_int(0, 1), tb = rng_int(0, 1);
    cpu->gemm_each(all.f, all.f, a.f, b.f, count, m, n, k, ta, tb, 1, 0.5);
    for (int64_t i = 0, some; i < count; i += some) {
        some = 1 + (i > 0 && i + 1 < count);
        taut_real *c = taut_at(cpu, one.f, i * mn);
        cpu->gemm_each(c, c, taut_at(cpu, a.f, i * mk), taut_at(cpu, b.f, i * kn), some, m, n, k, ta, tb, 1, 0.5);
    }
    cpu->get(all.d, all.f, all.len), cpu->get(one.d, one.f, one.len);
    CHECK(memcmp(all.d, one.d, (size_t)all.len * sizeof *all.d) == 0, "the same bits, however many");
    pair_free(&a), pair_free(&b), pair_free(&all), pair_free(&one);
}

/* Ref's is gemm and then the bias, bit by bit; cpu's is near it, whether its bias begins at a round place or not. */
static void affine_case(int64_t rows, int64_t out, int64_t in, double alpha, bool biased)
{
    const int64_t odd = rng_int(0, 1);
    pair x = pair_new(rows * in, 1), w = pair_new(out * in, 1), b = pair_new(out + 1, 1), y = pair_new(rows * out, 1);
    pair want = pair_copy(&y);
    double *tol = doubles(y.len);
    for (int64_t i = 0; i < y.len; i++) {
        double size = 0;
        for (int64_t l = 0; l < in; l++) size += fabs(x.d[i / out * in + l] * w.d[i % out * in + l]);
        tol[i] = promise_product(promised, in) * (fabs(alpha) * size + (biased ? fabs(b.d[odd + i % out]) : 0));
    }
    ref->gemm(R(&want), R(&x), R(&w), rows, out, in, false, true, alpha, 0);
    if (biased) ref->add_rows(R(&want), R(&want), (taut_real *)(b.d + odd), rows, out, 1);
    ref->affine(R(&y), R(&x), R(&w), biased ? (taut_real *)(b.d + odd) : NULL, rows, out, in, alpha);
    cpu->affine(y.f, x.f, w.f, biased ? taut_at(cpu, b.f, odd) : NULL, rows, out, in, alpha);
    CHECK(memcmp(want.d, y.d, (size_t)y.len * sizeof *y.d) == 0, "affine is a product and a bias");
    pair_near(&y, tol, 0, promise_product_result(promised), "affine");
    pair_free(&x), pair_free(&w), pair_free(&b), pair_free(&y), pair_free(&want);
    free(tol);
}

static void poison(void)
{
    pair a = pair_new(6, 1), b = pair_new(6, 1), c = pair_new(4, 1);
    for (int i = 0; i < 4; i++) c.d[i] = NAN;
    pair_sync(&c);
    ref->gemm(R(&c), R(&a), R(&b), 2, 2, 3, false, false, 1, 0);
    cpu->gemm(c.f, a.f, b.f, 2, 2, 3, false, false, 1, 0);
    CHECK(!isnan(c.d[0]), "beta = 0 does not read C");
    pair_near(&c, NULL, 10 * UNIT * 3, 0, "beta = 0");
    a.d[1] = NAN;
    pair_sync(&a);
    ref->gemm(R(&c), R(&a), R(&b), 2, 2, 3, false, false, 1, 0);
    cpu->gemm(c.f, a.f, b.f, 2, 2, 3, false, false, 1, 0);
    CHECK(isnan(c.d[0]) && isnan(c.d[1]) && !isnan(c.d[2]), "NaN spoils its row");
    pair_near(&c, NULL, 10 * UNIT * 3, 0, "NaN spoils its row");
    pair_free(&a);
    pair_free(&b);
    pair_free(&c);
}

/* alpha = 0 does not read A and B, beta = 0 does not read C, however small, thin or large the product: NaN there is gone. */
static void zeros(void)
{
    static const int64_t sizes[] = { 1, 2, 3, 8, 17, 64, 130 };
    for (int i = 0; i < 7 * 7 * 7 * 4; i++, case_no++) {
        const int64_t m = sizes[i % 7], n = sizes[i / 7 % 7], k = sizes[i / 49 % 7];
        const bool ta = i / 343 % 2, tb = i / 686 % 2;
        pair a = pair_new(m * k, 1), b = pair_new(k * n, 1), c = pair_new(m * n, 1), bad = pair_new(m * n, 1);
        double *tol = doubles(m * n);
        for (int64_t j = 0; j < m * n; j++)
            tol[j] = promise_product(promised, k) * (double)k + UNIT * (double)(2 * k), bad.d[j] = NAN;
        pair_sync(&bad);
        ref->gemm(R(&bad), R(&a), R(&b), m, n, k, ta, tb, 1, 0);
        cpu->gemm(bad.f, a.f, b.f, m, n, k, ta, tb, 1, 0);
        CHECK(!isnan(bad.d[0]) && !isnan(bad.d[m * n - 1]), "beta = 0 does not read C");
        pair_near(&bad, tol, 0, 0, "beta = 0");
        a.d[rng_int(0, m * k - 1)] = i % 2 ? NAN : INFINITY;
        b.d[rng_int(0, k * n - 1)] = i % 2 ? INFINITY : NAN;
        pair_sync(&a), pair_sync(&b);
        for (int with = 0; with < 2; with++) {
            ref->gemm(R(&c), R(&a), R(&b), m, n, k, ta, tb, 0, with ? 0 : -0.5);
            cpu->gemm(c.f, a.f, b.f, m, n, k, ta, tb, 0, with ? 0 : -0.5);
            for (int64_t j = 0; j < m * n; j++) CHECK(!isnan(c.d[j]), "alpha = 0 does not read A and B");
            pair_near(&c, NULL, 0, 2 * UNIT, "alpha = 0");
        }
        pair_free(&a), pair_free(&b), pair_free(&c), pair_free(&bad);
        free(tol);
    }
}

/* How far a product of n x n matrices may be off whose factors are rounded: by `coarse` of |A| |B| more than others. */
static double *coarse_room(const pair *a, const pair *b, int64_t n, bool ta, double coarse)
{
    pair size_a = pair_bits(a), size_b = pair_bits(b), mass = pair_new(n * n, 0);
    double *tol = doubles(n * n);
    for (int64_t i = 0; i < n * n; i++) size_a.d[i] = fabs(a->d[i]), size_b.d[i] = fabs(b->d[i]);
    ref->gemm(R(&mass), R(&size_a), R(&size_b), n, n, n, ta, false, 1, 0);
    for (int64_t i = 0; i < n * n; i++)
        tol[i] = (coarse + promise_product(promised, n) + promise_product_result(promised)) * mass.d[i];
    pair_free(&size_a), pair_free(&size_b), pair_free(&mass);
    return tol;
}

/* Products of one left factor with two matrices, one right after the other; or somebody changes it in between: another
 * kernel, the host, a product. */
static void coarse(taut_products how, double coarse)
{
    enum { N = 48 };
    if (cpu->products(how)) return; /* a host's table */
    for (int i = 0; i < 24; i++, case_no++) {
        const bool ta = rng_int(0, 1), again = i % 4 != 3;
        pair a = pair_new(N * N, 1), b = pair_new(N * N, 1), c = pair_new(N * N, 1), d = pair_new(N * N, 1);
        double *first = coarse_room(&a, &b, N, ta, coarse);
        ref->gemm(R(&c), R(&a), R(&b), N, N, N, ta, false, 1, 0);
        cpu->gemm(c.f, a.f, b.f, N, N, N, ta, false, 1, 0);
        if (i % 4 == 1) ref->axpby(R(&a), 0.5, R(&b), -0.5, a.len), cpu->axpby(a.f, 0.5, b.f, -0.5, a.len);
        if (i % 4 == 2) memcpy(a.d, b.d, sizeof(double) * N * N), pair_sync(&a);
        if (!again) {
            ref->gemm(R(&a), R(&d), R(&b), N, N, N, false, false, 0x1p-2, 0);
            cpu->gemm(a.f, d.f, b.f, N, N, N, false, false, 0x1p-2, 0);
        }
        double *second = coarse_room(&a, &b, N, !ta, coarse + 4 * UNIT); /* axpby rounds too */
        ref->gemm(R(&d), R(&a), R(&b), N, N, N, !ta, false, 1, 0);
        cpu->gemm(d.f, a.f, b.f, N, N, N, !ta, false, 1, 0);
        pair_near(&c, first, 0, 0, "coarse factors");
        pair_near(&d, again ? second : NULL, again ? 0 : 0.25, 0, "the left factor again"); /* entries are about 3 */
        pair_free(&a), pair_free(&b), pair_free(&c), pair_free(&d);
        free(first), free(second);
    }
    CHECK(cpu->products(TAUT_PRODUCTS_FP32) == TAUT_OK, "and back");
}

/* Without memory to pack a matrix once, every piece of a product packs its own: the same bits. */
static void poor(int64_t m, int64_t n, int64_t k)
{
    if (strncmp(cpu->name, "cpu", 3) != 0) return;
    pair a = pair_new(m * k, 1), b = pair_new(k * n, 1), rich = pair_new(m * n, 1), poor = pair_copy(&rich);
    cpu->gemm(rich.f, a.f, b.f, m, n, k, false, true, 1, 0);
    taut_alloc_fail_at(1);
    cpu->gemm(poor.f, a.f, b.f, m, n, k, false, true, 1, 0);
    taut_alloc_fail_at(0);
    cpu->get(rich.d, rich.f, rich.len), cpu->get(poor.d, poor.f, poor.len);
    CHECK(memcmp(rich.d, poor.d, (size_t)rich.len * sizeof *rich.d) == 0, "the same bits without memory");
    pair_free(&a), pair_free(&b), pair_free(&rich), pair_free(&poor);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(120); case_no++) {
        shape s = { rng_int(0, 40),
                    rng_int(0, 40),
                    rng_int(0, 40),
                    rng_int(0, 1),
                    rng_int(0, 1),
                    rng_pm(),
                    rng_int(0, 1) ? 0 : rng_pm() };
        if (case_no % 7 == 1) s.m = 1;
        if (case_no % 7 == 2) s.n = 1;
        if (case_no % 7 == 3) s.k = 1;
        gemm_case(s);
        by_case(s);
        each_case(s, rng_int(0, 4), rng_int(0, 1));
        affine_case(s.m, s.n, s.k, case_no % 5 ? s.alpha : 0, rng_int(0, 1));
    }
    for (int i = 0; i < 8; i++, case_no++) affine_case(128 << i % 3, 64 << i / 3, 96, 1, i % 4);
    affine_case(300, 75, 600, 1, true); /* more rows and a longer k than a tile's, and columns left over */
    const int64_t large[][3] = { { 300, 65, 64 }, { 129, 257, 100 }, { 64, 96, 500 },   { 1, 700, 300 },
                                 { 900, 1, 200 }, { 279, 41, 530 },  { 270, 700, 1100 } };
    for (int i = 0; i < 28; i++, case_no++)
        gemm_case((shape){ large[i / 4][0], large[i / 4][1], large[i / 4][2], i % 2, i / 2 % 2, 1, i / 4 % 2 });
    for (int i = 0; i < 12; i++, case_no++)
        any_count(rng_int(1, 2) * 65, rng_int(1, 130), rng_int(60, 130), rng_int(2, 6));
    poison();
    zeros();
    coarse(TAUT_PRODUCTS_TF32, 0x1p-9);
    coarse(TAUT_PRODUCTS_BF16, 1.01 * 0x1p-7);
    poor(600, 70, 300), poor(2161, 257, 64), poor(385, 577, 64); /* the last piece has one row, or one column */
    return test_end("gemm", "worst error / promised = %.3f", worst);
}
