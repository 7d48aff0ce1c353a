/* Attention: laws over masks, biases, RoPE, ALiBi, cross-attention; around an input; heads of one-head attentions are
 * the definition of many heads; bare heads; vector T3; the counterexample of many heads; a witness near its bound. */
#include "laws.h"

static taut_attention_spec spec;

static taut_module *make(taut_shape in)
{
    const int64_t heads = in.d % 2 == 0 ? 1 + rng_int(0, 1) : 1, dh = in.d / heads;
    spec = (taut_attention_spec){ .width = in.d,
                                  .heads = heads,
                                  .scale = pow(10, 2 * rng_unit() - 1),
                                  .out = 1 - 0.5 * rng_unit(),
                                  .causal = rng_int(0, 1),
                                  .alibi = rng_int(0, 2) == 0,
                                  .rope = dh % 2 == 0 && rng_int(0, 1),
                                  .bias = rng_int(0, 1),
                                  .rope_base = 100,
                                  .gain = 1,
                                  .out_gain = 1,
                                  .init = TAUT_INIT_NORMAL,
                                  .queries = in.t > 1 && rng_int(0, 2) == 0 ? rng_int(1, in.t - 1) : 0 };
    return taut_attention(&spec);
}

/* Many heads are the sum of one-head attentions, each with the other heads' rows and columns set to 0. */
static void heads_agree(void)
{
    enum { D = 4, H = 2, T = 3 };
    law many;
    law_begin(
        &many,
        taut_attention(&(taut_attention_spec){
            .width = D, .heads = H, .scale = 0.6, .out = 1, .causal = true, .bias = true, .gain = 1, .out_gain = 1 }),
        (taut_shape){ 2, T, D });
    double sum[2 * T * D] = { 0 };
    for (int h = 0; h < H; h++) {
        law one;
        law_begin(&one,
                  taut_attention(&(taut_attention_spec){ .width = D,
                                                         .heads = 1,
                                                         .scale = 0.6,
                                                         .out = 1,
                                                         .causal = true,
                                                         .bias = true,
                                                         .gain = 1,
                                                         .out_gain = 1 }),
                  (taut_shape){ 2, T, D });
        for (int p = 0; p < 8; p++) {
            const double *from = (const double *)many.seen[p]->value;
            double *to = (double *)one.seen[p]->value;
            const bool bias = p % 2, out = p / 2 == 3;
            for (int r = 0; r < (bias ? 1 : D); r++)
                for (int c = 0; c < D; c++) {
                    const int feature = bias || out ? c : r; /* which head's coordinate this touches */
                    const bool mine = feature / (D / H) == h;
                    to[r * D + c] = (bias && out) ? (h == 0) * from[c] : mine ? from[r * D + c] : 0;
                }
        }
        memcpy(one.x, many.x, (size_t)many.nx * 8);
        law_forward(&one, one.y);
        for (int64_t i = 0; i < many.ny; i++) sum[i] += one.y[i];
        law_end(&one);
    }
    law_forward(&many, many.y);
    for (int64_t i = 0; i < many.ny; i++)
        CHECK_NEAR(many.y[i], sum[i], 1e-14, "many heads = sum of one-head attentions");
    law_end(&many);
}

static void set(law *l, int p, const double *values)
{
    memcpy(l->seen[p]->value, values, (size_t)(l->seen[p]->rows * l->seen[p]->cols) * 8);
}

