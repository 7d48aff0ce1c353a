/* cosFormer: the laws; plain loops over all pairs of tokens, in self- and cross-attention; and a witness of growth: where a query
 * has almost no feature above 0 the slope is near 1/eps, as the constant is. */
#include "base/float32.h"
#include "laws.h"

static taut_around around(int64_t width, int64_t heads, int64_t queries)
{
    return (taut_around){ .width = width, .heads = heads, .queries = queries, .scale = 1, .out = 0.9 };
}

static taut_module *make(taut_shape in)
{
    taut_around a = around(in.d, in.d % 2 == 0 && rng_int(0, 1) ? 2 : 1, in.t > 1 && rng_int(0, 1) ? 1 : 0);
    a.bias = rng_int(0, 1);
    return taut_cosformer(&a, in.t + rng_int(0, 2), 0.2 + rng_unit());
}

/* One feature, all maps 1. */
static void against_loops(int64_t t, int64_t m, int64_t tokens)
{
    law l;
    const double eps = 0.25, quarter = 1.5707963267948966;
    const taut_around a = around(1, 1, m);
    law_begin(&l, taut_cosformer(&a, tokens, eps), (taut_shape){ 1, t, 1 });
    for (int i = 0; i < 4; i++) *(double *)l.seen[i]->value = 1;
    law_forward(&l, l.y);
    for (int64_t i = 0; i < l.ny; i++) {
        double top = 0, sum = 0;
        for (int64_t j = 0; j < t - m; j++) {
            const double p = fmax(l.x[i], 0) * fmax(l.x[m + j], 0) * cos(quarter * (double)(i - j) / (double)tokens);
            top += p * l.x[m + j], sum += p;
        }
        CHECK_NEAR(l.y[i], taut_float32(0.9) * top / sqrt(sum * sum + eps * eps), 1e-13, "sums over pairs");
    }
    law_end(&l);
}

/* Two tokens of one feature, 1 and -1 (with a bias so that both keys count, and values of either sign): as the query of the first
 * passes 0 its output turns on within eps. */
static double steepness(double eps, double *proved)
{
    law l;
    taut_around a = around(1, 1, 1);
    a.out = 1;
    law_begin(&l, taut_cosformer(&a, 2, eps), (taut_shape){ 1, 2, 1 });
    for (int i = 0; i < 4; i++) *(double *)l.seen[i]->value = 1;
    l.x[0] = 1e-9, l.x[1] = 1;
    law_forward(&l, l.y);
    *proved = law_ask(&l, TAUT_NORM_TOKENS, 1).lip.v;
    const double found = slope_at(&l, TAUT_NORM_TOKENS, 20);
    law_end(&l);
    return found;
}

int main(void)
{
    test_begin();
    laws(make, 1);
    for (int i = 0; i < 20; i++) against_loops(1 + i % 7 + i % 2, i % 2, 8 + i % 3);
    double proved;
    for (double eps = 1; eps > 1e-5; eps /= 4) {
        const double found = steepness(eps, &proved);
        CHECK_LE(0.9 / eps, found, "steeper as eps falls");
        CHECK_LE(found, proved, "below what is proved");
        CHECK_LE(proved, 8 / eps + 2, "which is of the same order");
    }
    return test_end("cosformer", "worst slope / bound = %.6f", law_worst);
}
