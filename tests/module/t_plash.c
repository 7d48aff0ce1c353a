/* PLASH.  The laws over self- and cross-attention, heads, psi, degrees, mixers; stage by stage against a
 * plain program; the deterministic reference with the same weights; a witness for the bound where stage II is
 * short: one key, one group, no mixer. */
#include "laws.h"

static taut_plash_spec any(taut_shape in, int mixers)
{
    const int64_t heads = in.d % 2 == 0 && rng_int(0, 1) ? 2 : 1;
    taut_plash_spec s = { .width = in.d,
                          .heads = heads,
                          .queries = in.t > 1 ? rng_int(0, 1) : 0,
                          .pair = TAUT_PLASH_KV,
                          .groups = rng_int(1, 3),
                          .tau = 0.5 + rng_unit(),
                          .features = rng_int(0, 1) ? rng_int(1, 4) : 0,
                          .degrees = (int)rng_int(1, 2),
                          .degree = { 1, 2 },
                          .size = { 8, 4 },
                          .floor = 0.5,
                          .sketch_tau = 0.5 + rng_unit(),
                          .seed = rng_next(),
                          .mixers = mixers,
                          .hidden = 3,
                          .norm_eps = 0.3,
                          .scale = 0.5 + rng_unit(),
                          .out = 0.7,
                          .bias = rng_int(0, 1) };
    if (!s.queries) s.pair = (taut_plash_pair)rng_int(0, 2);
    return s;
}

static taut_module *make(taut_shape in)
{
    const taut_plash_spec s = any(in, (int)rng_int(0, 1));
    return taut_plash(&s);
}

static const double *weight(const law *l, const char *name)
{
    for (int i = 0; i < l->params; i++)
        if (strcmp(l->name[i], name) == 0) return taut_ref_values(l->seen[i]);
    CHECK(false, name);
    return NULL;
}

/* y (rows, out) = x (rows, in) W^T */
static void product(double *y, const double *x, const double *w, int rows, int out, int in)
{
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++) y[r * out + o] = dot(x + r * in, w + o * in, in);
}

static void softmax(double *s, int n)
{
    double max = s[0], sum = 0;
    for (int i = 1; i < n; i++) max = fmax(max, s[i]);
    for (int i = 0; i < n; i++) sum += s[i] = exp(s[i] - max);
    for (int i = 0; i < n; i++) s[i] /= sum;
}

/* One head, degree 1 with the fixed table, no mixer: everything by hand. */
static void by_hand(void)
{
    enum { T = 5, D = 2, M = 3 };
    law l;
    law_begin(&l,
              taut_plash(&(taut_plash_spec){ .width = D,
                                             .heads = 1,
                                             .groups = M,
                                             .tau = 0.5,
                                             .degrees = 1,
                                             .degree = { 1 },
                                             .size = { 4 },
                                             .floor = 1e-6,
                                             .sketch_tau = 2,
                                             .fixed = true,
                                             .scale = 0.75,
                                             .out = 1 }),
              (taut_shape){ 1, T, D });
    double q[T * D], k[T * D], v[T * D], u[M][2 * D] = { { 0 } }, z[M * D], kg[M * D], vg[M * D], o[T * D] = { 0 };
    double y[T * D];
    product(q, l.x, weight(&l, "q.weight"), T, D, D);
    product(k, l.x, weight(&l, "k.weight"), T, D, D);
    product(v, l.x, weight(&l, "v.weight"), T, D, D);
    for (int i = 0; i < T; i++) {
        double a[M];
        for (int j = 0; j < M; j++) a[j] = dot(k + i * D, weight(&l, "prototypes") + j * D, D) / 0.5;
        softmax(a, M);
        for (int j = 0; j < M; j++)
            for (int c = 0; c < D; c++) u[j][c] += a[j] * k[i * D + c], u[j][D + c] += a[j] * v[i * D + c];
    }
    for (int j = 0; j < M; j++) {
        const double size = norm(u[j], 2 * D);
        for (int c = 0; c < 2 * D; c++) u[j][c] /= 2 * size;
    }
    product(z, u[0], weight(&l, "middle.sketch.degree1.weight"), M, D, 2 * D);
    for (int i = 0; i < M * D; i++) z[i] *= weight(&l, "middle.sketch.beta")[0];
    product(kg, z, weight(&l, "kg.weight"), M, D, D);
    product(vg, z, weight(&l, "vg.weight"), M, D, D);
    for (int i = 0; i < T; i++) {
        double p[M];
        for (int j = 0; j < M; j++) p[j] = 0.75 * dot(q + i * D, kg + j * D, D);
        softmax(p, M);
        for (int j = 0; j < M; j++)
            for (int c = 0; c < D; c++) o[i * D + c] += p[j] * vg[j * D + c];
    }
    product(y, o, weight(&l, "o.weight"), T, D, D);
    for (int i = 0; i < T * D; i++) CHECK_NEAR(l.y[i], y[i], 1e-14, "by hand");
    law_end(&l);
}

