/* up_norm and up_norm_gram against rigorous lower bounds (oracle.h): never below, and close.  The families
 * are those that break naive certificates: graded, subnormal, huge, cancelling, rank one, repeated columns,
 * and a matrix built so that Lanczos starts blind to its largest singular value. */
#include "base/float32.h"
#include "bound/norm.h"

#include <float.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "oracle.h"

static double worst; /* largest found/bound, to be at most 1 */
static double loosest;

static double gauss(void) { return sqrt(-2 * log(1 - rng_unit())) * cos(6.283185307179586 * rng_unit()); }

enum { FAMILY_COUNT = 14 };
static double entry(int family, int64_t i, int64_t j, int64_t rows, const double *a, const double *b)
{
    switch (family) {
    case 0:
        return taut_float32(gauss());
    case 1:
        return gauss() * pow(10, 30 * rng_pm()); /* wild */
    case 2:
        return gauss() * pow(10, 30 - 60 * (double)i / (double)rows); /* graded rows */
    case 3:
        return (double)rng_int(-9, 9) * DBL_TRUE_MIN; /* subnormal double */
    case 4:
        return taut_float32(rng_pm() * 3.4e38);
    case 5:
        return __builtin_popcountll((uint64_t)(i & j)) % 2 ? -1 : 1; /* Hadamard */
    case 6:
        return a[i] * b[j]; /* rank one */
    case 7:
        return a[i] * (1 + (double)(j % 2)); /* repeated columns */
    case 8:
        return (double)0.1f;
    case 9:
        return rng_int(0, 4) ? 0 : gauss(); /* sparse */
    case 10:
        return 1.0 / (double)(i + j + 1); /* Hilbert */
    case 11:
        return rng_pm() * 1e300;
    case 12:
        return gauss() * 1e-160;
    default:
        return (double)(i == j) + 1e-9 * gauss(); /* clustered */
    }
}

static void make(double *w, int family, int64_t rows, int64_t cols)
{
    double a[64], b[64];
    for (int k = 0; k < 64; k++) a[k] = taut_float32(gauss()), b[k] = taut_float32(gauss());
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) w[i * cols + j] = entry(family, i, j, rows, a, b);
}

/* sqrt(sum of squares), both ends, against Arb. */
static void check_frobenius(const double *w, int64_t len)
{
    arb_t sum, t;
    arb_init(sum), arb_init(t);
    for (int64_t i = 0; i < len; i++) arb_set_d(t, w[i]), arb_addmul(sum, t, t, ORACLE_BITS);
    arb_sqrtpos(sum, sum, 256);
    const double up = up_norm_frobenius(w, len).v, lo = lo_norm_frobenius(w, len).v;
    CHECK_LE(arb_low(sum), up, "the Frobenius norm rounds up");
    CHECK_LE(lo, arb_high(sum), "the Frobenius norm rounds down");
    CHECK_LE(up, lo * (1 + 1e-13) + 4 * sqrt((double)len) * DBL_TRUE_MIN, "the Frobenius norm is tight");
    arb_clear(sum), arb_clear(t);
}

/* Long columns of one number: the sums' roundings all go one way, and the norm is known exactly. */
static void check_long(int64_t rows)
{
    double *w = doubles(3 * rows), c = taut_float32(0.5 + rng_unit());
    arb_t norm, t;
    arb_init(norm), arb_init(t);
    for (int64_t i = 0; i < 3 * rows; i++) w[i] = i % 3 == 2 ? 0 : c;
    arb_set_si(norm, 2 * rows), arb_sqrt(norm, norm, 256), arb_set_d(t, c), arb_mul(norm, norm, t, 256);
    CHECK_LE(arb_low(norm), up_norm(w, rows, 3).v, "a long matrix");
    CHECK_LE(arb_low(norm), up_norm_gram(w, rows, 3).v, "a long matrix");
    CHECK_LE(arb_low(norm), up_norm_frobenius(w, 3 * rows).v, "a long vector");
    CHECK_LE(lo_norm_frobenius(w, 3 * rows).v, arb_high(norm), "a long vector from below");
    arb_clear(norm), arb_clear(t);
    free(w);
}

