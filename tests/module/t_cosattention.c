/* Cosine attention: laws over masks, biases, RoPE, ALiBi, normalised values; the formula in plain
 * loops; a witness near its bound; eps = 0 has no bound, and normalised values need no region. */
#include "laws.h"

static taut_module *make(taut_shape in)
{
    const int64_t heads = in.d % 2 == 0 ? 1 + rng_int(0, 1) : 1, dh = in.d / heads;
    return taut_cosattention(&(taut_cosattention_spec){ .width = in.d,
                                                        .heads = heads,
                                                        .tau = pow(10, 2 * rng_unit() - 1),
                                                        .eps = pow(10, -2 * rng_unit()),
                                                        .out = 1 - 0.5 * rng_unit(),
                                                        .values = rng_int(0, 1),
                                                        .causal = rng_int(0, 1),
                                                        .alibi = rng_int(0, 2) == 0,
                                                        .rope = dh % 2 == 0 && rng_int(0, 1),
                                                        .bias = rng_int(0, 1),
                                                        .rope_base = 100,
                                                        .gain = 1,
                                                        .out_gain = 1,
                                                        .init = TAUT_INIT_NORMAL });
}

static void unit(double *z, const double *w, const double *b, const double *x, int64_t d, int64_t dh, double eps)
{
    double size = eps;
    for (int64_t r = 0; r < dh; r++) z[r] = dot(w + r * d, x, d) + b[r], size += z[r] * z[r];
    for (int64_t r = 0; eps > 0 && r < dh; r++) z[r] /= sqrt(size);
}

/* The formula, head by head. */
static void definition(bool values)
{
    enum { D = 4, H = 2, DH = 2, T = 3 };
    law l;
    law_begin(&l,
              taut_cosattention(&(taut_cosattention_spec){
                  .width = D, .heads = H, .tau = 2.5, .eps = 0.125, .out = 0.5, .values = values, .bias = true }),
              (taut_shape){ 1, T, D });
    const double *w[8];
    for (int i = 0; i < 8; i++) w[i] = taut_ref_values(l.seen[i]);
    double want[T * D];
    for (int i = 0; i < T; i++) memcpy(want + i * D, w[7], D * sizeof *want);
    for (int h = 0; h < H; h++)
        for (int i = 0; i < T; i++) {
            double q[DH], k[DH], v[DH], o[DH] = { 0 }, sum = 0;
            unit(q, w[0] + h * DH * D, w[1] + h * DH, l.x + i * D, D, DH, 0.125);
            for (int j = 0; j < T; j++) {
                unit(k, w[2] + h * DH * D, w[3] + h * DH, l.x + j * D, D, DH, 0.125);
                unit(v, w[4] + h * DH * D, w[5] + h * DH, l.x + j * D, D, DH, values ? 0.125 : 0);
                const double e = exp(2.5 * dot(q, k, DH));
                for (int c = 0; c < DH; c++) o[c] += e * v[c];
                sum += e;
            }
            for (int r = 0; r < D; r++)
                for (int c = 0; c < DH; c++) want[i * D + r] += 0.5 * w[6][r * D + h * DH + c] * o[c] / sum;
        }
    for (int i = 0; i < T * D; i++) CHECK_NEAR(l.y[i], want[i], 1e-14, "the formula");
    law_end(&l);
}

static void set(law *l, int p, const double *values)
{
    memcpy(l->seen[p]->value, values, (size_t)(l->seen[p]->rows * l->seen[p]->cols) * 8);
}

/* Values along axis 0, keys along axis 1 where all tokens but the first have none: each key stands at the steep
 * point of n, the clusters at +-X have equal weight, and the first token's query sees them along axis 1. */
