/* The checker's arithmetic and its proofs of norms, against long double and Jacobi: every operation rounds up and by no
 * more than one step; a product is within its promise; 1e-9 above the norm is proved, 1e-9 below it is not, for sizes
 * around the blocks and for matrices of every kind; a computed matrix pays for its error. */
#include <fenv.h>

#include "base/float32.h"
#include "check/ck.h"
#include "check/make.h"

/* The processor rounds up while the checker runs: plain C gives upper bounds, and no more than one step too many. */
static void check_up(double got, long double want, const char *what)
{
    CHECK((long double)got >= want, what);
    CHECK((long double)nextafter(nextafter(got, -INFINITY), -INFINITY) <= want, what);
}

static void arithmetic(void)
{
    for (case_no = 0; case_no < effort(20000); case_no++) {
        const int far = (int)rng_int(0, 60);
        volatile double a = ldexp(rng_unit(), (int)rng_int(-far, far)), b = ldexp(rng_unit(), (int)rng_int(-far, far));
        fesetround(FE_UPWARD);
        volatile double sum = a + b, product = a * b, quotient = ck_over(a, b), root = sqrt(a), less = ck_below(a * b),
                        gap = a - b, hypot2 = ck_hypot(a, b);
        fesetround(FE_TONEAREST);
        check_up(sum, (long double)a + b, "sum");
        check_up(product, (long double)a * b, "product");
        check_up(quotient, (long double)a / b, "quotient");
        check_up(root, sqrtl(a), "root");
        check_up(gap, (long double)a - b, "difference");
        CHECK((long double)less <= (long double)a * b && less >= a * b * (1 - 1e-15), "below");
        CHECK_LE(sqrtl((long double)a * a + (long double)b * b), hypot2, "hypot");
    }
    CHECK(ck_over(1, 0) == INFINITY && ck_over(0, 0) == INFINITY && ck_over(1, -1) == INFINITY && ck_over(0, 2) == 0,
          "a divisor that is not above 0 bounds nothing");
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
            w[i * cols + j] = taut_float32(x * (double)sizes[rng_state % 3]);
        }
}

static double proved(ck *c, ck_mat w, double err, double mu)
{
    fesetround(FE_UPWARD);
    w.err = err;
    const double norm = ck_norm(c, w, mu);
    fesetround(FE_TONEAREST);
    return norm;
}

static ck_mat matrix(ck *c, const double *w, int64_t rows, int64_t cols)
{
    ck_mat m = ck_new(c, rows, cols);
    for (int64_t i = 0; i < rows * cols; i++) m.v[i / cols * m.ld + i % cols] = w[i];
    return m;
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
        for (int64_t i = 0; i < rows * cols; i++) d[i] = (double)w[i];
        const ck_mat v = matrix(c, d, rows, cols);
        CHECK_LE(proved(c, v, 0, norm2 * (1 + 1e-9)), norm2 * (1 + 1e-9), "just above");
        CHECK_LE(proved(c, ck_turn(c, v), 0, INFINITY), INFINITY, "anything is below infinity");
        if (norm2 > 0) {
            const double less = proved(c, v, 0, norm2 * (1 - 1e-9)), with = proved(c, v, 0.5 * norm2, norm2 * 1.4999);
            CHECK(less > norm2 * (1 - 1e-9), "just below");
            CHECK_LE(norm2 * (1 - 1e-12), less, "what can be proved instead is true");
            CHECK(with > norm2 * 1.4999, "the error of a computed matrix is paid for");
            CHECK_LE(proved(c, v, 0.5 * norm2, norm2 * 1.5001), norm2 * 1.5001, "and not more than that");
        }
        v.v[rng_int(0, rows - 1) * v.ld] = rng_int(0, 1) ? NAN : INFINITY;
        CHECK(!(proved(c, v, 0, fmax(norm2, 1) * 1e9) < INFINITY), "NaN and infinity have no norm");
        ck_give_back(c, NULL);
        free(w), free(d);
    }
}

