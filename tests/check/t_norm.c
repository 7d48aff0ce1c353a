/* The checker's arithmetic and its proofs of norms, against long double and Jacobi: every operation rounds up and by no
 * more than one step; a product is within its promise; 1e-9 above the norm is proved, 1e-9 below it is not, for sizes
 * around the blocks and for matrices of every kind; a computed matrix pays for its error. */
#include "check/ck.h"
#include "check/make.h"

static void check_up(double got, long double want, const char *what)
{
    CHECK((long double)got >= want, what);
    CHECK((long double)nextafter(nextafter(got, -INFINITY), -INFINITY) <= want, what);
}

static void arithmetic(void)
{
    for (case_no = 0; case_no < effort(20000); case_no++) {
        const int far = (int)rng_int(0, 60);
        const double a = ldexp(rng_unit(), (int)rng_int(-far, far)), b = ldexp(rng_unit(), (int)rng_int(-far, far));
        check_up(ck_add(a, b), (long double)a + b, "sum");
        check_up(ck_mul(a, b), (long double)a * b, "product");
        check_up(ck_div(a, b), (long double)a / b, "quotient");
        check_up(ck_sqrt(a), sqrtl(a), "root");
        check_up(-ck_sub_down(a, b), (long double)b - a, "difference");
    }
    CHECK(ck_add(0.5, 0.25) == 0.75 && ck_mul(3, 0.5) == 1.5 && ck_mul(0, 7) == 0 && ck_sqrt(0) == 0,
          "exact stays exact");
    CHECK(ck_mul(0, INFINITY) == INFINITY && ck_add(INFINITY, -INFINITY) == INFINITY && ck_sqrt(NAN) == INFINITY,
          "no bound");
    CHECK(ck_mul(0x1p-600, 0x1p-600) > 0 && ck_div(1, 0) == INFINITY && ck_div(0, 0) == INFINITY, "edges");
    CHECK(ck_mul(1e200, 1e200) == INFINITY && ck_add(1e308, 1e308) == INFINITY, "overflow");
}

static void fill_kind(float *w, int64_t rows, int64_t cols, int kind)
{
    static const float sizes[] = { 1, 1e-30f, 1e30f };
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            const double x = kind == 0   ? rng_pm()
                             : kind == 1 ? (i % cols == j)                               /* equal singular values */
                             : kind == 2 ? (double)(1 + i % 3) * (double)(1 + j % 5) / 8 /* rank one */
                             : kind == 3 ? rng_pm() * pow(0.5, (double)j)                /* graded */
                             : kind == 4 ? (j < 2 ? 0.1 : rng_pm() * 1e-6)               /* two equal columns on top */
                                         : 0;
            w[i * cols + j] = (float)(x * (double)sizes[rng_state % 3]);
        }
}

static double proved(ck *c, ck_view w, double err, double mu)
{
    ck_gram *g = ck_gram_new(c, w.cols);
    ck_gram_add(c, &g, (const double[]){ 1 }, 1, w, err);
    return ck_gram_norm(c, g, mu);
}

static void norms(ck *c)
{
    static const int64_t sizes[] = { 1, 2, 7, 8, 9, 31, 63, 64, 65, 130 };
    for (case_no = 0; case_no < effort(120); case_no++) {
        const int64_t cols = sizes[case_no % 10], rows = cols + rng_int(0, 3) * 40;
        float *w = calloc((size_t)(rows * cols), sizeof *w);
        double *d = doubles(rows * cols);
        fill_kind(w, rows, cols, case_no / 10 % 6);
        double most = 0;
        for (int64_t i = 0; i < rows * cols; i++) most = fabs((double)w[i]) > most ? fabs((double)w[i]) : most;
        const double unit = most > 0 ? most : 1; /* Jacobi squares: keep it from under- and overflow */
        for (int64_t i = 0; i < rows * cols; i++) d[i] = (double)w[i] / unit;
        const double norm2 = spectral(d, rows, cols) * unit;
        const ck_view v = { w, NULL, rows, cols, cols, 1 };
        CHECK_LE(proved(c, v, 0, norm2 * (1 + 1e-9)), norm2 * (1 + 1e-9), "just above");
        CHECK_LE(proved(c, ck_turn(ck_turn(v)), 0, INFINITY), INFINITY, "anything is below infinity");
        if (norm2 > 0) {
            const double less = proved(c, v, 0, norm2 * (1 - 1e-9)), with = proved(c, v, 0.5 * norm2, norm2 * 1.4999);
            CHECK(less > norm2 * (1 - 1e-9), "just below");
            CHECK_LE(norm2 * (1 - 1e-12), less, "what can be proved instead is true");
            CHECK(with > norm2 * 1.4999, "the error of a computed matrix is paid for");
            CHECK_LE(proved(c, v, 0.5 * norm2, norm2 * 1.5001), norm2 * 1.5001, "and not more than that");
        }
        w[rng_int(0, rows * cols - 1)] = rng_int(0, 1) ? NAN : INFINITY;
        CHECK(proved(c, v, 0, fmax(norm2, 1) * 1e9) == INFINITY, "NaN and infinity have no norm");
        ck_give_back(c, NULL);
        free(w), free(d);
    }
}

static void products(ck *c)
{
    for (case_no = 0; case_no < effort(40); case_no++) {
        const int64_t k = rng_int(1, 200), m = rng_int(1, 20), n = rng_int(1, 20);
        double *a = doubles(k * m), *b = doubles(k * n), *p = doubles(m * n), off = 0, worst = 0;
        fill(a, k * m), fill(b, k * n);
        const double gamma = ck_product(c, p, ck_of(a, k, m), ck_of(b, k, n));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                long double sum = 0;
                for (int64_t l = 0; l < k; l++) sum += (long double)a[l * m + i] * b[l * n + j];
                off += (double)((p[i * n + j] - sum) * (p[i * n + j] - sum));
            }
        worst = gamma * norm(a, k * m) * norm(b, k * n);
        CHECK_LE(sqrt(off), worst, "a product is within its promise");
        CHECK_LE(norm(a, k * m), ck_length(ck_of(a, k, m)), "length");
        ck_give_back(c, NULL);
        free(a), free(b), free(p);
    }
    CHECK(ck_length(ck_of((const double[]){ 1e-200, 0 }, 1, 2)) >= 1e-200, "squares that underflow");
    CHECK(ck_length(ck_of((const double[]){ 0, 0 }, 1, 2)) == 0, "zero");
}

int main(void)
{
    static ck c;
    taut_checked out = { 0 };
    test_begin();
    arithmetic();
    c.out = &out;
    if (setjmp(c.end)) return test_end("check norm", "%s", "it gave up");
    norms(&c);
    products(&c);
    return test_end("check norm", "sizes 1 to 130, six kinds of matrices");
}