static void check_one(const double *w, int64_t rows, int64_t cols)
{
    const double lower = oracle_norm(w, rows, cols), up = up_norm(w, rows, cols).v;
    const double gram = up_norm_gram(w, rows, cols).v, est = est_norm(w, rows, cols);
    const double slack = 4 * sqrt((double)(rows * cols)) * DBL_TRUE_MIN;
    CHECK_LE(lower, up, "up_norm is a bound");
    CHECK_LE(lower, gram, "up_norm_gram is a bound");
    check_frobenius(w, rows * cols);
    CHECK_LE(up, lower * (1 + 1e-8) + slack, "up_norm is close");
    CHECK_LE(gram, lower * (1 + 1e-4) + slack, "up_norm_gram is close");
    CHECK_NEAR(est, lower, 1e-6 * lower + slack, "est_norm is close"); /* usual, not promised */
    if (up > 0) worst = fmax(worst, lower / up);
    if (lower > 1e-300) loosest = fmax(loosest, up / lower - 1);
}

static void check_vectors(void)
{
    const double t6[] = { 1, 2, 3, 4, 5, 6 };
    double hilbert[16], tenth[64], zero[6] = { 0 }, one[] = { -3.5 }, row[] = { 3, 4 };
    make(hilbert, 10, 4, 4);
    make(tenth, 8, 8, 8);
    CHECK_LE(9.5255180915651082153, up_norm(t6, 3, 2).v, "T6 3x2");
    CHECK_LE(up_norm(t6, 3, 2).v, 9.5255180915651082153 * (1 + 1e-13), "T6 3x2 tight");
    CHECK_LE(1.5002142800592428232, up_norm(hilbert, 4, 4).v, "T6 Hilbert");
    CHECK_LE(up_norm(hilbert, 4, 4).v, 1.5002142800592428232 * (1 + 1e-13), "T6 Hilbert tight");
    CHECK_LE(8 * (double)0.1f, up_norm(tenth, 8, 8).v, "T6 all 0.1f");
    CHECK_LE(8 * (double)0.1f, up_norm_gram(tenth, 8, 8).v, "T6 all 0.1f");
    CHECK(up_norm(zero, 2, 3).v == 0 && up_norm_gram(zero, 2, 3).v == 0, "the zero matrix");
    CHECK(up_norm(zero, 0, 3).v == 0 && up_norm(zero, 3, 0).v == 0 && est_norm(zero, 2, 3) == 0, "no matrix");
    CHECK(up_norm(one, 1, 1).v == 3.5, "1 x 1 is exact");
    CHECK(up_norm(row, 1, 2).v >= 5 && up_norm(row, 2, 1).v < 5 + 1e-14, "a vector");
    double bad[] = { 1, 2, NAN, 4 }, huge[] = { 1, INFINITY, 3, 4 };
    CHECK(up_norm(bad, 2, 2).v == INFINITY && up_norm_gram(bad, 2, 2).v == INFINITY, "NaN has no bound");
    CHECK(up_norm(huge, 2, 2).v == INFINITY && up_norm_frobenius(huge, 4).v == INFINITY, "nor has infinity");
    CHECK(up_norm(bad, 1, 4).v == INFINITY && isnan(est_norm(bad, 2, 2)), "NaN in a vector");
    CHECK(lo_norm_frobenius(bad, 4).v == 0, "NaN from below");
}