/* Two of q, k and v compressed: kv's function under other names.  Parameters come in the order asks, is routed, is read. */
static void pairs(void)
{
    static const char *const name[3][3] = { { "q.weight", "k.weight", "v.weight" },
                                            { "k.weight", "q.weight", "v.weight" },
                                            { "v.weight", "q.weight", "k.weight" } };
    const taut_shape in = { 1, 4, 2 };
    taut_plash_spec s = any(in, 1);
    s.queries = 0;
    s.bias = true;
    s.pair = TAUT_PLASH_KV;
    law kv;
    law_begin(&kv, taut_plash(&s), in);
    for (int pair = 0; pair < 3; pair++) {
        law l;
        s.pair = (taut_plash_pair)pair;
        law_begin(&l, taut_plash(&s), in);
        for (int i = 0; i < 3; i++) {
            CHECK(strcmp(l.name[2 * i], name[pair][i]) == 0, "names of the weights");
            CHECK(l.name[2 * i + 1][0] == name[pair][i][0], "and of the biases");
        }
        memcpy(l.x, kv.x, (size_t)l.nx * sizeof *l.x);
        for (int i = 0; i < l.params; i++)
            memcpy(l.seen[i]->value, kv.seen[i]->value, (size_t)(l.seen[i]->rows * l.seen[i]->cols) * sizeof(double));
        law_forward(&l, l.y);
        CHECK(memcmp(l.y, kv.y, (size_t)l.ny * sizeof *l.y) == 0, "the same function");
        law_end(&l);
    }
    law_end(&kv);
}

/* One token, one group, one feature, equal weights 1: y = the sketch of [x, x], whose slope at 0 is 1/(floor tau). */
static void witness(void)
{
    law l;
    law_begin(&l,
              taut_plash(&(taut_plash_spec){ .width = 1,
                                             .heads = 1,
                                             .groups = 1,
                                             .tau = 1,
                                             .degrees = 1,
                                             .degree = { 1 },
                                             .size = { 2 },
                                             .floor = 1,
                                             .sketch_tau = 1,
                                             .fixed = true,
                                             .scale = 1e-9,
                                             .out = 1 }),
              (taut_shape){ 1, 1, 1 });
    for (int i = 0; i < l.params; i++)
        for (int64_t c = 0; c < l.seen[i]->cols; c++)
            ((double *)l.seen[i]->value)[c] = strcmp(l.name[i], "prototypes") == 0 ? 0 : 1;
    l.x[0] = 0.01;
    law_forward(&l, l.y);
    for (int n = 0; n < 2; n++) {
        CHECK_NEAR(law_ask(&l, (taut_norm)n, 0.5).lip.v, 2, 1e-6, "witness: bound");
        CHECK_NEAR(slope_at(&l, (taut_norm)n, 50), 2, 1e-6, "witness: attained");
    }
    law_end(&l);
}

int main(void)
{
    test_begin();
    pairs();
    laws(make, 1);
    by_hand();
    witness();
    return test_end("plash", "worst slope / bound = %.6f", law_worst);
}