static void vector_t3(void)
{
    static const double x[] = { 1, 0, 0, 1, 1, 1 }, wq[] = { 1, 2, 0, 1 }, wk[] = { 1, 0, 1, 1 }, wv[] = { 2, 0, 1, 1 },
                        id[] = { 1, 0, 0, 1 };
    for (int causal = 0; causal < 2; causal++) {
        law l;
        law_begin(&l,
                  taut_attention(&(taut_attention_spec){
                      .width = 2, .heads = 1, .scale = 0.7071067811865476, .out = 1, .causal = causal }),
                  (taut_shape){ 1, 3, 2 });
        set(&l, 0, wq), set(&l, 1, wk), set(&l, 2, wv), set(&l, 3, id);
        memcpy(l.x, x, sizeof x);
        law_forward(&l, l.y); /* the scale is a float here: 3e-8 from 1/sqrt 2 */
        if (!causal) CHECK_NEAR(l.y[4], 1.92384136, 1e-7, "T3 output");
        if (!causal) CHECK_NEAR(l.y[5], 1.64425749, 1e-7, "T3 output");
        CHECK_NEAR(slope_at(&l, TAUT_NORM_FLAT, 500), causal ? 3.455425946673 : 3.264101461264, 2e-7, "T3 ||J||");
        const double bound = law_ask(&l, TAUT_NORM_FLAT, sqrt(2)).lip.v;
        if (!causal) CHECK_NEAR(bound, 29.618030, 2e-5, "T3 global bound");
        law_end(&l);
    }
}

/* docs/modules/attention.md: full-matrix norms claim 3; this input has slope 17/3.  Ours must hold. */
static void many_heads(void)
{
    enum { D = 16, T = 3 };
    law l;
    law_begin(&l, taut_attention(&(taut_attention_spec){ .width = D, .heads = 4, .scale = 0.25, .out = 1 }),
              (taut_shape){ 1, T, D });
    double id[D * D] = { 0 }, swap[D * D] = { 0 };
    for (int i = 0; i < D; i++) id[i * D + i] = swap[(i == 1 ? 2 : i == 2 ? 1 : i) * D + i] = 1;
    set(&l, 0, swap), set(&l, 1, id), set(&l, 2, id), set(&l, 3, id);
    memset(l.x, 0, (size_t)l.nx * 8);
    memset(l.u, 0, (size_t)l.nx * 8);
    l.x[1] = 4, l.x[D] = 4, l.x[2 * D] = -4;
    l.u[0] = 4, l.u[D + 2] = 4, l.u[2 * D + 2] = -4;
    law_forward(&l, l.y);
    law_jvp(&l);
    const double slope = norm(l.ju, D) / 4, bound = law_ask(&l, TAUT_NORM_TOKENS, 4).lip.v;
    CHECK_NEAR(slope, 17.0 / 3, 1e-12, "the published bound of 3 is beaten");
    CHECK_LE(slope, bound, "ours is not");
    law_end(&l);
}

/* Unit weights, one head, scale 1/d_head, tokens of RMS 1: a query across two balanced clusters of keys comes near
 * 1 + sqrt 2, the closer the more keys there are. */
static void tightness(void)
{
    enum { D = 2, M = 40, T = 2 * M + 1 };
    static const double id[] = { 1, 0, 0, 1 }, turn[] = { 0, 1, -1, 0 };
    law l;
    law_begin(&l, taut_attention(&(taut_attention_spec){ .width = D, .heads = 1, .scale = 0.5, .out = 1 }),
              (taut_shape){ 1, T, D });
    set(&l, 0, turn), set(&l, 1, id), set(&l, 2, id), set(&l, 3, id);
    memset(l.x, 0, (size_t)l.nx * 8);
    l.x[1] = sqrt(2);
    for (int j = 1; j < T; j++) l.x[j * D] = j % 2 ? sqrt(2) : -sqrt(2);
    law_forward(&l, l.y);
    const double bound = law_ask(&l, TAUT_NORM_TOKENS, sqrt(2)).lip.v, found = slope_at(&l, TAUT_NORM_TOKENS, 300);
    CHECK_NEAR(bound, 1 + sqrt(2), 1e-7, "bound of unit weights");
    CHECK_LE(found, bound * (1 + 1e-12), "witness: sound");
    CHECK_LE(0.95 * bound, found, "witness: nearly attained");
    law_end(&l);
    printf("witness %.4f of %.4f; ", found, bound);
}

