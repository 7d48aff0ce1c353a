/* Sketched features.  Witness: degree 1, an identity for W, short inputs: the slope is 1/(floor tau).  The
 * deterministic reference shares the weights and nothing else. */
#include "laws.h"
#include "stated.h"

static taut_sketch_spec any(int64_t in)
{
    taut_sketch_spec s = { .in = in,
                           .out = rng_int(1, 4),
                           .degrees = (int)rng_int(1, 3),
                           .floor = pow(2, (double)rng_int(-3, 1)),
                           .tau = pow(2, (double)rng_int(-1, 1)),
                           .seed = rng_next(),
                           .fixed = rng_int(0, 3) == 0 };
    for (int i = 0; i < s.degrees; i++) {
        s.degree[i] = i + 1;
        s.size[i] = (int64_t)1 << rng_int(s.fixed ? 3 : 1, 4);
    }
    return s;
}

static taut_module *make(taut_shape in)
{
    const taut_sketch_spec s = any(in.d);
    return taut_sketch(&s);
}

static void witness(void)
{
    static const double eye[] = { 1, 0, 0, 1 };
    law l;
    law_begin(
        &l,
        taut_sketch(&(taut_sketch_spec){
            .in = 2, .out = 2, .degrees = 1, .degree = { 1 }, .size = { 2 }, .floor = 0.25, .tau = 2, .fixed = true }),
        (taut_shape){ 1, 2, 2 });
    memcpy(l.seen[0]->value, eye, sizeof eye);
    *(double *)l.seen[1]->value = -3;
    for (int64_t i = 0; i < l.nx; i++) l.x[i] *= 0.1;
    law_forward(&l, l.y);
    for (int n = 0; n < 2; n++) {
        CHECK_STATED(law_ask(&l, (taut_norm)n, 1).lip.v, 6, 2, 1e-9, "witness: bound");
        CHECK_NEAR(slope_at(&l, (taut_norm)n, 100), 6, 1e-9, "witness: attained");
        CHECK_STATED(law_ask(&l, (taut_norm)n, 1).size.v, 1.5, 2, 1e-9, "witness: region");
    }
    *(double *)l.seen[0]->value = NAN;
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v == INFINITY, "NaN in a weight");
    law_end(&l);
}

/* One seed, one function; another seed, another. */
static void seeds(void)
{
    double y[3][4];
    for (int i = 0; i < 3; i++) {
        law l;
        rng_state = 99;
        law_begin(&l,
                  taut_sketch(&(taut_sketch_spec){ .in = 6,
                                                   .out = 4,
                                                   .degrees = 2,
                                                   .degree = { 1, 2 },
                                                   .size = { 8, 16 },
                                                   .floor = 1e-3,
                                                   .tau = 1,
                                                   .seed = i == 2 ? 8 : 7 }),
                  (taut_shape){ 1, 1, 6 });
        memcpy(y[i], l.y, sizeof y[i]);
        law_end(&l);
    }
    CHECK(memcmp(y[0], y[1], sizeof *y) == 0 && memcmp(y[0], y[2], sizeof *y) != 0, "the seed names the hashing");
}

int main(void)
{
    test_begin();
    laws(make, 1);
    witness();
    seeds();
    return test_end("sketch", "worst slope / bound = %.6f", law_worst);
}
