/* The parts a forecaster is made of: some tokens, neighbours, fixed positions, two parts, asking.  Each bound is attained. */
#include "laws.h"

static taut_module *any_tokens(taut_shape in)
{
    const int64_t count = rng_int(1, in.t);
    return taut_tokens(rng_int(0, in.t - count), count);
}
static taut_module *any_neighbours(taut_shape in) { return taut_neighbours(rng_int(0, in.d)); }
static taut_module *any_sinusoid(taut_shape in) { return taut_sinusoid(in.t + rng_int(0, 3), in.d); }
static taut_module *any_parts(taut_shape in)
{
    const int64_t out = rng_int(1, 4);
    return taut_parts(rng_int(0, in.t), taut_linear(out, in.d, true, TAUT_INIT_NORMAL, 1),
                      taut_linear(out, in.d, false, TAUT_INIT_NORMAL, 1));
}
static taut_module *any_ask(taut_shape in)
{
    const int64_t first = rng_int(1, in.t);
    const char *const names[] = { "all", "some" };
    taut_module *const row[] = { taut_linear(in.d, in.d, true, TAUT_INIT_NORMAL, 1), taut_tokens(0, first) };
    return taut_askers(first, taut_sequence(2, names, row));
}

static law attained(taut_module *m)
{
    law l;
    law_begin(&l, m, (taut_shape){ 2, 4, 4 });
    for (int i = 0; i < l.params; i++) /* identities */
        for (int64_t j = 0; j < l.seen[i]->rows * l.seen[i]->cols; j++)
            ((double *)l.seen[i]->value)[j] = l.seen[i]->rows > 1 && j % (l.seen[i]->cols + 1) == 0 ? 2 : 0;
    law_forward(&l, l.y);
    for (int n = 0; n < 2; n++) {
        const double found = slope_at(&l, (taut_norm)n, 300), proved = law_ask(&l, (taut_norm)n, 2).lip.v;
        CHECK_LE(found, proved * (1 + 1e-12), "witness: sound");
        CHECK_LE(proved * (1 - 1e-8), found, "witness: attained");
    }
    return l;
}

static void circle(void)
{
    law l = attained(taut_neighbours(4));
    for (int64_t e = 0; e < 2; e++)
        for (int64_t t = 0; t < 4; t++)
            for (int64_t c = 0; c < 12; c++)
                CHECK(l.y[(e * 4 + t) * 12 + c] == l.x[(e * 4 + (t + c / 4 + 3) % 4) * 4 + c % 4],
                      "neighbours in a circle");
    law_end(&l);
}

static void waves(void)
{
    law l = attained(taut_sinusoid(4, 4));
    CHECK_NEAR(l.y[4 + 0] - l.x[4 + 0], sin(1), 1e-15, "sine");
    CHECK_NEAR(l.y[4 + 3] - l.x[4 + 3], cos(0.01), 1e-15, "cosine");
    law_end(&l);
}

int main(void)
{
    law l;
    test_begin();
    laws(any_tokens, 1);
    laws(any_neighbours, 1);
    laws(any_sinusoid, 1);
    laws(any_parts, 1);
    laws(any_ask, 1);
    l = attained(taut_tokens(1, 2)), law_end(&l);
    l = attained(
        taut_parts(1, taut_linear(4, 4, true, TAUT_INIT_NORMAL, 1), taut_linear(4, 4, true, TAUT_INIT_NORMAL, 1)));
    law_end(&l);
    const char *const names[] = { "all", "some" };
    taut_module *const row[] = { taut_linear(4, 4, false, TAUT_INIT_NORMAL, 1), taut_tokens(0, 2) };
    l = attained(taut_askers(2, taut_sequence(2, names, row))), law_end(&l);
    circle();
    waves();
    return test_end("forecast", "worst slope / bound = %.6f", law_worst);
}
