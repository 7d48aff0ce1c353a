/* The vector functions against libm in double, over their whole range, built here without fused
 * multiply-add: what their header promises must not lean on it. */
#include "harness.h"
#include "kernels/cpu/vmath.h"

static double worst;

static void near_rel(double got, double want, double units, const char *what)
{
    const double error = fabs(got - want) / (fabs(want) * 0x1p-24);
    CHECK_LE(error, units, what);
    worst = fmax(worst, error / units);
}

static void exponential(void)
{
    for (case_no = 0; case_no < effort(200000); case_no++) {
        const float x = (float)(rng_int(0, 3) ? 87.33 * rng_pm() : rng_pm());
        near_rel((double)vm_exp(x), exp((double)x), 2, "exp");
    }
    CHECK(vm_exp(0.0f) == 1 && vm_exp(-0.0f) == 1, "exp 0 = 1");
    CHECK(vm_exp(-INFINITY) == 0 && vm_exp(-88.0f) == 0 && vm_exp(-3e38f) == 0, "exp of the far left is 0");
    CHECK(isnan(vm_exp(NAN)) && isnan(vm_exp(-NAN)), "exp NaN");
    for (float x = -87.4f; x < -87.2f; x = nextafterf(x, 0))
        CHECK(vm_exp(x) == 0 || vm_exp(x) >= 0x1p-127f, "exp has a clean edge");
}

static void hyperbolic(void)
{
    for (case_no = 0; case_no < effort(200000); case_no++) {
        const float x = (float)(rng_int(0, 1) ? 12 * rng_pm() : ldexp(rng_pm(), (int)rng_int(-100, 2)));
        near_rel((double)vm_tanh(x), tanh((double)x), 5, "tanh");
    }
    CHECK(vm_tanh(INFINITY) == 1 && vm_tanh(-INFINITY) == -1 && isnan(vm_tanh(NAN)), "tanh at the ends");
    CHECK(vm_tanh(0.0f) == 0 && signbit(vm_tanh(-0.0f)), "tanh keeps the sign of 0");
}

static void tail(void)
{
    for (case_no = 0; case_no < effort(200000); case_no++) {
        const float x = (float)(rng_int(0, 1) ? 13 * rng_pm() : 2 * rng_pm());
        const vm_normal p = vm_tail(x);
        near_rel((double)p.e * (double)p.mills, 0.5 * erfc(fabs((double)x) * M_SQRT1_2),
                 8 + 0.5 * (double)x * (double)x, "normal tail");
    }
    CHECK(vm_tail(13.25f).e == 0 && vm_tail(-INFINITY).e == 0 && vm_tail(3e38f).e == 0, "the tail ends in 0");
}

static void largest(void)
{
    float x[40];
    for (case_no = 0; case_no < effort(2000); case_no++) {
        const int64_t len = rng_int(0, 40);
        float want = -INFINITY;
        for (int64_t i = 0; i < len; i++) {
            x[i] = (float)ldexp(rng_pm(), (int)rng_int(-140, 120));
            if (rng_int(0, 20) == 0) x[i] = rng_int(0, 1) ? -INFINITY : 0.0f;
            want = fmaxf(want, x[i]);
        }
        CHECK(vm_max(x, len) == want, "max");
    }
}

int main(void)
{
    test_begin();
    exponential();
    hyperbolic();
    tail();
    largest();
    return test_end("vmath", "worst error / promised = %.3f", worst);
}
