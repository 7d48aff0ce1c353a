/* Every up_* result is at least the exact real result, every lo_* result at most it, and neither by much.
 * The oracle is the sign of an exact residual (fma, TwoSum), which shares no code with its subject; where
 * the residual itself could underflow, both sides are first scaled by powers of two. */
#include "bound/up.h"

#include <fenv.h>
#include <float.h>

#include "bound/scalar.h"
#include "harness.h"

static double any_double(int span) /* wide exponents, and the corners on purpose */
{
    static const double corner[] = { 0,           1,       DBL_MIN,     DBL_MAX,       DBL_TRUE_MIN, 1 - 0x1p-53,
                                     1 + 0x1p-52, 0x1p-30, 0x1.8p-1074, 3 * 0x1p-1074, 0x1p1000,     0x1p-1022 };
    if (rng_int(0, 7) == 0) return corner[rng_int(0, 11)];
    return ldexp(0.5 + rng_unit() / 2, (int)rng_int(-span, span < 1000 ? span : 1000));
}

/* The sign of a b - c for non-negative doubles, exactly: split exponents away so that fma is exact. */
static int sign_of_product(double a, double b, double c)
{
    int ea, eb, ec;
    if (a == 0 || b == 0 || c == 0) return (a > 0 && b > 0) - (c > 0);
    if (!isfinite(a) || !isfinite(b) || !isfinite(c)) return isfinite(c) - (isfinite(a) && isfinite(b));
    a = frexp(a, &ea), b = frexp(b, &eb), c = frexp(c, &ec);
    const int shift = ec - ea - eb; /* a b in [1/4, 1), c in [1/2, 1) */
    if (shift > 1) return -1;
    if (shift < -2) return 1;
    const double r = fma(a, b, -ldexp(c, shift));
    return (r > 0) - (r < 0);
}

static void check_sum(double a, double b)
{
    const double up = up_add((taut_up){ a }, (taut_up){ b }).v, lo = lo_add((taut_lo){ a }, (taut_lo){ b }).v;
    const double s = a + b, t = s - a, lost = (a - (s - t)) + (b - t); /* TwoSum: s + lost is a + b */
    if (!isfinite(s)) {
        CHECK(up == INFINITY && lo <= DBL_MAX, "a sum beyond the doubles");
        return;
    }
    CHECK_LE(lost, up - s, "add rounds up");
    CHECK_LE(lo - s, lost, "add rounds down");
    CHECK_LE(up, s * (1 + 0x1p-51) + DBL_TRUE_MIN, "add is tight");
    CHECK_LE(s * (1 - 0x1p-51) - DBL_TRUE_MIN, lo, "add is tight from below");
}

static void check_difference(double a, double b)
{
    const double lo = lo_sub((taut_lo){ a }, (taut_up){ b }).v, up = up_sub((taut_up){ a }, (taut_lo){ b }).v;
    const double s = a - b, t = s - a, lost = (a - (s - t)) + (-b - t);
    CHECK(lo >= 0 && up >= 0, "differences are clamped");
    if (s > 0) CHECK_LE(lo - s, lost, "sub rounds down");
    if (s > 0) CHECK_LE(lost, up - s, "sub rounds up");
}

