/* Activations.  Witness: the input where each slope is largest attains the bound. */
#include "laws.h"

static taut_module *make(taut_shape in)
{
    (void)in;
    return taut_pointwise((taut_curve)rng_int(0, 5), rng_int(0, 1) ? 1 : rng_pm() * 2);
}

int main(void)
{
    static const double steepest[] = { 1.4142135623730951, 1.41850400879082835, 1, 2.3993572805154, 0, -1 };
    test_begin();
    laws(make, 1);
    for (int curve = 0; curve < 6; curve++) {
        law l;
        law_begin(&l, taut_pointwise((taut_curve)curve, 1.0 / 1.1289), (taut_shape){ 1, 1, 1 });
        l.x[0] = steepest[curve];
        law_forward(&l, l.y);
        const double found = slope_at(&l, TAUT_NORM_FLAT, 2), proved = law_ask(&l, TAUT_NORM_FLAT, 3).lip.v;
        CHECK_LE(found, proved, "witness: sound");
        CHECK_LE(proved * (1 - 1e-7), found, "witness: attained");
        law_end(&l);
    }
    return test_end("pointwise", "worst slope / bound = %.6f", law_worst);
}
