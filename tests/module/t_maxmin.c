/* Sorted groups of features.  Witness: a permutation has every singular value 1, everywhere.  Ties: forward,
 * jvp and vjp use one permutation.  Secants: no two inputs move apart, also across the kinks. */
#include "laws.h"
#include "stated.h"

/* A divisor of d, or 0 for d itself. */
static int64_t any_group(int64_t d)
{
    int64_t g = rng_int(1, d);
    while (d % g) g--;
    return g == d && rng_int(0, 1) ? 0 : g;
}

static taut_module *make(taut_shape in) { return taut_maxmin(any_group(in.d)); }

static void witness(void)
{
    law l;
    law_begin(&l, taut_maxmin(2), (taut_shape){ 1, 2, 4 });
    static const double x[] = { 1, 3, -2, -5, 0, 0, 7, 7 }, want[] = { 3, 1, -2, -5, 0, 0, 7, 7 };
    memcpy(l.x, x, sizeof x);
    law_forward(&l, l.y);
    CHECK(memcmp(l.y, want, sizeof want) == 0, "max, then min");
    law_adjoint(&l);
    fill(l.u, 8);
    law_jvp(&l);
    CHECK(l.ju[0] == l.u[1] && l.ju[1] == l.u[0], "the tangents are permuted like the values");
    for (int i = 2; i < 8; i++) CHECK(l.ju[i] == l.u[i], "and ties keep their order");
    for (int n = 0; n < 2; n++) {
        CHECK(law_ask(&l, (taut_norm)n, 2).lip.v == 1, "witness: bound");
        CHECK_NEAR(slope_at(&l, (taut_norm)n, 20), 1, 1e-12, "witness: attained");
    }
    CHECK_STATED(law_ask(&l, TAUT_NORM_FLAT, 2).size.v, 2, 1, 1e-15, "lengths stay");
    law_end(&l);
}

static void secants(void)
{
    for (case_no = 0; case_no < effort(200); case_no++) {
        const int64_t d = rng_int(1, 12);
        law l;
        law_begin(&l, taut_maxmin(any_group(d)), (taut_shape){ 1, 1, d });
        double first[12], moved[12];
        memcpy(first, l.x, (size_t)d * 8), memcpy(moved, l.y, (size_t)d * 8);
        CHECK_NEAR(norm(l.y, d), norm(l.x, d), 1e-14, "lengths stay");
        for (int64_t i = 0; i < d; i++) l.x[i] = rng_int(0, 1) ? first[i] + rng_pm() : first[d - 1 - i];
        law_forward(&l, l.y);
        double in = 0, out = 0;
        for (int64_t i = 0; i < d; i++) {
            in += (l.x[i] - first[i]) * (l.x[i] - first[i]);
            out += (l.y[i] - moved[i]) * (l.y[i] - moved[i]);
        }
        CHECK_LE(out, in * (1 + 1e-14), "sorting does not move vectors apart");
        law_end(&l);
    }
}

int main(void)
{
    test_begin();
    laws(make, 1);
    witness();
    secants();
    return test_end("maxmin", "worst slope / bound = %.6f", law_worst);
}