/* Every addition loses almost half a unit: 1 + tiny^2 rounds to 1. */
static void check_lossy(void)
{
    double w[129] = { 1 };
    for (int i = 1; i < 129; i++) w[i] = 0.7 * 0x1p-26;
    for (int64_t len = 1; len < 130; len++) check_frobenius(w, len);
    double *c = doubles(300 * 300);
    for (case_no = 0; case_no < 6; case_no++) {
        const double x = taut_float32(0.5 + rng_unit());
        for (int i = 0; i < 300 * 300; i++) c[i] = x;
        CHECK_LE(300 * x, up_norm(c, 300, 300).v, "a constant matrix");
        CHECK_LE(300 * x, up_norm_gram(c, 300, 300).v, "a constant matrix");
    }
    free(c);
}

/* Ones, and a larger eigenvalue along a direction that Lanczos's start vector does not contain. */
static void check_blind(int64_t n)
{
    double *w = doubles(n * n), *start = doubles(n), *u = doubles(n);
    for (int64_t i = 0; i < n; i++) start[i] = taut_rng_unit(1, (uint64_t)i) - 0.5;
    fill(u, n);
    const double along = dot(u, start, n) / dot(start, start, n), size = 1 + 3 * rng_unit();
    for (int64_t i = 0; i < n; i++) u[i] -= along * start[i];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) w[i * n + j] = (double)(i == j) + size * u[i] * u[j] / dot(u, u, n);
    const double lower = oracle_norm(w, n, n), up = up_norm(w, n, n).v;
    CHECK_LE(lower, up, "a poor estimate still gives a bound");
    CHECK_LE(up, lower * (1 + 1e-8), "and bisection makes it close");
    CHECK_LE(lower, up_norm_gram(w, n, n).v, "Gram iteration needs no start");
    free(w), free(start), free(u);
}

/* Whichever allocation fails, the answer is +inf or a bound. */
static void check_memory(void)
{
    double w[20];
    fill(w, 20);
    const double lower = oracle_norm(w, 5, 4);
    for (int n = 1; n < 8; n++) {
        taut_alloc_fail_at(n);
        CHECK_LE(lower, up_norm(w, 5, 4).v, "no memory");
        taut_alloc_fail_at(n);
        CHECK_LE(lower, up_norm_gram(w, 5, 4).v, "no memory");
        taut_alloc_fail_at(0);
    }
    taut_alloc_fail_at(1);
    CHECK(up_norm(w, 5, 4).v == INFINITY, "no memory is +inf");
    taut_alloc_fail_at(0);
}

static void check_large(int64_t rows, int64_t cols)
{
    double *w = doubles(rows * cols);
    for (int64_t i = 0; i < rows * cols; i++) w[i] = taut_float32(0.02 * gauss());
    const double est = est_norm(w, rows, cols), up = up_norm(w, rows, cols).v;
    CHECK_LE(est * (1 - 1e-12), up, "a large matrix");
    CHECK_LE(up, est * (1 + 1e-6), "is bounded to 1e-6");
    CHECK_LE(est * (1 - 1e-12), up_norm_gram(w, rows, cols).v, "a large matrix by Gram iteration");
    free(w);
}

int main(void)
{
    test_begin();
    double *w = doubles(64 * 64);
    const int cases = effort(3500);
    for (case_no = 0; case_no < cases; case_no++) {
        const bool big = case_no % 140 == 0;
        const int64_t rows = rng_int(1, big ? 32 : 8), cols = rng_int(1, big ? 24 : 7);
        make(w, case_no % FAMILY_COUNT, rows, cols);
        check_one(w, rows, cols);
    }
    for (case_no = 0; case_no < effort(20); case_no++) check_blind(rng_int(2, 12));
    for (case_no = 0; case_no < effort(20); case_no++) check_long(rng_int(10000, 60000));
    check_lossy();
    check_vectors();
    check_memory();
    check_large(512, 130);
    if (effort(1) > 1) check_large(768, 3072);
    free(w);
    flint_cleanup();
    return test_end("norm", "%d matrices, worst found/bound = %.17g, loosest bound +%.1e", cases, worst, loosest);
}
