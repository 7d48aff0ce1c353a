/* From pixels to normalised patches.  Witness: moving one pixel of the channel with the smallest deviation; for the
 * region, a patch whose pixels are all in the far corner of [0, 1]. */
#include "laws.h"
#include "stated.h"

static taut_pixels_spec spec_of(int64_t *pixels)
{
    taut_pixels_spec s = { .channels = rng_int(1, 3), .patch = rng_int(0, 2) };
    const int64_t unit = s.patch ? s.patch : 1;
    s.height = unit * rng_int(1, 2), s.width = unit * rng_int(1, 3);
    for (int c = 0; c < 4; c++) s.mean[c] = rng_unit(), s.std[c] = 0.2 + rng_unit();
    *pixels = s.height * s.width * s.channels;
    return s;
}

static void all_laws(void)
{
    for (case_no = 0; case_no < effort(60); case_no++) {
        int64_t d;
        const taut_pixels_spec s = spec_of(&d);
        const taut_shape in = { rng_int(1, 2), 1, d };
        taut_module *m = taut_pixels_module(&s);
        for (int64_t depth = rng_int(0, 2); m && depth > 0; depth--) m = nested(m, in);
        laws_hold(m, in);
    }
}

static void witness(void)
{
    law l;
    const taut_pixels_spec s = { 4, 2, 2, 2, { 0.25, 0.5 }, { 0.5, 0.25 } };
    law_begin(&l, taut_pixels_module(&s), (taut_shape){ 1, 1, 16 });
    CHECK(l.plan.out.t == 2 && l.plan.out.d == 8, "two patches of 2 x 2 x 2");
    for (int n = 0; n < 2; n++) {
        CHECK_STATED(law_ask(&l, (taut_norm)n, 2).lip.v, 4, 2, 1e-14, "witness: bound");
        CHECK_NEAR(slope_at(&l, (taut_norm)n, 100), 4, 1e-9, "witness: attained");
    }
    /* channel 0 goes to 2 x - 1/2, in [-1/2, 3/2]; channel 1 to 4 x - 2, in [-2, 2] */
    const taut_ask unit = { .norm = TAUT_NORM_FLAT, .tokens = 1, .size = { 4 }, .box = { true, { 0.5 } } };
    const taut_answer b = taut_bound_of(l.m, unit);
    CHECK(!taut_ask_behind(unit, b).box.known && b.tokens == 2, "patches are no pixels");
    CHECK_STATED(b.size.v, sqrt(4 * (1.5 * 1.5 + 4)) + 4 * 0.5, 2, 1e-9, "the corner, and what moved");
    for (int i = 0; i < 16; i++) l.x[i] = 1;
    law_forward(&l, l.y);
    CHECK_NEAR(norm(l.y, 8), 5, 1e-12, "witness: a patch in the corner");
    law_end(&l);
}

int main(void)
{
    test_begin();
    all_laws();
    witness();
    return test_end("pixels", "worst slope / bound = %.6f", law_worst);
}
