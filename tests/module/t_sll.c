/* The SLL layer: gradients through T, Lip 1 for any weights.  Witness: one row, T = |v|^2, is a reflection:
 * slope 1 along v and across it. */
#include "residual_layer.h"
#include "stated.h"

static void settle(law *l)
{
    taut_param *q = ending(l, "log_q");
    for (int64_t i = 0; i < q->cols; i++) ((double *)q->value)[i] = 2 * rng_pm();
}

static void always_one(void)
{
    for (case_no = 0; case_no < effort(60); case_no++) {
        const taut_shape in = { 1, 2, rng_int(1, 6) };
        taut_potential_spec spec = any_spec(in);
        spec.curve = rng_int(0, 1) ? TAUT_RELU : TAUT_TANH;
        law l;
        law_begin(&l, taut_sll(&spec), in);
        settle(&l);
        double *v = (double *)l.seen[0]->value;
        const double size = pow(10, 6 * rng_pm());
        for (int64_t i = 0; i < spec.hidden * in.d; i++) v[i] *= rng_int(0, 4) ? size : 0;
        for (int n = 0; n < 2; n++) {
            CHECK(law_ask(&l, (taut_norm)n, 3).lip.v == 1, "whatever the weights: 1");
            CHECK_LE(law_climb(&l, (taut_norm)n, 3, 8), 1 + 1e-12, "and no slope is above");
            law_worst = fmax(law_worst, secant(&l, (taut_norm)n, 10));
        }
        law_end(&l);
    }
}

static law begin(int64_t hidden, int64_t width, taut_curve curve)
{
    law l;
    law_begin(&l, taut_sll(&(taut_potential_spec){ .width = width, .hidden = hidden, .curve = curve, .bias = true }),
              (taut_shape){ 1, 2, width });
    return l;
}

static void witness(void)
{
    law l = begin(1, 3, TAUT_RELU);
    double *v = (double *)l.seen[0]->value, *b = (double *)l.seen[1]->value;
    v[0] = 3, v[1] = 0, v[2] = 4, b[0] = 10;
    for (int64_t i = 0; i < l.nx; i++) l.x[i] = 0.5;
    law_forward(&l, l.y);
    memset(l.u, 0, (size_t)l.nx * 8);
    l.u[0] = 0.6, l.u[2] = 0.8;
    law_jvp(&l);
    CHECK_NEAR(l.ju[0], -0.6, 1e-12, "reflected");
    CHECK_NEAR(l.ju[2], -0.8, 1e-12, "reflected");
    for (int n = 0; n < 2; n++) {
        const taut_answer bound = law_ask(&l, (taut_norm)n, 1);
        CHECK(bound.lip.v == 1, "witness: bound");
        CHECK_NEAR(slope_at(&l, (taut_norm)n, 50), 1, 1e-9, "witness: attained");
        CHECK_STATED(bound.size.v, 1 + 2 * 10 / 5., 2, 1e-9, "region: |x| + 2 |b| / |v|");
    }
    law_end(&l);
}

/* Two equal rows: t counts both, so the pair together is one reflection. */
static void region(void)
{
    law l = begin(2, 1, TAUT_RELU);
    double *v = (double *)l.seen[0]->value, *b = (double *)l.seen[1]->value, *q = (double *)l.seen[2]->value;
    v[0] = v[1] = 2, b[0] = b[1] = 6, q[0] = q[1] = 0.7;
    l.x[0] = 1, l.x[1] = -1;
    law_forward(&l, l.y);
    CHECK_NEAR(l.y[0], 1 - 2 * 2 * 2 * (8 / 8.), 1e-9, "t = 8 for both");
    CHECK_STATED(law_ask(&l, TAUT_NORM_FLAT, 1).size.v, 1 + 2 * sqrt(72 / 8.), 2, 1e-8, "region");
    law_end(&l);
}

static void corners(void)
{
    law l = begin(2, 2, TAUT_GELU);
    const double lip = law_ask(&l, TAUT_NORM_FLAT, 1).lip.v;
    CHECK_STATED(lip, 2 * 1.128904145185155 - 1, 1, 1e-12, "GELU's slopes leave [0, 1]");
    double *v = (double *)l.seen[0]->value;
    memset(v, 0, 4 * 8);
    law_forward(&l, l.y);
    CHECK(memcmp(l.y, l.x, (size_t)l.nx * 8) == 0, "rows of zeros do nothing");
    CHECK(isfinite(law_ask(&l, TAUT_NORM_FLAT, 1).size.v), "and have a region");
    v[1] = NAN;
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v == INFINITY, "NaN");
    v[1] = 1;
    *(double *)l.seen[2]->value = INFINITY;
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v == INFINITY, "an infinite q");
    law_end(&l);
}

int main(void)
{
    test_begin();
    trees(taut_sll, settle);
    always_one();
    witness();
    region();
    corners();
    return test_end("sll", "worst slope / bound = %.6f", law_worst);
}
