/* The sandwich at an input, on layers of all kinds: found by Lanczos <= the norm of the dense derivative <= proved; how
 * many steps Lanczos and power iteration take; batches, limits and bad input. */
#include "base/float32.h"
#include "measure/slope.h"

#include "bound/local.h"
#include "bound/oracle.h"
#include "laws.h"

static const taut_slope_options usual = { TAUT_SLOPE_LANCZOS, 128, 1e-10, 1 };

/* All columns of the derivative, one jvp each. */
static double dense(law *l)
{
    double *j = doubles(l->nx * l->ny);
    for (int64_t c = 0; c < l->nx; c++) {
        memset(l->u, 0, (size_t)l->nx * 8);
        l->u[c] = 1;
        law_jvp(l);
        for (int64_t r = 0; r < l->ny; r++) j[r * l->nx + c] = l->ju[r];
    }
    const double n = oracle_norm(j, l->ny, l->nx);
    free(j);
    return n;
}

static taut_slope slope_of(law *l, const taut_slope_options *o, double *direction)
{
    taut_probe p;
    taut_slope s = { NAN, NAN, 0 };
    CHECK(taut_probe_create(&p, l->m, l->run.k, l->x, l->in) == TAUT_OK, "probe");
    CHECK(taut_slope_find(&s, direction, &p, o) == TAUT_OK, "slope");
    taut_probe_free(&p);
    return s;
}

static taut_local_bound proved(const law *l, const taut_attention_spec *a)
{
    const double *w[8];
    for (int i = 0; i < l->params; i++) w[i] = (const double *)l->seen[i]->value;
    const int step = a->bias ? 2 : 1;
    const int64_t tq = a->queries ? a->queries : l->in.t, tk = l->in.t - a->queries;
    const taut_attention_weights t = { .width = a->width,
                                       .heads = a->heads,
                                       .dh = a->width / a->heads,
                                       .wq = w[0],
                                       .wk = w[step],
                                       .wv = w[2 * step],
                                       .wo = w[3 * step],
                                       .bq = a->bias ? w[1] : NULL,
                                       .bk = a->bias ? w[3] : NULL,
                                       .bv = a->bias ? w[5] : NULL,
                                       .scale = taut_float32(a->scale),
                                       .out = taut_float32(a->out),
                                       .rope_base = a->rope_base,
                                       .rope = a->rope,
                                       .causal = a->causal,
                                       .alibi = a->alibi,
                                       .cross = a->queries != 0,
                                       .tq = tq,
                                       .tk = tk };
    const taut_local_at at = { .xq = l->x, .xk = l->x + a->queries * a->width, .keys = tk };
    return up_attention_local(&t, &at, NULL);
}

static double worst_low, worst_high = INFINITY;

static void sandwich(void)
{
    for (case_no = 0; case_no < effort(120); case_no++) {
        const int64_t heads = rng_int(1, 2), dh = 2 * rng_int(1, 2);
        const taut_shape in = { 1, rng_int(1, 5), heads * dh };
        const taut_attention_spec a = { .width = in.d,
                                        .heads = heads,
                                        .scale = pow(10, 1.5 * rng_pm()),
                                        .out = 1 + rng_unit(),
                                        .causal = rng_int(0, 1),
                                        .alibi = rng_int(0, 4) == 0,
                                        .rope = rng_int(0, 2) == 0,
                                        .bias = rng_int(0, 1),
                                        .rope_base = 100,
                                        .queries = in.t > 1 && rng_int(0, 3) == 0 ? rng_int(1, in.t - 1) : 0 };
        law l;
        law_begin(&l, taut_attention(&a), in);
        const double size = pow(10, 1.5 * rng_pm());
        for (int64_t i = 0; i < l.nx; i++) l.x[i] *= size;
        law_forward(&l, l.y);
        const taut_slope s = slope_of(&l, &usual, NULL);
        const double exact = dense(&l), up = proved(&l, &a).flat.v;
        CHECK_LE(s.value, exact * (1 + 1e-12) + 1e-300, "lower <= exact");
        CHECK_LE(exact, up * (1 + 1e-12), "exact <= upper");
        CHECK_LE(exact * (1 - 1e-6), s.value + 1e-300, "the lower one is near");
        if (exact > 0) worst_low = fmax(worst_low, exact / s.value - 1), worst_high = fmin(worst_high, up / exact);
        law_end(&l);
    }
}

/* How many steps, of those in the list, bring the value within 1e-6 of the truth; 999: none. */
static int needed(law *l, taut_slope_method m, double truth, const int *list, int count)
{
    for (int i = 0; i < count; i++)
        if (slope_of(l, &(taut_slope_options){ m, list[i], 0, 1 }, NULL).value >= truth * (1 - 1e-6)) return list[i];
    return 999;
}

static const int few[] = { 8, 12, 16, 20 }, many[] = { 25, 50, 100, 200, 400 };

static void count_steps(law *l, double truth, int *lanczos, int *power)
{
    const int n = needed(l, TAUT_SLOPE_LANCZOS, truth, few, 4), m = needed(l, TAUT_SLOPE_POWER, truth, many, 5);
    *lanczos = n > *lanczos ? n : *lanczos, *power = m > *power ? m : *power;
}

/* One token, so the derivative is W_O W_V = diag(1, .995, and the rest from .9 down). */
static void close_values(int *lanczos, int *power)
{
    enum { D = 32 };
    law l;
    const taut_attention_spec a = { .width = D, .heads = 1, .scale = 1, .out = 1 };
    law_begin(&l, taut_attention(&a), (taut_shape){ 1, 1, D });
    for (int i = 0; i < D * D; i++) {
        const int row = i / D, diagonal = row == i % D;
        ((double *)l.seen[2]->value)[i] = !diagonal ? 0 : row == 0 ? 1 : row == 1 ? 0.995 : 0.9 * (D - row) / D;
        ((double *)l.seen[3]->value)[i] = diagonal;
    }
    count_steps(&l, 1, lanczos, power);
    law_end(&l);
}

