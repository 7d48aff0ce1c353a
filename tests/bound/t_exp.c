/* e^x against Arb: within 2 units in the last place over the whole range, where n changes and at both ends; the same bits from
 * vector code, in whichever version the processor takes, as one by one. */
#include "bound/exp.h"

#include "base/clones.h"
#include "bound/arb_include.h"
#include "harness.h"

enum { BITS = 128, MANY = 64 };

/* |e^x - got| in units, the distance from the true value to the next double above it */
static double units(double x, double got)
{
    arb_t truth, error, unit;
    arf_t end;
    arb_init(truth), arb_init(error), arb_init(unit), arf_init(end);
    arb_set_d(truth, x);
    arb_exp(truth, truth, BITS);
    arb_get_abs_ubound_arf(end, truth, BITS);
    const double size = arf_get_d(end, ARF_RND_DOWN);
    arb_set_d(unit, nextafter(size, INFINITY) - size);
    arb_set_d(error, got);
    arb_sub(error, error, truth, BITS);
    arb_div(error, error, unit, BITS);
    arb_get_abs_ubound_arf(end, error, BITS);
    const double far = arf_get_d(end, ARF_RND_UP);
    arf_clear(end), arb_clear(unit), arb_clear(error), arb_clear(truth);
    return far;
}

static double point(void)
{
    switch (rng_int(0, 4)) {
    case 0:
        return -708 + 1417 * rng_unit();
    case 1:
        return rng_pm();
    case 2:
        return (double)rng_int(-2042, 2044) * 0.34657359027997264 * (1 + 0x1p-50 * rng_pm());
    case 3:
        return ldexp(rng_pm(), (int)-rng_int(0, 1070));
    default:
        return (double)rng_int(-708, 709);
    }
}

TAUT_CLONES static void all(double *restrict y, const double *restrict x)
{
#pragma omp simd
    for (int i = 0; i < MANY; i++) y[i] = taut_exp(x[i]);
}

int main(void)
{
    double worst = 0, x[MANY], y[MANY];
    test_begin();
    for (case_no = 0; case_no < effort(5000); case_no++) {
        for (int i = 0; i < MANY; i++) x[i] = point();
        all(y, x);
        for (int i = 0; i < MANY; i++) {
            volatile double one = x[i];
            const double alone = taut_exp(one), far = units(x[i], y[i]);
            CHECK(memcmp(&alone, &y[i], sizeof alone) == 0, "the same bits alone");
            CHECK_LE(far, 2, "within two units");
            worst = fmax(worst, far);
        }
    }
    CHECK(taut_exp(0) == 1 && taut_exp(-0.0) == 1, "e^0");
    CHECK(units(-708, taut_exp(-708)) <= 2 && units(709, taut_exp(709)) <= 2, "both ends");
    CHECK(isnan(taut_exp(NAN)) && isnan(taut_exp(-NAN)), "NaN");
    return test_end("exp", "worst %.3f units of 2", worst);
}
