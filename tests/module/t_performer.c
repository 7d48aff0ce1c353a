/* Performer: the laws; what it estimates, softmax attention, with an error that falls with the number of features; one feature a
 * head, where all queries get the same answer; and that large keys, which make plain features overflow, do no harm. */
#include "laws.h"

static taut_around around(int64_t width, int64_t heads, int64_t queries)
{
    return (taut_around){ .width = width, .heads = heads, .queries = queries, .scale = 0.5, .out = 1 };
}

static taut_module *make(taut_shape in)
{
    taut_around a = around(in.d, in.d % 2 == 0 && rng_int(0, 1) ? 2 : 1, in.t > 1 && rng_int(0, 1) ? 1 : 0);
    a.bias = rng_int(0, 1), a.out = 0.7, a.scale = rng_unit();
    const int64_t features = rng_int(1, 5);
    return taut_performer(&a, features, (uint64_t)rng_int(0, 99));
}

/* How far from softmax attention with the same weights, relative to it. */
static double far_from_softmax(int64_t features, uint64_t seed)
{
    const taut_shape in = { 1, 12, 8 };
    const taut_around r = around(8, 2, 0);
    law l, a;
    rng_state = 5;
    law_begin(&l, taut_performer(&r, features, seed), in);
    law_begin(&a, taut_attention(&(taut_attention_spec){ .width = 8, .heads = 2, .scale = 0.5, .out = 1 }), in);
    for (int i = 0; i < l.params; i++) memcpy(a.seen[i]->value, l.seen[i]->value, 64 * 8);
    memcpy(a.x, l.x, (size_t)l.nx * 8);
    law_forward(&a, a.y);
    law_forward(&l, l.y);
    double far = 0, all = 0;
    for (int64_t i = 0; i < l.ny; i++) far += pow(l.y[i] - a.y[i], 2), all += a.y[i] * a.y[i];
    law_end(&l);
    law_end(&a);
    return sqrt(far / all);
}

static void one_feature(void)
{
    law l;
    const taut_around a = around(4, 1, 0);
    law_begin(&l, taut_performer(&a, 1, 3), (taut_shape){ 1, 5, 4 });
    for (int64_t i = 4; i < l.ny; i++) CHECK_NEAR(l.y[i], l.y[i % 4], 1e-14, "every query alike");
    law_end(&l);
}

static void large_keys(void)
{
    law l;
    const taut_around a = around(4, 1, 0);
    law_begin(&l, taut_performer(&a, 6, 3), (taut_shape){ 1, 5, 4 });
    for (int64_t i = 0; i < l.nx; i++) l.x[i] *= 1e3;
    law_forward(&l, l.y);
    for (int64_t i = 0; i < l.ny; i++) CHECK(isfinite(l.y[i]), "no feature overflows");
    CHECK_LE(longest_token(l.y, l.plan.out), law_ask(&l, TAUT_NORM_FLAT, longest_token(l.x, l.in)).size.v,
             "a mean of values");
    law_end(&l);
}

int main(void)
{
    test_begin();
    laws(make, 1);
    double few = 0, many = 0;
    for (uint64_t seed = 0; seed < 8; seed++)
        few += far_from_softmax(8, seed) / 8, many += far_from_softmax(2048, seed) / 8;
    CHECK_LE(many, few / 4, "more features, nearer to softmax");
    CHECK_LE(many, 0.1, "and near it");
    one_feature();
    large_keys();
    return test_end("performer", "worst slope / bound = %.6f, from softmax %.3f (8 features) to %.4f (2048)", law_worst,
                    few, many);
}
