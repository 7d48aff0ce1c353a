/* A factor for every channel, and drop path behind it.  Witness: diagonal maps attain their largest entry. */
#include "laws.h"
#include "stated.h"

static taut_module *channel(taut_shape in) { return taut_channel(in.d, 0.5); }

static taut_module *path(taut_shape in)
{
    (void)in;
    return taut_droppath(0.5, 3);
}

static void witness(void)
{
    law l;
    law_begin(&l, taut_channel(3, 1), (taut_shape){ 1, 2, 3 });
    static const double a[] = { 0.5, -2, 1 };
    memcpy(l.seen[0]->value, a, sizeof a);
    CHECK(l.seen[0]->init == TAUT_INIT_CONSTANT && l.seen[0]->gain == 1, "where it starts");
    for (int n = 0; n < 2; n++) {
        CHECK_STATED(law_ask(&l, (taut_norm)n, 2).lip.v, 2, 2, 1e-15, "witness: bound");
        CHECK_NEAR(slope_at(&l, (taut_norm)n, 100), 2, 1e-9, "witness: attained");
    }
    ((double *)l.seen[0]->value)[1] = NAN;
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v == INFINITY, "NaN");
    law_end(&l);
}

/* One coin an example; forward, jvp and vjp toss the same; another id tosses others. */
static void coins(void)
{
    enum { N = 400, LEN = 6 };
    law l;
    law_begin(&l, taut_droppath(0.25, 7), (taut_shape){ N, 2, 3 });
    CHECK(memcmp(l.y, l.x, (size_t)l.nx * 8) == 0, "no key, no coins");
    l.run.phase.key = 99;
    law_forward(&l, l.y);
    law_adjoint(&l);
    law_derivative(&l);
    int dropped = 0;
    for (int e = 0; e < N; e++) {
        const bool gone = l.y[e * LEN] == 0;
        dropped += gone;
        for (int i = e * LEN; i < (e + 1) * LEN; i++)
            CHECK_NEAR(l.y[i], gone ? 0 : l.x[i] / 0.75, 1e-15, "all of an example or nothing");
    }
    CHECK_NEAR(dropped / (double)N, 0.25, 0.08, "how many are dropped");
    taut_module *other = taut_droppath(0.25, 8);
    taut_forward(other, &l.run, tensor_of(l.v, l.in), law_at(&l));
    CHECK(memcmp(l.v, l.y, (size_t)l.ny * 8) != 0, "another layer tosses other coins");
    taut_module_free(other);
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 2).lip.v == 1, "the network that is used has no coins");
    law_end(&l);
}

int main(void)
{
    test_begin();
    laws(channel, 1);
    laws(path, 1);
    witness();
    coins();
    return test_end("channel", "worst slope / bound = %.6f", law_worst);
}