/* Matrices below each other, by their squares: 1e-9 above the norm is proved, 1e-9 below it is not, errors are paid for. */
static void squares(ck *c)
{
    for (case_no = 0; case_no < effort(30); case_no++) {
        const int64_t cols = rng_int(1, 40), rows = cols + rng_int(0, 9), count = rng_int(1, 5);
        double *d = doubles(rows * cols * count), *all = doubles(rows * cols * count), by[5];
        ck_mat m[5];
        ck_square q[5];
        fill(d, rows * cols * count);
        fesetround(FE_UPWARD);
        for (int64_t k = 0; k < count; k++) {
            m[k] = matrix(c, d + k * rows * cols, rows, cols);
            by[k] = k && rng_int(0, 4) == 0 ? 0 : ldexp(1 + rng_unit(), (int)rng_int(-9, 0));
            q[k] = ck_squared(c, m[k]);
        }
        const ck_square sum = ck_square_sum(c, q, by, count);
        fesetround(FE_TONEAREST);
        for (int64_t i = 0; i < rows * cols * count; i++) all[i] = by[i / (rows * cols)] * d[i];
        const double norm2 = spectral(all, rows * count, cols);
        ck_square off = sum;
        off.g.err = norm2 / 2;
        fesetround(FE_UPWARD);
        off.length += off.g.err;
        const double more = ck_square_norm(c, sum, norm2 * (1 + 1e-9)),
                     less = ck_square_norm(c, sum, norm2 * (1 - 1e-9));
        const double with = ck_square_norm(c, off, norm2 * 1.4999), paid = ck_square_norm(c, off, norm2 * 1.5001);
        const double whole = ck_length(ck_stack(c, m, by, count));
        by[0] = 0x1p-201;
        const ck_square far = ck_square_sum(c, q, by, count);
        fesetround(FE_TONEAREST);
        CHECK_LE(more, norm2 * (1 + 1e-9), "just above");
        CHECK(less > norm2 * (1 - 1e-9), "just below");
        CHECK_LE(norm2 * (1 - 1e-12), less, "what can be proved instead is true");
        CHECK(with > norm2 * 1.4999, "the errors of the heads are paid for");
        CHECK_LE(paid, fmax(norm2 * 1.5001, whole), "and not more than that");
        CHECK_LE(fabs(sum.length - whole), 1e-12 * whole, "their length");
        CHECK(isinf(far.length) && isinf(far.g.err), "a weight out of range");
        ck_give_back(c, NULL);
        free(d), free(all);
    }
}

static void products(ck *c)
{
    for (case_no = 0; case_no < effort(40); case_no++) {
        const int64_t k = rng_int(1, 200), m = rng_int(1, 20), n = rng_int(1, 20);
        double *a = doubles(k * m), *b = doubles(k * n), off = 0;
        fill(a, k * m), fill(b, k * n);
        fesetround(FE_UPWARD);
        const ck_mat p = ck_product(c, matrix(c, a, k, m), matrix(c, b, k, n));
        const double length = ck_length(matrix(c, a, k, m));
        fesetround(FE_TONEAREST);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                long double sum = 0;
                for (int64_t l = 0; l < k; l++) sum += (long double)a[l * m + i] * b[l * n + j];
                off += (double)((p.v[i * p.ld + j] - sum) * (p.v[i * p.ld + j] - sum));
            }
        CHECK_LE(sqrt(off), p.err, "a product is within its promise");
        CHECK_LE(p.err, 1e-13 * norm(a, k * m) * norm(b, k * n), "which is not much");
        CHECK_LE(norm(a, k * m) * (1 - 1e-14), length, "length");
        ck_give_back(c, NULL);
        free(a), free(b);
    }
    CHECK(ck_length(matrix(c, (const double[]){ 1e-200, 0 }, 1, 2)) >= 1e-200, "squares that underflow");
    CHECK(ck_length(matrix(c, (const double[]){ 0, 0 }, 1, 2)) == 0, "zero");
    const ck_mat one = matrix(c, (const double[]){ 3, 4 }, 1, 2), two[] = { one, one };
    const ck_mat stack = ck_stack(c, two, (const double[]){ 1, 2 }, 2);
    CHECK(stack.rows == 2 && stack.v[stack.ld] == 6 && stack.v[stack.ld + 1] == 8 && stack.err < 1e-14, "a stack");
    CHECK(isinf(ck_stack(c, two, (const double[]){ 1, 1e300 }, 2).err), "a weight out of range");
    ck_give_back(c, NULL);
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
    squares(&c);
    products(&c);
    return test_end("check norm", "sizes 1 to 130, six kinds of matrices");
}
