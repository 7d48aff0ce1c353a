/* Radii from margins: margin / L is not a certified radius (two logits can move against each other: sqrt 2 L), and
 * for a network computed with an error e the margin loses 4 e, not 2 e. */
#include <math.h>

#include "harness.h"

static double printed_radius(double margin, double lip) { return margin / lip; }
static double sound_radius(double margin, double lip) { return margin / (sqrt(2) * lip); }
/* a margin read from computed logits, and a claim about computed logits */
static double printed_float(double margin, double lip, double e) { return (margin - 2 * e) / lip; }
static double sound_float(double margin, double lip, double e) { return (margin - 4 * e) / lip; }

int main(void)
{
    test_begin();
    /* f(x) = (x_1, x_2), L = 1, x = (1, 0): the nearest tie is (1/2, 1/2), at distance 1/sqrt 2. */
    const double flip = hypot(0.5, 0.5);
    CHECK(printed_radius(1, 1) > flip, "margin / L reaches beyond the flip");
    CHECK_NEAR(sound_radius(1, 1), flip, 1e-15, "margin / (sqrt 2 L) does not, and is exact");
    /* f = (x, 0), |f(x) - f(x')| <= |x - x'|; computed with e = 0.1 a logit: at x = 1 it shows (1.1, -0.1), margin 1.2;
     * at x' = 1 - r it shows (x' - 0.1, 0.1). */
    const double e = 0.1, margin = (1 + e) - (0 - e), r = printed_float(margin, 1, e);
    const double there = (1 - r - e) - (0 + e);
    CHECK_NEAR(there, -0.2, 1e-15, "the computed prediction flips inside the radius of the 2 e rule");
    const double s = sound_float(margin, 1, e), kept = (1 - s - e) - (0 + e);
    CHECK_NEAR(kept, 0, 1e-15, "with 4 e it does not, and is exact");
    return test_end("margin", "margin / L: %.3f > %.3f; 2 e: margin %.1f inside the radius", printed_radius(1, 1), flip,
                    there);
}
