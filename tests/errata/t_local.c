/* Local bounds as printed in "Pay Attention to Attention Distribution": Theorem 1 (quoted from Specformer) fails
 * for short inputs, and Remark 1 takes a value at one point for a bound around it.  l2 over all tokens, one head,
 * scale 1.  And the interval rule for softmax of a verification library, whose guard against 0/0 moves the upper
 * bound down. */
#include "bound/scalar.h"
#include "laws.h"

/* N (N+1) (|X|_F + R)^2 ( |V| |Q| |K| + |V| ) */
static double printed_theorem1(double n, double x, double r, double q, double k, double v)
{
    return n * (n + 1) * (x + r) * (x + r) * (v * q * k + v);
}

/* |V| ( |P| + 2 |X|^2 |A| max |M_i| ), sound at the point itself */
static double printed_pointwise(double v, double p, double x, double a, double m)
{
    return v * (p + 2 * x * x * a * m);
}

/* e^u_i / (e^u_i + sum of the others' e^l_j + 1e-12), shifted by the largest u */
static double printed_softmax_upper(double u, double other_l, double largest)
{
    const double eu = exp(u - largest);
    return eu / (exp(other_l - largest) + eu + 1e-12);
}

static void begin(law *l, int64_t d, int64_t tokens, double a)
{
    law_begin(l, taut_attention(&(taut_attention_spec){ .width = d, .heads = 1, .scale = 1, .out = 1 }),
              (taut_shape){ 1, tokens, d });
    for (int p = 0; p < 4; p++)
        for (int64_t i = 0; i < d * d; i++) ((double *)l->seen[p]->value)[i] = i % (d + 1) ? 0 : p == 0 ? a : 1;
}

static double steepest(law *l, int steps)
{
    law_forward(l, l->y);
    fill(l->u, l->nx);
    return slope_flat(l, steps);
}

/* Tokens of size 1e-3, identity weights: attention is nearly the mean, of norm 1. */
static void short_input(void)
{
    law l;
    begin(&l, 2, 2, 1);
    const double x[] = { 6e-4, 0, 0, 8e-4 };
    memcpy(l.x, x, sizeof x);
    const double found = steepest(&l, 200), printed = printed_theorem1(2, 1e-3, 0, 1, 1, 1),
                 ours = law_ask(&l, TAUT_NORM_FLAT, 1e-3).lip.v;
    CHECK_NEAR(found, 1, 1e-5, "Theorem 1: attained");
    CHECK(printed < found && found <= ours, "Theorem 1: printed < found <= ours");
    printf("Theorem 1: %.3g < %.6f <= %.6f; ", printed, found, ours);
    law_end(&l);
}

/* A = 1e4, tokens 0.01, 1, -1.  Every row is saturated, so the value at this point is sqrt 2 (P copies token 1 twice);
 * a hundredth away, at 0, 1, -1, the first query weighs all keys alike, and the slope is 2/3 of A. */
static void neighbourhood(void)
{
    law l;
    begin(&l, 1, 3, 1e4);
    l.x[0] = 0.01, l.x[1] = 1, l.x[2] = -1;
    const double here = steepest(&l, 100);
    const double printed = printed_pointwise(1, sqrt(2), sqrt(2 + 1e-4), 1e4, exp(-90));
    l.x[0] = 0;
    const double there = steepest(&l, 100), ours = law_ask(&l, TAUT_NORM_FLAT, 1).lip.v;
    CHECK_LE(here, printed, "Remark 1: the value holds at its point");
    CHECK_NEAR(there, 2e4 / 3, 10, "Remark 1: a hundredth away");
    CHECK(printed < there && there <= ours, "Remark 1: printed < found <= ours");
    printf("Remark 1: %.4g < %.5g <= %.5g; ", printed, there, ours);
    law_end(&l);
}

/* Logits in [-100, 0] and at -40.  The second's share is largest when the first is at -100: 1 - e^-60. */
static void interval(void)
{
    const double printed = printed_softmax_upper(-40, -100, 0), found = 1 / (1 + exp(-60)),
                 ours = up_div((taut_up){ 1 }, lo_add((taut_lo){ 1 }, lo_exp(-60))).v;
    CHECK(printed < 1e-5 && found <= ours && ours <= 1 + 1e-15, "the guarded quotient is no upper bound");
    printf("interval softmax: %.3g < %.6f <= %.6f\n", printed, found, ours);
}

int main(void)
{
    test_begin();
    short_input();
    neighbourhood();
    interval();
    return test_end("local", "3 formulas beaten, ours hold");
}
