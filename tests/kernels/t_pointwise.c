/* Curves and slopes: cpu against ref over the whole range of floats, dense where they bend; ref's slopes
 * against central differences; corners. */
#include "kernels/pair.h"

static const char *NAMES[] = { "gelu", "gelu_tanh", "relu", "silu", "tanh", "abs", "elu" };

static double any_float(void)
{
    switch (rng_int(0, 5)) {
    case 0:
        return ldexp(rng_pm(), (int)rng_int(-140, 127)); /* all magnitudes */
    case 1:
        return 100 * rng_pm();
    case 2:
        return 15 * rng_pm();
    default:
        return 4 * rng_pm();
    }
}

static void curve(taut_curve f, int64_t len)
{
    pair x = pair_new(len, 1), y = pair_new(len, 0), t = pair_new(len, 1);
    double *tol = doubles(len);
    for (int64_t i = 0; i < len; i++) x.d[i] = any_float();
    pair_sync(&x);
    SAME_BITS(y, (ref->pointwise(R(&y), R(&x), f, len), cpu->pointwise(y.f, x.f, f, len)));
    for (int64_t i = 0; i < len; i++)
        tol[i] = promise_curve(promised, f, x.d[i]) * fabs(y.d[i]) +
                 (promise_curve(promised, f, x.d[i]) > 0) * 0x1p-119;
    pair_near(&y, tol, 0, 0, NAMES[f]);
    SAME_BITS(y, (ref->pointwise_slope(R(&y), R(&t), R(&x), f, len), cpu->pointwise_slope(y.f, t.f, x.f, f, len)));
    for (int64_t i = 0; i < len; i++) tol[i] = f == TAUT_RELU || f == TAUT_ABS ? 0 : 16 * UNIT * fabs(t.d[i]);
    pair_near(&y, tol, 0, 0, "slope");
    ref->pointwise_slope(R(&t), R(&t), R(&x), f, len);
    cpu->pointwise_slope(t.f, t.f, x.f, f, len);
    pair_same(&t, &y, "slope in place of t");
    pair z = pair_copy(&x);
    ref->pointwise(R(&y), R(&x), f, len);
    cpu->pointwise(y.f, x.f, f, len);
    ref->pointwise(R(&z), R(&z), f, len);
    cpu->pointwise(z.f, z.f, f, len);
    pair_same(&z, &y, "in place of x");
    pair_free(&x);
    pair_free(&y);
    pair_free(&z);
    pair_free(&t);
    free(tol);
}

static void corners(taut_curve f)
{
    pair x = pair_new(7, 0), y = pair_new(7, 0), one = pair_new(7, 0);
    const double at[] = { 0, -0.0, NAN, INFINITY, -INFINITY, 3e38, -3e38 };
    for (int i = 0; i < 7; i++) {
        x.d[i] = at[i];
        one.d[i] = 1;
    }
    pair_sync(&x);
    pair_sync(&one);
    ref->pointwise(R(&y), R(&x), f, 7);
    cpu->pointwise(y.f, x.f, f, 7);
    CHECK(y.d[0] == 0 && isnan(y.d[2]), "0 and NaN stay");
    pair_near(&y, NULL, 0x1p-119, 10 * UNIT, "corners");
    x.d[3] = x.d[4] = 1; /* slopes are defined for finite x only */
    pair_sync(&x);
    ref->pointwise_slope(R(&y), R(&one), R(&x), f, 7);
    cpu->pointwise_slope(y.f, one.f, x.f, f, 7);
    CHECK(isnan(y.d[2]), "the slope at NaN");
    pair_near(&y, NULL, 16 * UNIT, 0, "slope at corners");
    pair_free(&x);
    pair_free(&y);
    pair_free(&one);
}

/* The slope is the derivative: central differences of ref, whose error is h^2/6 |f'''| + 2^-52/h. */
static void derivative(taut_curve f)
{
    for (int i = 0; i < 200; i++) {
        const double h = 1e-5, one = 1;
        double x = 5 * rng_pm(), at[2], v[2], s;
        if ((f == TAUT_RELU || f == TAUT_ABS || f == TAUT_ELU) && fabs(x) < 2 * h) x = 1;
        at[0] = x - h;
        at[1] = x + h;
        ref->pointwise((taut_real *)v, (taut_real *)at, f, 2);
        ref->pointwise_slope((taut_real *)&s, (const taut_real *)&one, (taut_real *)&x, f, 1);
        CHECK_NEAR(s, (v[1] - v[0]) / (2 * h), 1e-9, "slope is the derivative");
    }
}

int main(void)
{
    pair_begin();
    for (int f = TAUT_GELU; f <= TAUT_ELU; f++) {
        for (case_no = 0; case_no < 40; case_no++) curve(f, case_no);
        for (case_no = 40; case_no < 40 + effort(2); case_no++) curve(f, rng_int(50000, 70000));
        corners(f);
        derivative(f);
    }
    /* the steepest slopes */
    const double top[] = { 1.4142135623730951, 1.4185040087908284 }, one[] = { 1, 1 };
    double slope[2];
    for (int f = 0; f < 2; f++)
        ref->pointwise_slope((taut_real *)&slope[f], (const taut_real *)&one[f], (const taut_real *)&top[f], f, 1);
    CHECK_NEAR(slope[0], 1.128904145185154786, 4e-16, "steepest GELU");
    CHECK_NEAR(slope[1], 1.128993068658771765, 4e-16, "steepest GELU, tanh form");
    return test_end("pointwise", "worst error / promised = %.3f", worst);
}
