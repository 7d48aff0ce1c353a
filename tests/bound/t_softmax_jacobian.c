/* The softmax Jacobian's largest eigenvalue: known rows, peaked rows, ties, order, and random rows against
 * the eigenvalues that Jacobi finds; the norm of matrices without negative entries. */
#include "bound/softmax_jacobian.h"

#include "bound/norm.h"
#include "bound/oracle.h"
#include "bound/positive.h"

static void known(const double *p, int64_t n, double s1, double g1)
{
    const taut_softmax_slope s = softmax_slope(p, n);
    CHECK_LE(s.lo.v, s1 * (1 + 1e-15), "known row from below");
    CHECK_LE(s1, s.up.v * (1 + 1e-15), "known row from above");
    CHECK_LE(s.up.v - s.lo.v, 1e-14 * s1, "the two sides meet");
    CHECK_NEAR(up_softmax_g(p, n, 1).v, g1, 1e-15, "g_1");
}

static void vectors(void)
{
    const double a[] = { .5, .3, .2 }, b[] = { .7, .2, .06, .04 }, c[] = { .9, .05, .03, .02 },
                 d[] = { .25, .25, .25, .25 }, e[] = { .5, .5, 0, 0 }, one[] = { 0, 1, 0 };
    known(a, 3, .388102496759066544, .4);
    known(b, 4, .33036906409879126, .35);
    known(c, 4, .12575602225726173, .135);
    known(d, 4, .25, .25);
    known(e, 4, .5, .5);
    CHECK(softmax_slope(one, 3).up.v == 0 && softmax_slope(one + 1, 1).up.v == 0 && softmax_slope(NULL, 0).up.v == 0,
          "one-hot, one entry, none");
    const double bad[] = { .5, NAN, .5 }, minus[] = { 1.5, -.5 };
    CHECK(softmax_slope(bad, 3).up.v == INFINITY && softmax_slope(minus, 2).up.v == INFINITY,
          "no probabilities: no bound");
}

/* 1 - x_1 is lost in double here; s_1 = 2 * 1e-30 and a bit, from M's 2 x 2 and 3 x 3 limits. */
static void peaked(void)
{
    const double p[] = { 1, 1e-30 }, q[] = { 1, 1e-30, 1e-30 };
    CHECK_NEAR(softmax_slope(p, 2).up.v, 2e-30, 1e-44, "two entries");
    CHECK_NEAR(softmax_slope(q, 3).up.v, 3e-30, 1e-44, "three entries");
    CHECK_LE(softmax_slope(q, 3).up.v, up_softmax_g(q, 3, 1).v, "s_1 <= g_1");
}

static double row(double *p, int64_t n)
{
    const double hot = pow(10, 1.5 * rng_pm());
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += p[i] = exp(hot * 5 * rng_pm());
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
    if (n > 2 && rng_int(0, 3) == 0) p[1] = p[0];
    return hot;
}

static void random_rows(void)
{
    for (case_no = 0; case_no < effort(300); case_no++) {
        const int64_t n = rng_int(2, 8);
        double p[8], m[64], total = 0;
        row(p, n);
        for (int64_t i = 0; i < n; i++) total += p[i];
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) m[i * n + j] = (i == j ? p[i] / total : 0) - p[i] * p[j] / total / total;
        for (int64_t i = 0; i < n; i++) { /* the diagonal without cancellation */
            double others = 0;
            for (int64_t j = 0; j < n; j++) others += j == i ? 0 : p[j];
            m[i * n + i] = p[i] * others / total / total;
        }
        const taut_softmax_slope s = softmax_slope(p, n);
        const double exact = oracle_norm(m, n, n);
        CHECK_NEAR(s.up.v, exact, 1e-13 * exact, "s_1");
        CHECK_LE(s.lo.v, s.up.v, "lo <= up");
        CHECK_LE(s.up.v, up_softmax_g(p, n, 1).v, "s_1 <= g_1");
        for (int64_t k = 1; k < n; k++)
            CHECK_LE(up_softmax_g(p, n, k + 1).v, up_softmax_g(p, n, k).v * (1 + 1e-12), "g falls");
    }
}

static double loosest;

static void positive(void)
{
    for (case_no = 0; case_no < effort(200); case_no++) {
        const int64_t rows = rng_int(1, 7), cols = rng_int(1, 7);
        double w[49];
        for (int64_t i = 0; i < rows * cols; i++) w[i] = rng_int(0, 3) ? pow(10, 3 * rng_pm()) : 0;
        const double exact = oracle_norm(w, rows, cols), bound = up_norm_positive(w, rows, cols).v;
        CHECK_LE(exact, bound, "positive matrices");
        if (exact > 0) loosest = fmax(loosest, bound / exact);
    }
    const double minus[] = { 1, -1 }, zero[] = { 0, 0 };
    CHECK(up_norm_positive(minus, 1, 2).v == INFINITY && up_norm_positive(zero, 1, 2).v == 0, "signs and zeros");
}

int main(void)
{
    test_begin();
    vectors();
    peaked();
    random_rows();
    positive();
    return test_end("softmax", "loosest positive norm %.6f", loosest);
}
