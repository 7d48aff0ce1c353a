/* The leaves with nothing to them: scale, position, dropout, pooling.  Each bound is attained. */
#include "laws.h"
#include "stated.h"

static taut_module *any_scale(taut_shape in)
{
    (void)in;
    return taut_scale(3 * rng_pm());
}
static taut_module *any_position(taut_shape in) { return taut_position(in.t + rng_int(0, 2), in.d, 1); }
static taut_module *any_dropout(taut_shape in)
{
    (void)in;
    return taut_dropout(0.5, 1);
}
static taut_module *any_pool(taut_shape in)
{
    (void)in;
    const int kind = rng_int(0, 4);
    return kind == 0   ? taut_pool_mean()
           : kind == 1 ? taut_pool_first()
           : kind == 2 ? taut_pool_mean_any()
           : kind == 3 ? taut_l2pool()
                       : taut_concat();
}

static void attained_with(taut_module *m, int64_t tokens)
{
    law l;
    law_begin(&l, m, (taut_shape){ 1, tokens, 4 });
    for (int n = 0; n < 2; n++) {
        const double found = slope_at(&l, (taut_norm)n, 300), proved = law_ask(&l, (taut_norm)n, 2).lip.v;
        CHECK_LE(found, proved * (1 + 1e-12), "witness: sound");
        CHECK_LE(proved, stated_at_most(found * (1 + 1e-9), 1), "witness: attained");
    }
    law_end(&l);
}

static void attained(taut_module *m) { attained_with(m, 3); }

/* What is proved of the mean of a text of up to 3 tokens holds for a text of one, whose slope is 1. */
static void shorter(void)
{
    law l;
    law_begin(&l, taut_pool_mean_any(), (taut_shape){ 1, 3, 4 });
    for (int n = 0; n < 2; n++) CHECK_LE(1, law_ask(&l, (taut_norm)n, 2).lip.v, "the mean of one token");
    law_end(&l);
    attained_with(taut_pool_mean_any(), 1);
}

/* A change along tokens of one length attains sqrt(t) of the largest token, and 1 of all of them together. */
static void along_itself(void)
{
    law l;
    law_begin(&l, taut_l2pool(), (taut_shape){ 1, 3, 4 });
    double y[4], moved = 0, all = 0;
    for (int64_t i = 0; i < 12; i++) l.x[i] = (double)(i % 4) - 1.5, all += l.x[i] * l.x[i];
    law_forward(&l, y);
    for (int64_t i = 0; i < 12; i++) l.x[i] *= 1.25;
    law_forward(&l, l.y);
    for (int c = 0; c < 4; c++) moved += (l.y[c] - y[c]) * (l.y[c] - y[c]);
    CHECK_NEAR(sqrt(moved), 0.25 * sqrt(all), 1e-14, "flat: 1");
    CHECK_LE(law_ask(&l, TAUT_NORM_TOKENS, 4).lip.v,
             stated_at_most(sqrt(moved) / (0.25 * sqrt(all / 3)) * (1 + 1e-9), 1), "tokens");
    CHECK_LE(law_ask(&l, TAUT_NORM_FLAT, 4).lip.v, stated_at_most(1, 1), "flat: stated");
    law_end(&l);
}

/* With coins, forward, jvp and vjp must toss the same ones, and the mean must stay. */
static void coins(void)
{
    law l;
    law_begin(&l, taut_dropout(0.25, 7), (taut_shape){ 4, 50, 50 });
    l.run.phase.key = 99;
    law_forward(&l, l.y);
    law_adjoint(&l);
    law_derivative(&l);
    int64_t zeros = 0;
    for (int64_t i = 0; i < l.ny; i++) {
        zeros += l.y[i] == 0;
        if (l.y[i] != 0) CHECK_NEAR(l.y[i], l.x[i] / 0.75, 1e-12, "what stays is scaled");
    }
    CHECK_NEAR((double)zeros / (double)l.ny, 0.25, 0.02, "how many are dropped");
    law_end(&l);
}

int main(void)
{
    test_begin();
    laws(any_scale, 1);
    laws(any_position, 1);
    laws(any_dropout, 1);
    laws(any_pool, 1);
    attained(taut_scale(-1.5));
    attained(taut_position(3, 4, 1));
    attained(taut_dropout(0.3, 1));
    attained(taut_pool_mean());
    attained(taut_pool_first());
    attained(taut_concat());
    along_itself();
    shorter();
    coins();
    return test_end("simple", "worst slope / bound = %.6f", law_worst);
}
