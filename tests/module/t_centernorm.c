/* CenterNorm.  Witness: it is affine, so its slope is its bound everywhere. */
#include "laws.h"

static taut_module *make(taut_shape in) { return taut_centernorm(in.d); }

int main(void)
{
    test_begin();
    laws(make, 2);
    law l;
    law_begin(&l, taut_centernorm(5), (taut_shape){ 1, 2, 5 });
    for (int n = 0; n < 2; n++) {
        const double found = slope_at(&l, (taut_norm)n, 5000), proved = law_ask(&l, (taut_norm)n, 2).lip.v;
        CHECK_LE(found, proved * (1 + 1e-12), "witness: sound");
        CHECK_LE(proved * (1 - 1e-6), found, "witness: attained");
    }
    law_end(&l);
    return test_end("centernorm", "worst slope / bound = %.6f", law_worst);
}
