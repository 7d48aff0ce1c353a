/* Arb answers with an interval that holds the true value; we take its end and round outward to a double.
 * At 128 bits the interval is far narrower than a double's spacing, so the result is the neighbour of
 * the truth on the right side. */
#include "bound/scalar.h"

#include <float.h>

#include "bound/arb_include.h"

static double exp_end(double x, bool upper)
{
    arb_t y;
    arf_t end;
    arb_init(y);
    arf_init(end);
    arb_set_d(y, x);
    arb_exp(y, y, 128);
    if (upper)
        arb_get_ubound_arf(end, y, 128);
    else
        arb_get_lbound_arf(end, y, 128);
    const double r = arf_get_d(end, upper ? ARF_RND_CEIL : ARF_RND_FLOOR);
    arf_clear(end);
    arb_clear(y);
    return r;
}

taut_up up_exp(double x)
{
    if (isnan(x) || x > 710) return UP_NONE;
    return up_wrap(x < -800 ? DBL_TRUE_MIN : exp_end(x, true));
}

taut_lo lo_exp(double x)
{
    if (isnan(x) || x < -800) return (taut_lo){ 0 };
    return lo_wrap(x > 710 ? DBL_MAX : exp_end(x, false));
}
