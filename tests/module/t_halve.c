/* Every other token, the largest of its neighbourhood: the laws, which token that is, and inputs that attain sqrt 3 and
 * sqrt 2. */
#include "laws.h"
#include "stated.h"

static taut_module *make(taut_shape in)
{
    (void)in;
    return taut_halve();
}

/* Windows {0,1}, {1,2,3}, {3,4}: features 0, 1, 2 are largest in tokens 1, 2 and 3; of feature 3 token 1 and 3 lead. */
static void witness(void)
{
    static const double x[] = { 0, 0, 0, -1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0 };
    law l;
    law_begin(&l, taut_halve(), (taut_shape){ 1, 5, 4 });
    memcpy(l.x, x, sizeof x);
    law_forward(&l, l.y);
    CHECK(l.plan.out.t == 3 && l.y[4] == 1 && l.y[5] == 1 && l.y[6] == 1 && l.y[7] == 1 && l.y[3] == 1, "maxima");
    static const double root[] = { 1.7320508075688772, 1.4142135623730951 };
    for (int n = 0; n < 2; n++) {
        const double found = slope_at(&l, (taut_norm)n, 300), proved = law_ask(&l, (taut_norm)n, 2).lip.v;
        CHECK_LE(found, proved * (1 + 1e-12), "witness: sound");
        CHECK_STATED(proved, root[n], 1, 1e-15, "sqrt 3 and sqrt 2");
        CHECK_LE(proved * (1 - 1e-8), found, "witness: attained");
    }
    const taut_answer b = law_ask(&l, TAUT_NORM_TOKENS, 1);
    CHECK_STATED(b.size.v, root[0], 1, 1e-15, "three tokens of length 1 side by side");
    law_end(&l);
}

int main(void)
{
    test_begin();
    witness(); /* first: its search starts from the seed, whatever the effort */
    laws(make, 1);
    laws_hold(taut_halve(), (taut_shape){ 2, 9, 3 });
    return test_end("halve", "worst slope / bound = %.6f", law_worst);
}
