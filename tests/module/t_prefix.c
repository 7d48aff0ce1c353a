/* A learned token in front.  Witness: every change comes through as it is. */
#include "laws.h"
#include "stated.h"

static taut_module *prefix(taut_shape in) { return taut_prefix(in.d, 1); }

static void witness(void)
{
    law l;
    law_begin(&l, taut_prefix(3, 1), (taut_shape){ 2, 2, 3 });
    double *p = (double *)l.seen[0]->value;
    p[0] = 3, p[1] = 4, p[2] = 0;
    law_forward(&l, l.y);
    for (int e = 0; e < 2; e++) {
        CHECK(memcmp(l.y + e * 9, p, 3 * sizeof *p) == 0, "the token in front of every example");
        CHECK(memcmp(l.y + e * 9 + 3, l.x + e * 6, 6 * sizeof *p) == 0, "and the others behind it");
    }
    for (int n = 0; n < 2; n++) {
        const taut_answer b = law_ask(&l, (taut_norm)n, 2);
        CHECK(b.lip.v == 1 && b.tokens == 3, "witness: bound");
        CHECK_STATED(b.size.v, 5, 2, 1e-9, "witness: the new token is the longest");
        CHECK_NEAR(slope_at(&l, (taut_norm)n, 100), 1, 1e-9, "witness: attained");
    }
    p[1] = NAN;
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).size.v == INFINITY, "NaN");
    law_end(&l);
}

int main(void)
{
    test_begin();
    laws(prefix, 1);
    witness();
    return test_end("prefix", "worst slope / bound = %.6f", law_worst);
}
