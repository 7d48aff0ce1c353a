/* The checker's list of known values, held to Arb; its test passes here, and leaves the rounding mode as it was. */
#include <fenv.h>

#include "bound/arb_include.h"
#include "check/machine/arithmetic.h"
#include "check/machine/known.h"
#include "check/up.h"
#include "harness.h"

enum { BITS = 200 };

typedef void (*arb_fn)(arb_t, const arb_t, slong);
static const struct {
    const char *name;
    arb_fn truth;
} truths[] = { { "exp", arb_exp },   { "log", arb_log }, { "erf", arb_hypgeom_erf },
               { "tanh", arb_tanh }, { "sin", arb_sin }, { "cos", arb_cos } };

static double nearest(const arb_t y) { return arf_get_d(arb_midref(y), ARF_RND_NEAR); }

int main(void)
{
    const int known = sizeof ck_known_values / sizeof *ck_known_values;
    arb_t x, y;
    test_begin();
    arb_init(x), arb_init(y);
    for (case_no = 0; case_no < known; case_no++) {
        const ck_known *k = &ck_known_values[case_no];
        bool found = false;
        for (size_t i = 0; i < sizeof truths / sizeof *truths; i++)
            if (strcmp(truths[i].name, k->name) == 0) {
                found = true;
                arb_set_d(x, k->x);
                truths[i].truth(y, x, BITS);
                CHECK(nearest(y) == k->y, k->name);
            }
        CHECK(found, "a function with a truth");
    }
    for (size_t i = 0; i < sizeof ck_known_powers / sizeof *ck_known_powers; i++) {
        arb_set_d(x, ck_known_powers[i].base), arb_set_d(y, ck_known_powers[i].power);
        arb_pow(y, x, y, BITS);
        CHECK(nearest(y) == ck_known_powers[i].y, "pow");
    }
    arb_clear(x), arb_clear(y);
    CHECK(ck_arithmetic() == TAUT_OK, taut_last_error());
    CHECK(fegetround() == FE_TONEAREST, "to nearest again");
    fesetround(FE_DOWNWARD);
    CHECK(ck_arithmetic() == TAUT_DEVICE, "another rounding mode is noticed");
    fesetround(FE_TONEAREST);
    return test_end("check arithmetic", "%d known values", known);
}
