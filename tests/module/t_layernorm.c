/* LayerNorm and RMSNorm.  Witness: at a constant token (at 0 for RMSNorm) the slope is the global constant.
 * eps = 0 has no global constant, and says so.  Vector T7: x = (1,2,4), g = (1,-2,.5), eps = 1e-5. */
#include "laws.h"

static taut_module *make(taut_shape in)
{
    const double eps = pow(10, -6 * rng_unit());
    return rng_int(0, 1) ? taut_layernorm(in.d, eps) : taut_rmsnorm(in.d, eps);
}

static void witness(bool layer)
{
    law l;
    law_begin(&l, layer ? taut_layernorm(3, 0.01) : taut_rmsnorm(3, 0.01), (taut_shape){ 1, 1, 3 });
    for (int i = 0; i < 3; i++) l.x[i] = layer ? 0.7 : 0;
    law_forward(&l, l.y);
    for (int n = 0; n < 2; n++) {
        const double found = slope_at(&l, (taut_norm)n, 5000), proved = law_ask(&l, (taut_norm)n, 2).lip.v;
        CHECK_LE(found, proved * (1 + 1e-12), "witness: sound");
        CHECK_LE(proved * (1 - 1e-6), found, "witness: attained");
    }
    law_end(&l);
}

static void vector_t7(void)
{
    static const double x[] = { 1, 2, 4 }, g[] = { 1, -2, .5 }, want[] = { -1.06904153, .53452077, .66815096 };
    law l;
    law_begin(&l, taut_layernorm(3, 1e-5), (taut_shape){ 1, 1, 3 });
    memcpy(l.x, x, sizeof x);
    memcpy(l.seen[0]->value, g, sizeof g);
    memset(l.seen[1]->value, 0, sizeof g);
    law_forward(&l, l.y);
    for (int i = 0; i < 3; i++) CHECK_NEAR(l.y[i], want[i], 1e-8, "T7 output");
    CHECK_NEAR(slope_at(&l, TAUT_NORM_FLAT, 5000), 1.359486080993, 1e-9, "T7 slope");
    CHECK_NEAR(law_ask(&l, TAUT_NORM_FLAT, 5).lip.v, 538.11187719, 1e-3,
               "T7 global constant"); /* eps is a float here */
    law_end(&l);
}

/* Around a centre: nothing in the ball moves the output by more than out.radius, which is less than lip * radius. */
static void around(bool layer)
{
    const double r = 1.5;
    law l;
    law_begin(&l, layer ? taut_layernorm(3, 1e-4) : taut_rmsnorm(3, 1e-4), (taut_shape){ 1, 1, 3 });
    const double x[] = { 1, -2, 1 };
    double y[3], most = 0;
    memcpy(l.x, x, sizeof x);
    law_forward(&l, l.y);
    memcpy(y, l.y, sizeof y);
    const taut_ask in = taut_ask_at(
        (taut_ask){ .norm = TAUT_NORM_TOKENS, .tokens = 1, .size = UP_NONE, .radius = { r } }, law_at(&l));
    const taut_answer b = taut_bound_of(l.m, in);
    for (int i = 0; i < 4000; i++) {
        double move[3], size;
        for (int c = 0; c < 3; c++) move[c] = rng_pm();
        size = norm(move, 3);
        for (int c = 0; c < 3; c++) l.x[c] = x[c] + r * move[c] / size * (1 - 1e-12);
        law_forward(&l, l.y);
        for (int c = 0; c < 3; c++) move[c] = l.y[c] - y[c];
        most = fmax(most, norm(move, 3));
    }
    CHECK_LE(most, b.move.v, "no input in the ball moves it further");
    CHECK_LE(b.move.v, 0.9 * r * b.lip.v, "one end stays at the centre: less than lip * radius");
    law_end(&l);
}

int main(void)
{
    test_begin();
    laws(make, 1);
    witness(true);
    witness(false);
    vector_t7();
    around(true);
    around(false);
    law l;
    law_begin(&l, taut_layernorm(4, 0), (taut_shape){ 1, 2, 4 });
    CHECK(isinf(law_ask(&l, TAUT_NORM_TOKENS, 1).lip.v), "eps = 0 has no global constant");
    CHECK(isfinite(law_ask(&l, TAUT_NORM_TOKENS, 1).size.v), "but its outputs are bounded");
    law_end(&l);
    return test_end("layernorm", "worst slope / bound = %.6f", law_worst);
}