/* Bare heads: the laws, whatever the masks; all of them through W_O are the whole; one is a column of all. */
static void bare(void)
{
    const taut_kernels *ref = taut_kernels_find("ref");
    for (case_no = 0; case_no < effort(40); case_no++) {
        const taut_shape in = { 1, rng_int(1, 4), 4 };
        law whole, all, some;
        law_begin(&whole, make(in), in);
        const taut_attention_view w = taut_attention_look(whole.m);
        const int64_t heads = w.spec->heads, head = 4 / heads;
        const int64_t first = w.spec->alibi ? 0 : rng_int(0, heads - 1), count = w.spec->alibi ? heads : 1;
        law_begin(&all, taut_attention_bare(ref, whole.m, 0, heads), in);
        law_begin(&some, taut_attention_bare(ref, whole.m, first, count), in);
        CHECK(all.params == 0 && some.params == 0, "bare: the weights are visited where they belong");
        memcpy(all.x, whole.x, (size_t)whole.nx * 8);
        memcpy(some.x, whole.x, (size_t)whole.nx * 8);
        law_forward(&all, all.y);
        law_forward(&some, some.y);
        for (int64_t t = 0; t < whole.plan.out.t; t++) {
            for (int64_t i = 0; i < 4; i++) {
                const double shift = w.spec->bias ? taut_ref_values(w.bias[3])[i] : 0;
                const double y = w.spec->out * dot(taut_ref_values(w.weight[3]) + 4 * i, all.y + 4 * t, 4) + shift;
                CHECK_NEAR(whole.y[4 * t + i], y, 1e-12, "bare: W_O o + b_O is the whole");
            }
            for (int64_t i = 0; i < count * head; i++)
                CHECK(some.y[count * head * t + i] == all.y[4 * t + first * head + i], "bare: one head of all");
        }
        law_adjoint(&some), law_derivative(&some), law_bound(&some);
        law_adjoint(&all), law_derivative(&all), law_bound(&all);
        law_end(&all), law_end(&some), law_end(&whole);
    }
}

/* At an input: inputs of every size have no constant, those around one do, with rotary positions too; and no slope there
 * is above it. */
static void around(void)
{
    enum { T = 4, D = 8 };
    const double r = 0.01;
    for (case_no = 0; case_no < effort(40); case_no++) {
        law l;
        law_begin(&l,
                  taut_attention(&(taut_attention_spec){ .width = D,
                                                         .heads = 2,
                                                         .scale = 0.5,
                                                         .out = 1,
                                                         .causal = rng_int(0, 1),
                                                         .rope = true,
                                                         .rope_base = case_no % 2 ? 100 : 1e4,
                                                         .gain = 1,
                                                         .out_gain = 1 }),
                  (taut_shape){ 1, T, D });
        law_forward(&l, l.y);
        const taut_ask all = { .norm = TAUT_NORM_FLAT, .tokens = T, .size = UP_NONE, .radius = { r } };
        const double near = taut_bound_of(l.m, taut_ask_at(all, law_at(&l))).lip.v;
        CHECK(taut_bound_of(l.m, all).lip.v == INFINITY, "every input: no constant");
        CHECK_LE(near, 4 * slope_at(&l, TAUT_NORM_FLAT, 60), "around one, RoPE: a constant that is near");
        CHECK_LE(slope_at(&l, TAUT_NORM_FLAT, 60), near, "at the centre");
        for (int64_t i = 0; i < l.nx; i++) l.x[i] += r * rng_pm() / sqrt((double)(T * D));
        CHECK_LE(slope_at(&l, TAUT_NORM_FLAT, 60), near, "beside it");
        law_end(&l);
    }
}

int main(void)
{
    test_begin();
    laws(make, 1);
    heads_agree();
    bare();
    around();
    vector_t3();
    many_heads();
    tightness();
    return test_end("attention", "worst slope / bound = %.6f", law_worst);
}
