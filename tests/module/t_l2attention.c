/* l2attention: the laws, with and without A in the values; T14: what breaks the printed bound keeps ours; the variant
 * without A is not Lipschitz. */
#include "bound/l2attention.h"
#include "laws.h"

static taut_module *build(int64_t width, int64_t heads, bool tied)
{
    return taut_l2attention(&(taut_l2attention_spec){
        .width = width, .heads = heads, .tied = tied, .init = TAUT_INIT_NORMAL, .gain = 1, .out_gain = 1 });
}

static taut_module *random_l2(taut_shape in)
{
    const int64_t heads = in.d % 2 == 0 && rng_int(0, 1) ? 2 : 1;
    return build(in.d, heads, rng_int(0, 3) > 0);
}

/* The number that is printed for the layer: sqrt(N/dh) (4 c + 1) ||W_Q|| ||W_V|| ||W_O|| for one head. */
static double printed(int64_t n, int64_t dh, double wq, double wv, double wo)
{
    return sqrt((double)n / (double)dh) * (4 * up_lambert((double)(n - 1)).v + 1) * wq * wv * wo;
}

/* T14: W_Q = 10, all else 1: slopes grow like ||W_Q||^2. */
static double scaled(int64_t n)
{
    law l;
    law_begin(&l, build(1, 1, true), (taut_shape){ 1, n, 1 });
    const double w[] = { 10, 1, 1 };
    for (int i = 0; i < 3; i++) *(double *)l.seen[i]->value = w[i];
    const double found = law_climb(&l, TAUT_NORM_FLAT, 0.3, 300), bound = law_ask(&l, TAUT_NORM_FLAT, 1).lip.v;
    CHECK(found > printed(n, 1, 10, 1, 1), "T14: the printed bound is beaten");
    CHECK_LE(found, bound, "T14: ours is not");
    law_end(&l);
    return found / bound;
}

/* T14: without A, W_Q = e_1, W_V = e_2: the slope at ((0.4, 0), (-0.4, t)) grows like t. */
static void unbounded(void)
{
    law l;
    law_begin(&l, build(2, 2, false), (taut_shape){ 1, 2, 2 });
    const double q[] = { 1, 0, 0, 0 }, v[] = { 0, 1, 0, 0 }, o[] = { 1, 0, 0, 0 };
    memcpy(l.seen[0]->value, q, sizeof q), memcpy(l.seen[1]->value, v, sizeof v), memcpy(l.seen[2]->value, o, sizeof o);
    const double want[] = { 1, 7.24, 72.3, 723 };
    for (int i = 0; i < 4; i++) {
        const double x[] = { 0.4, 0, -0.4, pow(10, i) };
        memcpy(l.x, x, sizeof x);
        law_forward(&l, l.y);
        CHECK_NEAR(slope_at(&l, TAUT_NORM_FLAT, 60) / want[i], 1, 0.02, "T14: not Lipschitz without A");
    }
    CHECK(isinf(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v), "and no bound is given");
    law_end(&l);
}

int main(void)
{
    test_begin();
    const double lambert[] = { 0, 0.27846454276107380, 0.46305551336554884 }; /* W0(0), W0(1/e), W0(2/e) */
    for (int i = 0; i < 3; i++) CHECK_NEAR(up_lambert(i).v, lambert[i], 1e-13, "W0");
    double most = 0;
    for (int64_t n = 2; n <= 8; n *= 2) most = fmax(most, scaled(n));
    CHECK_LE(0.25, most, "witness: a good part of the bound is attained");
    unbounded();
    laws(random_l2, 1);
    return test_end("l2attention", "largest slope / bound = %.3f", most);
}