/* Heads of width 32 on 48 tokens, neither flat nor peaked; and two singular values close together. */
static void steps(int *lanczos, int *power)
{
    for (case_no = 0; case_no < 8; case_no++) {
        law l;
        const taut_attention_spec a = { .width = 32, .heads = 1, .scale = 1 / sqrt(32), .out = 1 };
        law_begin(&l, taut_attention(&a), (taut_shape){ 1, 48, 32 });
        for (int64_t i = 0; i < l.nx; i++) l.x[i] *= 1.7;
        const double truth = slope_of(&l, &usual, NULL).value;
        count_steps(&l, truth, lanczos, power);
        law_end(&l);
    }
    close_values(lanczos, power);
    CHECK(*lanczos <= 20, "Lanczos: 1e-6 within 20 steps");
    CHECK(*power >= 200, "power iteration needs hundreds");
}

/* A batch answers for each example what it answers alone; the direction attains the value. */
static void batches(void)
{
    const taut_attention_spec a = { .width = 4, .heads = 2, .scale = 0.7, .out = 1, .bias = true };
    law l;
    law_begin(&l, taut_attention(&a), (taut_shape){ 3, 5, 4 });
    for (int64_t i = 20; i < 40; i++) l.x[i] = 0.3; /* one example of identical tokens */
    law_forward(&l, l.y);
    taut_probe p;
    taut_slope s[3], one;
    double direction[60];
    CHECK(!taut_probe_create(&p, l.m, l.run.k, l.x, l.in) && !taut_slope_find(s, direction, &p, &usual), "batch");
    for (int e = 0; e < 3; e++) {
        taut_probe q;
        CHECK(!taut_probe_create(&q, l.m, l.run.k, l.x + 20 * e, (taut_shape){ 1, 5, 4 }), "one of them");
        CHECK(!taut_slope_find(&one, NULL, &q, &(taut_slope_options){ TAUT_SLOPE_LANCZOS, 128, 1e-12, 9 }),
              "one of them");
        CHECK_NEAR(s[e].value, one.value, 1e-9 * one.value, "alone and in a batch");
        double *v = direction + 20 * e, jv[20];
        CHECK_NEAR(norm(v, 20), 1, 1e-12, "directions have length 1");
        taut_probe_jvp(&q, (taut_real *)jv, (const taut_real *)v);
        CHECK_NEAR(norm(jv, 20), s[e].value, 1e-12 * one.value, "the witness attains it");
        taut_probe_free(&q);
    }
    taut_probe_free(&p);
    law_end(&l);
}

static void bad_input(void)
{
    const taut_attention_spec a = { .width = 2, .heads = 1, .scale = 1, .out = 1 };
    law l;
    law_begin(&l, taut_attention(&a), (taut_shape){ 1, 1, 2 });
    CHECK_NEAR(slope_of(&l, &usual, NULL).value, dense(&l), 1e-12, "one token");
    for (int p = 0; p < 4; p++) memset(l.seen[p]->value, 0, 4 * 8);
    CHECK(slope_of(&l, &usual, NULL).value == 0, "a map that is constant");
    CHECK(slope_of(&l, &(taut_slope_options){ TAUT_SLOPE_POWER, 50, 0, 1 }, NULL).value == 0, "and by power iteration");
    l.x[0] = NAN;
    taut_probe p;
    CHECK(taut_probe_create(&p, l.m, l.run.k, l.x, l.in) == TAUT_BAD_DATA, "NaN activations are refused");
    l.x[0] = 1;
    ((double *)l.seen[2]->value)[0] = INFINITY;
    CHECK(taut_probe_create(&p, l.m, l.run.k, l.x, l.in) == TAUT_BAD_DATA, "so is an output that is not finite");
    ((double *)l.seen[2]->value)[0] = 1;
    law_end(&l);
    taut_slope_options o = usual;
    CHECK(taut_slope_probable(&(taut_slope){ 1, 0, 1 }, &o, 4096, 1e-9) == INFINITY, "too few steps say nothing");
    CHECK_NEAR(taut_slope_probable(&(taut_slope){ 1, 0, 20 }, &o, 4096, 1e-9), 1.583, 0.001, "20 of 128 steps");
    o.steps = 100000; /* cut to 128 */
    CHECK_NEAR(taut_slope_probable(&(taut_slope){ 2, 0, 100 }, &o, 4096, 1e-9), 2.0235, 0.001, "100 of 128 steps");
    o.steps = 1; /* one k: the theorem as it stands */
    CHECK_NEAR(taut_slope_probable(&(taut_slope){ 1, 0, 20 }, &o, 4096, 1e-9), 1.3174, 0.001, "no choice of k");
    o.method = TAUT_SLOPE_POWER;
    CHECK(taut_slope_probable(&(taut_slope){ 1, 0, 100 }, &o, 4096, 1e-9) == INFINITY, "a theorem about Lanczos only");
}

int main(void)
{
    int lanczos = 0, power = 0;
    test_begin();
    sandwich();
    steps(&lanczos, &power);
    batches();
    bad_input();
    return test_end("slope",
                    "exact/lower - 1 <= %.1e, upper/exact >= %.6f; 1e-6 after %d steps of Lanczos, %d of power",
                    worst_low, worst_high, lanczos, power);
}
