/* The perceptron of "Training Transformers with Enforced Lipschitz Bounds": its block constant is divided by
 * 1.1289 although the activation already is, and 1.1289 is below the steepest slope of both forms of GELU.  Also
 * vector T1. */
#include "bound/curve.h"
#include "laws.h"

/* |W_out| |W_in| / 1.1289, for W_out (GELU / 1.1289) W_in */
static double printed_mlp(double out, double in) { return out * in / 1.1289; }
/* the slope that 1.1289 is taken for */
static double printed_slope(void) { return 1.1289; }

static void block(taut_curve curve, double steepest, double want)
{
    law l;
    law_begin(&l, taut_mlp(&(taut_mlp_spec){ .width = 1, .hidden = 1, .out = 1, .curve = curve, .factor = 1 / 1.1289 }),
              (taut_shape){ 1, 1, 1 });
    *(double *)l.seen[0]->value = *(double *)l.seen[1]->value = 1;
    l.x[0] = steepest;
    law_forward(&l, l.y);
    const double found = slope_at(&l, TAUT_NORM_FLAT, 2), ours = law_ask(&l, TAUT_NORM_FLAT, 2).lip.v;
    CHECK_NEAR(found, want, 5e-8, "T1, the factor 1/1.1289 as a float"); /* fl32 is right to 6e-8 */
    CHECK(printed_mlp(1, 1) < found && found <= ours, "printed < found <= ours");
    CHECK_LE(ours, found * (1 + 1e-7), "ours is attained");
    printf("%.6f < %.10f <= %.10f; ", printed_mlp(1, 1), found, ours);
    law_end(&l);
}

/* T1: the constants, and that 1.1289 is none. */
static void constants(void)
{
    const double erf_hi = slopes_gelu().hi, tanh_hi = slopes_gelu_tanh().hi;
    const taut_kernels *k = taut_kernels_find("ref");
    const double x[] = { sqrt(2), 1.41850400879082835 }, one[] = { 1, 1 };
    double slope[2];
    k->pointwise_slope((taut_real *)slope, (const taut_real *)one, (const taut_real *)x, TAUT_GELU, 1);
    k->pointwise_slope((taut_real *)(slope + 1), (const taut_real *)(one + 1), (const taut_real *)(x + 1),
                       TAUT_GELU_TANH, 1);
    CHECK_NEAR(slope[0], 1.128904145185154786, 1e-15, "GELU at sqrt 2");
    CHECK_NEAR(slope[1], 1.128993068658771765, 1e-15, "GELU, tanh form");
    CHECK(printed_slope() < slope[0] && slope[0] <= erf_hi, "1.1289 is not the steepest slope");
    CHECK(printed_slope() < slope[1] && slope[1] <= tanh_hi, "of the tanh form, either");
    CHECK_NEAR(erf_hi / 1.1289, 1.00000367187984, 1e-14, "T1");
    CHECK_NEAR(tanh_hi / 1.1289, 1.00008244189811, 1e-14, "T1");
    CHECK_NEAR(slopes_gelu().lo, 1 - erf_hi, 1e-15, "the least slope");
    CHECK_NEAR(slopes_silu().hi, 1.099839320128866917, 1e-15, "SiLU");
}

int main(void)
{
    test_begin();
    block(TAUT_GELU, sqrt(2), 1.00000367187984);
    block(TAUT_GELU_TANH, 1.41850400879082835, 1.00008244189811);
    constants();
    printf("\n");
    return test_end("enforced mlp", "2 formulas beaten, ours hold");
}
