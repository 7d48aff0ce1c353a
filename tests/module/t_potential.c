/* The convex potential layer.  Witnesses: s = ||W||^2 reflects the top singular vector (slope -1, Lip 1); s
 * half of that has slope -3, and s < 0 grows.  Corners: s = 0, NaN, W = 0. */
#include "residual_layer.h"

/* s away from 0, where differences of 1/s are no derivative; sometimes right at ||W||^2, sometimes < 0. */
static void settle(law *l)
{
    taut_param *s = ending(l, "scale"), *w = NULL;
    for (int i = 1; i < l->params; i++)
        if (s->above == l->seen[i]) w = l->seen[i];
    w = w ? w : l->seen[0];
    CHECK(s->above == w, "s knows its matrix");
    const double *v = taut_ref_values(w), f = norm(v, w->rows * w->cols);
    *(double *)s->value = (rng_int(0, 3) ? 1 : -1) * (0.05 + f * f * (0.2 + 2 * rng_unit()));
}

static law begin(int64_t hidden, int64_t width, const double *w, double scale, taut_curve curve)
{
    law l;
    law_begin(&l, taut_potential(&(taut_potential_spec){ .width = width, .hidden = hidden, .curve = curve }),
              (taut_shape){ 1, 2, width });
    memcpy(l.seen[0]->value, w, (size_t)(hidden * width) * 8);
    *(double *)ending(&l, "scale")->value = scale;
    return l;
}

static void witness(double scale, double lip)
{
    static const double w[] = { 0, 2, 1, 0 };
    law l = begin(2, 2, w, scale, TAUT_RELU);
    for (int64_t i = 0; i < l.nx; i++) l.x[i] = 1;
    law_forward(&l, l.y);
    for (int n = 0; n < 2; n++) {
        const double proved = law_ask(&l, (taut_norm)n, 2).lip.v;
        CHECK_NEAR(proved, lip, 1e-8 * lip, "witness: bound");
        CHECK_LE(slope_at(&l, (taut_norm)n, 300), proved * (1 + 1e-12), "witness: sound");
        CHECK_NEAR(slope_at(&l, (taut_norm)n, 300), lip, 1e-8 * lip, "witness: attained");
    }
    law_end(&l);
}

static void corners(void)
{
    static const double w[] = { 1, 0, 0, 1 }, zero[4] = { 0 };
    law l = begin(2, 2, w, 1 + 1e-6, TAUT_TANH);
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v == 1, "s above ||W||^2: exactly 1");
    *(double *)l.seen[1]->value = 0;
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v == INFINITY, "s = 0");
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).size.v == INFINITY, "s = 0");
    *(double *)l.seen[1]->value = NAN;
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v == INFINITY, "s NaN");
    *(double *)l.seen[1]->value = 1;
    *(double *)l.seen[0]->value = INFINITY;
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v == INFINITY, "W infinite");
    law_end(&l);
    l = begin(2, 2, zero, 1, TAUT_GELU);
    CHECK(law_ask(&l, TAUT_NORM_TOKENS, 3).lip.v == 1, "W = 0: the identity");
    *(double *)l.seen[1]->value = 0;
    CHECK(law_ask(&l, TAUT_NORM_TOKENS, 3).lip.v == INFINITY, "0/0 is no identity");
    law_end(&l);
}

static double secants(void)
{
    double worst = 0;
    for (case_no = 0; case_no < effort(60); case_no++) {
        const taut_shape in = { 1, rng_int(1, 3), rng_int(1, 5) };
        const taut_potential_spec spec = any_spec(in);
        law l;
        law_begin(&l, taut_potential(&spec), in);
        settle(&l);
        worst = fmax(worst, secant(&l, (taut_norm)(case_no % 2), 10));
        law_end(&l);
    }
    return worst;
}

int main(void)
{
    test_begin();
    trees(taut_potential, settle);
    witness(4, 1);
    witness(2, 3);
    witness(-1, 9);
    corners();
    const double far = secants();
    return test_end("potential", "worst slope / bound = %.6f, secants %.6f", law_worst, far);
}
