/* Clustered attention: the laws (no Lipschitz constant exists, and none is claimed), a jump that shows why, and
 * that with a cluster for each key it is softmax attention. */
#include "laws.h"

static taut_clustered_spec any(taut_shape in)
{
    const int64_t heads = in.d % 2 == 0 && rng_int(0, 1) ? 2 : 1;
    return (taut_clustered_spec){ .width = in.d,
                                  .heads = heads,
                                  .queries = in.t > 1 ? rng_int(0, 1) : 0,
                                  .groups = rng_int(1, 3),
                                  .steps = (int)rng_int(0, 2),
                                  .first = rng_int(0, 1),
                                  .scale = 0.5 + rng_unit(),
                                  .out = 0.7,
                                  .bias = rng_int(0, 1) };
}

static taut_module *make(taut_shape in)
{
    const taut_clustered_spec s = any(in);
    return taut_clustered(&s);
}

/* As many clusters as keys: softmax attention with the same weights. */
static void singletons(void)
{
    const taut_shape in = { 1, 4, 4 };
    law l, a;
    rng_state = 5;
    law_begin(&l, taut_clustered(&(taut_clustered_spec){ .width = 4, .heads = 2, .groups = 4, .scale = 0.8, .out = 1 }),
              in);
    rng_state = 5;
    law_begin(&a, taut_attention(&(taut_attention_spec){ .width = 4, .heads = 2, .scale = 0.8, .out = 1 }), in);
    for (int i = 0; i < l.params; i++) memcpy(a.seen[i]->value, l.seen[i]->value, (size_t)(l.seen[i]->rows * 4) * 8);
    memcpy(a.x, l.x, (size_t)l.nx * 8);
    law_forward(&a, a.y);
    law_forward(&l, l.y);
    for (int64_t i = 0; i < l.ny; i++) CHECK_NEAR(l.y[i], a.y[i], 1e-14, "one key a cluster");
    law_end(&l);
    law_end(&a);
}

/* Centres are the keys 0 and 1, and Lloyd is off: as the third key crosses 1/2, o jumps. */
static void jump(void)
{
    law l;
    law_begin(&l, taut_clustered(&(taut_clustered_spec){ .width = 1, .heads = 1, .groups = 2, .scale = 1, .out = 1 }),
              (taut_shape){ 1, 3, 1 });
    double y[2];
    for (int i = 0; i < 4; i++) *(double *)l.seen[i]->value = 1;
    for (int i = 0; i < 2; i++) {
        l.x[0] = 0, l.x[1] = 1, l.x[2] = 0.5 + (i ? 1e-9 : -1e-9);
        law_forward(&l, l.y);
        y[i] = l.y[1];
    }
    CHECK(fabs(y[1] - y[0]) > 0.01, "the output jumps");
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 3).lip.v == INFINITY, "and no constant is claimed");
    law_end(&l);
}

int main(void)
{
    test_begin();
    laws(make, 1);
    singletons();
    jump();
    return test_end("clustered", "laws, one key a cluster, a jump");
}