static void witness(void)
{
    enum { D = 2, M = 30, T = 2 * M + 1 };
    static const double id[] = { 1, 0, 0, 1 }, second[] = { 0, 0, 0, 1 };
    law l;
    law_begin(&l,
              taut_cosattention(&(taut_cosattention_spec){ .width = D, .heads = 1, .tau = 1, .eps = 1e-6, .out = 1 }),
              (taut_shape){ 1, T, D });
    set(&l, 0, second), set(&l, 1, second), set(&l, 2, id), set(&l, 3, id);
    memset(l.x, 0, (size_t)l.nx * 8);
    l.x[1] = 1;
    for (int j = 1; j < T; j++) l.x[j * D] = j % 2 ? 1 : -1;
    law_forward(&l, l.y);
    for (int64_t i = 0; i < l.nx; i++) l.u[i] = i % D ? l.x[i - 1] : 0; /* each key along axis 1, by its value's sign */
    const double bound = law_ask(&l, TAUT_NORM_TOKENS, 1).lip.v, found = slope_tokens(&l, 300);
    CHECK_NEAR(bound, 1 + 1 / sqrt(1e-6), 1, "witness: 1 + tau X / sqrt(eps)");
    CHECK_LE(found, bound, "witness: sound");
    CHECK_LE(0.9 * bound, found, "witness: nearly attained");
    law_end(&l);
    printf("witness %.4f of %.4f; ", found, bound);
}

/* Far below sqrt(eps) n is linear, and this is attention with the scale tau / eps: keys and queries add up.  Two
 * clusters across the query's direction, a = tau X^2 / eps = 10: the bound is 1 + 2 a, sqrt(1 + a^2) + a is near. */
static void linear_range(void)
{
    enum { D = 2, M = 30, T = 2 * M + 1 };
    static const double id[] = { 1, 0, 0, 1 }, turn[] = { 0, 1, -1, 0 };
    law l;
    law_begin(&l,
              taut_cosattention(&(taut_cosattention_spec){ .width = D, .heads = 1, .tau = 1e5, .eps = 1e4, .out = 1 }),
              (taut_shape){ 1, T, D });
    set(&l, 0, turn), set(&l, 1, id), set(&l, 2, id), set(&l, 3, id);
    memset(l.x, 0, (size_t)l.nx * 8);
    l.x[1] = 1;
    for (int j = 1; j < T; j++) l.x[j * D] = j % 2 ? 1 : -1;
    law_forward(&l, l.y);
    double found = 0;
    for (int k = 0; k < 10; k++) found = fmax(found, slope_at(&l, TAUT_NORM_TOKENS, 300));
    const double bound = law_ask(&l, TAUT_NORM_TOKENS, 1).lip.v;
    CHECK_NEAR(bound, 21, 0.01, "keys and queries add up");
    CHECK_LE(found, bound, "sound");
    CHECK_LE(0.9 * bound, found, "nearly attained");
    law_end(&l);
}

static void corners(void)
{
    taut_cosattention_spec spec = { .width = 4, .heads = 2, .tau = 12, .eps = 0, .out = 1 };
    law l;
    law_begin(&l, taut_cosattention(&spec), (taut_shape){ 1, 3, 4 });
    CHECK(law_ask(&l, TAUT_NORM_TOKENS, 1).lip.v == INFINITY, "eps = 0: no constant");
    CHECK(isfinite(law_ask(&l, TAUT_NORM_TOKENS, 1).size.v) == false, "and no proved rounding");
    law_end(&l);
    spec.eps = 1e-4, spec.values = true;
    law_begin(&l, taut_cosattention(&spec), (taut_shape){ 1, 3, 4 });
    CHECK(isfinite(law_ask(&l, TAUT_NORM_FLAT, INFINITY).lip.v), "normalised values: global");
    *(double *)l.seen[1]->value = NAN;
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v == INFINITY, "NaN");
    law_end(&l);
    spec.values = false;
    law_begin(&l, taut_cosattention(&spec), (taut_shape){ 1, 3, 4 });
    CHECK(law_ask(&l, TAUT_NORM_FLAT, INFINITY).lip.v == INFINITY, "plain values need a region");
    law_end(&l);
}

int main(void)
{
    test_begin();
    laws(make, 1);
    definition(false);
    definition(true);
    witness();
    linear_range();
    corners();
    return test_end("cosattention", "worst slope / bound = %.6f", law_worst);
}
