/* Slopes on an interval: every secant of the interval lies between them, they are no wider than those of the whole line, and
 * close to f'(z) for small r. */
#include "harness.h"
#include "module/curves.h"

static double value(taut_curve f, double x)
{
    if (f == TAUT_GELU) return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    if (f == TAUT_GELU_TANH) return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    if (f == TAUT_RELU) return x > 0 ? x : 0;
    if (f == TAUT_ELU) return x > 0 ? x : expm1(x);
    if (f == TAUT_SILU) return x / (1 + exp(-x));
    return f == TAUT_TANH ? tanh(x) : fabs(x);
}

int main(void)
{
    static const double radii[] = { 1e-3, 0.03, 0.3, 2, 1e3 };
    double tightest = 0;
    test_begin();
    for (case_no = 0; case_no < effort(60000); case_no++) {
        const taut_curve f = (taut_curve)(case_no % 7);
        const double r = radii[case_no / 7 % 5], z = 6 * rng_pm(), a = z + r * rng_pm(), b = z + r * rng_pm();
        const taut_slopes near = taut_curve_near(f, z, r), all = taut_curve_slopes(f);
        CHECK(near.lo >= all.lo && near.hi <= all.hi && near.lo <= near.hi, "no wider than the whole line");
        if (fabs(a - b) < 1e-4 * r) continue;
        const double secant = (value(f, a) - value(f, b)) / (a - b), slack = 1e-13 / fabs(a - b);
        CHECK_LE(near.lo - slack, secant, "from below");
        CHECK_LE(secant, near.hi + slack, "from above");
        if (r < 0.01 && f != TAUT_RELU && f != TAUT_ABS) tightest = fmax(tightest, near.hi - near.lo);
    }
    CHECK_LE(tightest, 0.0021, "narrow on a narrow interval");
    const taut_slopes dead = taut_curve_near(TAUT_RELU, -1, 0.5), edge = taut_curve_near(TAUT_RELU, -1, 1);
    CHECK(dead.lo == 0 && dead.hi == 0 && edge.hi == 1, "a dead unit, and one that may wake up");
    const taut_slopes any = taut_curve_near(TAUT_GELU, 1, INFINITY), nan = taut_curve_near(TAUT_RELU, NAN, 0.1);
    CHECK(any.lo == taut_curve_slopes(TAUT_GELU).lo && nan.hi == 1 && nan.lo == 0, "infinite radius, NaN");
    return test_end("near", "seven curves, the widest of radius 1e-3: %.2g", tightest);
}
