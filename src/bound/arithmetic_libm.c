/* libm against Arb, at points from where it is used: within 4 units in the last place, erfc within 8, as docs/guarantees.md
 * assumes.  A unit is the distance to the next double above the true value. */
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "base/rng.h"
#include "bound/arb_include.h"
#include "bound/arithmetic.h"

enum { POINTS = 24, BITS = 96 };

typedef void (*arb_fn)(arb_t, const arb_t, slong);

typedef struct {
    const char *wrong;
    double (*f)(double);
    arb_fn truth;
    double from, to, units;
} function;

static const function functions[] = {
    { "libm's exp is wrong", exp, arb_exp, -746, 710, 4 },
    { "libm's exp is wrong", exp, arb_exp, -2, 2, 4 },
    { "libm's expm1 is wrong", expm1, arb_expm1, -40, 2, 4 },
    { "libm's log is wrong", log, arb_log, 1e-3, 1e3, 4 },
    { "libm's erf is wrong", erf, arb_hypgeom_erf, -6, 6, 4 },
    { "libm's erfc is wrong", erfc, arb_hypgeom_erfc, -6, 26, 8 },
    { "libm's tanh is wrong", tanh, arb_tanh, -20, 20, 4 },
    { "libm's cosh is wrong", cosh, arb_cosh, -20, 20, 4 },
    { "libm's sin is wrong", sin, arb_sin, -1e5, 1e5, 4 },
    { "libm's sin is wrong", sin, arb_sin, -4, 4, 4 },
    { "libm's cos is wrong", cos, arb_cos, -1e5, 1e5, 4 },
    { "libm's cos is wrong", cos, arb_cos, -4, 4, 4 },
};

/* |got - truth| <= units; NaN is not.  Where the truth is beyond DBL_MAX, infinity is right. */
static bool within(double got, const arb_t truth, double units)
{
    arb_t error;
    arf_t end;
    if (isnan(got)) return false;
    arb_init(error), arf_init(end);
    arb_get_abs_ubound_arf(end, truth, BITS);
    const double size = arf_get_d(end, ARF_RND_NEAR), unit = nextafter(size, INFINITY) - size;
    if (isfinite(got)) arb_set_d(error, got), arb_sub(error, error, truth, BITS);
    arb_get_abs_ubound_arf(end, error, BITS);
    const double most = arf_get_d(end, ARF_RND_CEIL);
    arf_clear(end), arb_clear(error);
    return isfinite(got) && isfinite(size) ? most <= units * unit : got > 0 && size >= DBL_MAX;
}

/* Point i of a function: spread over its range, every fourth one near 0 where that is inside. */
static double point(const function *f, uint64_t key, int i)
{
    const double x = f->from + (f->to - f->from) * ((double)i + taut_rng_unit(key, (uint64_t)i)) / POINTS;
    return i % 4 == 0 && f->from < 0 && f->to > 0 ? ldexp(x, -3 * i) : x;
}

static bool is_close(const function *f, uint64_t key)
{
    bool good = true;
    arb_t x, truth;
    arb_init(x), arb_init(truth);
    for (int i = 0; i < POINTS && good; i++) {
        volatile double at = point(f, key, i);
        arb_set_d(x, at);
        f->truth(truth, x, BITS);
        good = within(f->f(at), truth, f->units);
    }
    arb_clear(x), arb_clear(truth);
    return good;
}

/* RoPE's and sinusoids' base^(-i/n). */
static bool pow_is_close(void)
{
    bool good = true;
    arb_t x, y;
    arb_init(x), arb_init(y);
    for (int i = 0; i < POINTS && good; i++) {
        volatile double base = i % 2 ? 10000 : 1 + 20 * taut_rng_unit(99, (uint64_t)i),
                        power = -(double)i / (POINTS - 1);
        arb_set_d(x, base), arb_set_d(y, power);
        arb_pow(x, x, y, BITS);
        good = within(pow(base, power), x, 4);
    }
    arb_clear(x), arb_clear(y);
    return good;
}

const char *taut_arithmetic_libm(void)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!is_close(&functions[i], i)) return functions[i].wrong;
    return pow_is_close() ? NULL : "libm's pow is wrong";
}
