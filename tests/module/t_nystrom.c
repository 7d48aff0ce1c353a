/* Nystromformer: the laws (no Lipschitz constant is claimed); softmax attention where every token is a landmark and the steps are
 * many; landmarks that are means of runs of unequal length; and a witness: two landmarks that come together make A singular, and
 * the slope at the same input grows with every step towards the inverse. */
#include "base/float32.h"
#include "laws.h"

static taut_around around(int64_t width, int64_t heads, int64_t queries)
{
    return (taut_around){ .width = width, .heads = heads, .queries = queries, .scale = 0.8, .out = 1 };
}

static taut_module *make(taut_shape in)
{
    taut_around a = around(in.d, in.d % 2 == 0 && rng_int(0, 1) ? 2 : 1, in.t > 1 && rng_int(0, 1) ? 1 : 0);
    a.bias = rng_int(0, 1), a.out = 0.7;
    const int64_t landmarks = rng_int(1, 4);
    return taut_nystrom(&a, landmarks, (int)rng_int(0, 3));
}

/* Every token a landmark: F = A = G, and F Z G v with Z = A^-1 is softmax attention. */
static double from_softmax(int steps)
{
    const taut_shape in = { 1, 3, 4 };
    const taut_around r = around(4, 1, 0);
    law l, a;
    rng_state = 11;
    law_begin(&l, taut_nystrom(&r, 3, steps), in);
    law_begin(&a, taut_attention(&(taut_attention_spec){ .width = 4, .heads = 1, .scale = 0.8, .out = 1 }), in);
    for (int i = 0; i < l.params; i++) {
        for (int j = 0; j < 16 && i < 2; j++) ((double *)l.seen[i]->value)[j] = 3 * (j % 5 == 0); /* A near to I */
        memcpy(a.seen[i]->value, l.seen[i]->value, 16 * 8);
    }
    memcpy(a.x, l.x, (size_t)l.nx * 8);
    law_forward(&a, a.y);
    law_forward(&l, l.y);
    double far = 0;
    for (int64_t i = 0; i < l.ny; i++) far = fmax(far, fabs(l.y[i] - a.y[i]));
    law_end(&l);
    law_end(&a);
    return far;
}

/* One landmark: A = 1, Z = 1, every query gets the mean of softmax(mean of queries . k): equal answers, whatever the run. */
static void one_landmark(int64_t t)
{
    law l;
    const taut_around a = around(1, 1, 0);
    law_begin(&l, taut_nystrom(&a, 1, 12), (taut_shape){ 1, t, 1 });
    for (int i = 0; i < 4; i++) *(double *)l.seen[i]->value = 1;
    law_forward(&l, l.y);
    double mean = 0, sum = 0, top = 0;
    for (int64_t i = 0; i < t; i++) mean += l.x[i] / (double)t;
    for (int64_t i = 0; i < t; i++) {
        const double p = exp(taut_float32(0.8) * mean * l.x[i]);
        sum += p, top += p * l.x[i];
    }
    for (int64_t i = 0; i < t; i++) CHECK_NEAR(l.y[i], top / sum, 1e-12, "one landmark");
    law_end(&l);
}

/* Five tokens, two landmarks: runs of three and two. */
static void runs(void)
{
    law l, a;
    const taut_around r = around(1, 1, 0), two = around(1, 1, 0);
    law_begin(&l, taut_nystrom(&r, 2, 0), (taut_shape){ 1, 5, 1 });
    law_begin(&a, taut_nystrom(&two, 2, 0), (taut_shape){ 1, 4, 1 });
    for (int i = 0; i < 4; i++)
        *(double *)l.seen[i]->value = *(double *)a.seen[i]->value = i == 3 ? 1 : i == 2 ? 0.5 : 1;
    for (int64_t i = 0; i < 5; i++) l.x[i] = i < 3 ? 0.7 : -0.4;
    for (int64_t i = 0; i < 4; i++) a.x[i] = i < 2 ? 0.7 : -0.4;
    law_forward(&l, l.y);
    law_forward(&a, a.y);
    const double s = taut_float32(0.8), x[] = { 0.7, -0.4 };
    double A[2][2], g[2], z[2] = { 0, 0 };
    for (int i = 0; i < 2; i++) {
        const double one = exp(s * x[i] * x[0]), other = exp(s * x[i] * x[1]);
        A[i][0] = one / (one + other), A[i][1] = other / (one + other);
        g[i] = 0.5 * (3 * one * x[0] + 2 * other * x[1]) / (3 * one + 2 * other);
    }
    for (int i = 0; i < 2; i++) z[i] = (A[0][i] * g[0] + A[1][i] * g[1]) / 2;
    for (int64_t i = 0; i < 5; i++) {
        const int at = i >= 3;
        CHECK_NEAR(l.y[i], A[at][0] * z[0] + A[at][1] * z[1], 1e-13, "F (A^T/2) G v");
    }
    law_end(&l);
    law_end(&a);
}

/* Runs (3, -3 + e) and (3, -3): the landmarks are near to each other, so that A is nearly singular, and the queries are not. */
static double steep(int steps)
{
    law l;
    const taut_around a = around(1, 1, 0);
    law_begin(&l, taut_nystrom(&a, 2, steps), (taut_shape){ 1, 4, 1 });
    for (int i = 0; i < 4; i++) *(double *)l.seen[i]->value = 1;
    l.x[0] = l.x[2] = 3, l.x[1] = -3 + 0.1, l.x[3] = -3;
    law_forward(&l, l.y);
    const double found = slope_at(&l, TAUT_NORM_FLAT, 200);
    for (int n = 0; n < 2; n++) CHECK(law_ask(&l, (taut_norm)n, 2).lip.v == INFINITY, "no constant is claimed");
    law_end(&l);
    return found;
}

int main(void)
{
    test_begin();
    laws(make, 1);
    CHECK_LE(from_softmax(16), 1e-9, "softmax attention");
    CHECK_LE(1e-2, from_softmax(0), "and not before the steps");
    for (int64_t t = 1; t < 6; t++) one_landmark(t);
    runs();
    const double few = steep(0), many = steep(12);
    CHECK_LE(10 * few, many, "steps towards the inverse of a nearly singular matrix make the output steeper");
    return test_end("nystrom", "laws, softmax, slopes from %.2f to %.2f", few, many);
}
