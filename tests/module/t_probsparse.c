/* ProbSparse attention: the laws (no Lipschitz constant exists, and none is claimed), a jump that shows why, that with a large
 * factor it is softmax attention, and draws that are the same for any thread count and other ones in every step. */
#include "laws.h"

static taut_probsparse_spec any(taut_shape in)
{
    return (taut_probsparse_spec){ .width = in.d,
                                   .heads = in.d % 2 == 0 && rng_int(0, 1) ? 2 : 1,
                                   .factor = rng_int(1, 2),
                                   .scale = 0.5 + rng_unit(),
                                   .out = 0.7,
                                   .causal = rng_int(0, 1),
                                   .bias = rng_int(0, 1),
                                   .seed = (uint64_t)rng_int(0, 99) };
}

static taut_module *make(taut_shape in)
{
    const taut_probsparse_spec s = any(in);
    return taut_probsparse(&s);
}

static void all_look(bool causal)
{
    const taut_shape in = { 1, 6, 4 };
    law l, a;
    law_begin(&l,
              taut_probsparse(&(taut_probsparse_spec){
                  .width = 4, .heads = 2, .factor = 9, .scale = 0.8, .out = 1, .causal = causal }),
              in);
    law_begin(
        &a, taut_attention(&(taut_attention_spec){ .width = 4, .heads = 2, .scale = 0.8, .out = 1, .causal = causal }),
        in);
    for (int i = 0; i < l.params; i++) memcpy(a.seen[i]->value, l.seen[i]->value, (size_t)(l.seen[i]->rows * 4) * 8);
    memcpy(a.x, l.x, (size_t)l.nx * 8);
    law_forward(&a, a.y);
    law_forward(&l, l.y);
    for (int64_t i = 0; i < l.ny; i++) CHECK_NEAR(l.y[i], a.y[i], 1e-14, "softmax attention");
    law_end(&l);
    law_end(&a);
}

/* Two tokens 1 and x of one feature, ceil(ln 2) = 1 of them looks.  Where both are judged by x, the first looks for x from 0 to
 * 1 and the second elsewhere: at x = 0 the output of either jumps between 1/2, the mean, and a softmax. */
static double jump(uint64_t seed)
{
    law l;
    double far = 0, before = NAN;
    law_begin(&l,
              taut_probsparse(
                  &(taut_probsparse_spec){ .width = 1, .heads = 1, .factor = 1, .scale = 1, .out = 1, .seed = seed }),
              (taut_shape){ 1, 2, 1 });
    for (int i = 0; i < 4; i++) *(double *)l.seen[i]->value = 1;
    for (double x = -0.1; x < 0.1; x += 1e-4) {
        l.x[0] = 1, l.x[1] = x;
        law_forward(&l, l.y);
        far = fmax(far, fabs(l.y[0] - before)); /* fmax knows of no NaN */
        before = l.y[0];
    }
    CHECK(law_ask(&l, TAUT_NORM_TOKENS, 3).lip.v == INFINITY && law_ask(&l, TAUT_NORM_FLAT, 3).lip.v == INFINITY,
          "no constant is claimed");
    law_end(&l);
    return far;
}

static void draws(void)
{
    law l;
    law_begin(&l, taut_probsparse(&(taut_probsparse_spec){ .width = 4, .heads = 2, .factor = 1, .scale = 1, .out = 1 }),
              (taut_shape){ 2, 30, 4 });
    double *y = doubles(l.ny);
    int moved = 0;
    for (uint64_t step = 0; step < 8; step++) {
        l.run.phase.key = step;
        taut_threads_set(1);
        law_forward(&l, l.y);
        if (step > 0) moved += memcmp(y, l.y, (size_t)l.ny * 8) != 0;
        memcpy(y, l.y, (size_t)l.ny * 8);
        taut_threads_set(3);
        law_forward(&l, l.y);
        CHECK(memcmp(y, l.y, (size_t)l.ny * 8) == 0, "the same for any thread count");
    }
    taut_threads_set(0);
    CHECK(moved >= 4, "other keys in another step");
    free(y);
    law_end(&l);
}

int main(void)
{
    test_begin();
    laws(make, 1);
    laws_hold(taut_probsparse(&(taut_probsparse_spec){
                  .width = 4, .heads = 2, .factor = 1, .scale = 1, .out = 1, .bias = true, .causal = true }),
              (taut_shape){ 2, 9, 4 });
    all_look(false);
    all_look(true);
    double far = 0;
    for (uint64_t seed = 0; seed < 16; seed++) far = fmax(far, jump(seed));
    CHECK_LE(0.2, far, "a step of 1e-4 moves the output by a fifth");
    draws();
    return test_end("probsparse", "laws, softmax, a jump");
}