static void check_case(double a, double b)
{
    const taut_up ua = { a }, ub = { b };
    const taut_lo la = { a }, lb = { b };
    const double mul = up_mul(ua, ub).v, root = up_sqrt(ua).v, low = lo_sqrt(la).v, down = lo_mul(la, lb).v;
    check_sum(a, b);
    check_difference(a, b);
    CHECK(sign_of_product(a, b, mul) <= 0, "mul rounds up");
    CHECK(sign_of_product(a, b, down) >= 0, "mul rounds down");
    CHECK(sign_of_product(root, root, a) >= 0, "sqrt rounds up");
    CHECK(sign_of_product(low, low, a) <= 0, "sqrt rounds down");
    if (b > 0) {
        CHECK(sign_of_product(up_div(ua, lb).v, b, a) >= 0, "div rounds up");
        CHECK(sign_of_product(lo_div(la, ub).v, b, a) <= 0, "div rounds down");
    }
    if (isfinite(mul)) CHECK_LE(mul, a * b * (1 + 0x1p-51) + DBL_TRUE_MIN, "mul is tight");
    CHECK_LE(root, sqrt(a) * (1 + 0x1p-51) + DBL_TRUE_MIN, "sqrt is tight");
    const int e = (int)rng_int(0, 1100), half = e / 2; /* a 2^-e, and back in two exact steps */
    const double scaled = up_ldexp(ua, -e).v;
    CHECK(sign_of_product(ldexp(scaled, half), ldexp(1, e - half), a) >= 0, "ldexp rounds up");
    CHECK(scaled <= ldexp(a, -e) + DBL_TRUE_MIN, "ldexp is tight");
    CHECK(up_hypot(ua, ub).v >= fmax(a, b), "hypot is above both");
    const double h = up_hypot(ua, ub).v;
    if (h < 0x1p500 && h > 0x1p-480) CHECK_LE(hypot(a, b), h, "hypot rounds up");
}

static void check_corners(void)
{
    const taut_up inf = { INFINITY }, nan = up_exact(NAN);
    CHECK(nan.v == INFINITY, "a NaN weight has no finite bound");
    CHECK(up_mul(inf, UP_ZERO).v == INFINITY, "inf * 0 is +inf, never NaN");
    CHECK(up_div(UP_ZERO, (taut_lo){ 0 }).v == INFINITY, "0 / 0 is +inf");
    CHECK(up_add(inf, UP_ZERO).v == INFINITY && up_sqrt(inf).v == INFINITY, "+inf stays");
    CHECK(up_min(inf, (taut_up){ 2 }).v == 2 && up_max(inf, (taut_up){ 2 }).v == INFINITY, "min and max");
    CHECK(up_mul(UP_ZERO, (taut_up){ 3 }).v == 0 && up_add(UP_ZERO, (taut_up){ 3 }).v == 3, "zero stays exact");
    CHECK(up_sqrt(UP_ZERO).v == 0 && up_hypot(UP_ZERO, (taut_up){ 3 }).v == 3, "zero stays exact");
    CHECK(lo_exact(NAN).v == 0 && lo_div((taut_lo){ 0 }, UP_ZERO).v == 0, "NaN from below is 0");
    CHECK(lo_sub((taut_lo){ INFINITY }, inf).v == 0, "inf - inf from below is 0");
    CHECK(up_int(((int64_t)1 << 53) + 1).v >= 0x1p53 + 2, "integers round up");
    CHECK(up_gamma(0).v == 0 && up_gamma((int64_t)1 << 53).v == INFINITY, "g_k at its ends");
    CHECK_LE(1e6 * 0x1p-53, up_gamma(1000000).v, "g_k is above k u");
    CHECK_LE(up_gamma(1000000).v, 1e6 * 0x1p-53 * (1 + 1e-9), "g_k is near k u");
}

static void check_exp(void)
{
    const double x = rng_pm() * (rng_int(0, 3) ? 20 : 760), up = up_exp(x).v, lo = lo_exp(x).v;
    const long double e = expl((long double)x), tol = 4 * LDBL_EPSILON; /* of the oracle itself */
    CHECK((long double)lo <= e * (1 + tol) && e * (1 - tol) <= (long double)up, "exp from below and above");
    CHECK_LE(up, nextafter(nextafter(lo, INFINITY), INFINITY), "exp is tight");
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < effort(200000); case_no++)
        check_case(any_double(case_no % 2 ? 400 : 1060), any_double(case_no % 2 ? 400 : 1060));
    for (case_no = 0; case_no < effort(5000); case_no++) check_exp();
    check_corners();
    CHECK(up_exp(NAN).v == INFINITY && lo_exp(NAN).v == 0, "exp of NaN");
    CHECK(up_exp(-INFINITY).v >= 0 && lo_exp(-INFINITY).v == 0 && up_exp(1e300).v == INFINITY, "exp at the ends");
    CHECK(up_exp(0).v >= 1 && lo_exp(0).v <= 1 && lo_exp(0).v >= 1 - 0x1p-50, "exp(0) is 1");
    return test_end("up", "%d pairs", effort(200000));
}
