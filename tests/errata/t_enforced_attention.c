/* Published bounds of attention blocks that fail ("Training Transformers with Enforced Lipschitz Bounds" and its code),
 * each beaten by an input, ours not: equation (20), equation (21), full-matrix norms of many heads, the scale on the
 * values.  All norms are max-token RMS, all weights have RMS norm at most 1.  docs/errata.md has the text. */
#include "laws.h"
#include "stated.h"
#include "taut.h"

/* max(1, |v| max(|q|, |k|)) with q and k scaled by sqrt(s d), as equation (20) simplifies it */
static double printed_eq20(double sd, double q, double k, double v) { return sqrt(sd) * fmax(1, v * fmax(q, k)); }
/* growth of an attention layer, equation (21) */
static double printed_eq21(double norm_out, double norm_v, double x) { return norm_out * norm_v * x; }
/* Theorem D.1 times the sum of the three weights' norms, read with the norms of the full matrices */
static double printed_heads(double q, double k, double v, double x)
{
    return fmax(1, v * x * fmax(q, k) * x) * (q + k + v);
}
/* what the authors' code multiplies, without 1/3 and W_out: the scale also stands before the values */
static double printed_code(double scale, double q, double k, double v, double x)
{
    return (v + 2 * v * q * k * x * x) * scale;
}

static void identity(law *l, int p, double size)
{
    const int64_t d = l->in.d;
    for (int64_t i = 0; i < d * d; i++) ((double *)l->seen[p]->value)[i] = i % (d + 1) ? 0 : size;
}

static void begin(law *l, taut_attention_spec spec, int64_t tokens)
{
    spec.out = 1;
    law_begin(l, taut_attention(&spec), (taut_shape){ 1, tokens, spec.width });
    for (int p = 0; p < 4; p++) identity(l, p, 1);
    memset(l->x, 0, (size_t)l->nx * 8);
    memset(l->u, 0, (size_t)l->nx * 8);
}

/* Slope along u, both sides measured by their longest token. */
static double slope_along_u(law *l)
{
    law_forward(l, l->y);
    law_jvp(l);
    return longest_token(l->ju, l->plan.out) / longest_token(l->u, l->in);
}

/* One query at 0, keys and values +-1: the query's move counts s d times, not sqrt(s d). */
static void equation_20(double sd)
{
    enum { D = 64 };
    law l;
    begin(&l, (taut_attention_spec){ .width = D, .heads = 1, .scale = sd / D, .queries = 1 }, 3);
    for (int i = 0; i < D; i++) l.x[D + i] = 1, l.x[2 * D + i] = -1, l.u[i] = 1;
    const double printed = printed_eq20(sd, 0, 1, 1), found = slope_along_u(&l),
                 ours = law_ask(&l, TAUT_NORM_TOKENS, sqrt(D)).lip.v;
    CHECK_NEAR(found, sd, 1e-12 * sd, "eq (20): attained");
    CHECK(printed < found && found <= ours, "eq (20): printed < found <= ours");
    printf("eq (20) s d = %g: %.4g < %.4g <= %.4g; ", sd, printed, found, ours);
    law_end(&l);
}

/* No logits at all, a scale below 1: the values' move counts fully, whatever the scale. */
static void values(double sd)
{
    enum { D = 64 };
    law l;
    begin(&l, (taut_attention_spec){ .width = D, .heads = 1, .scale = sd / D }, 2);
    identity(&l, 0, 0), identity(&l, 1, 0);
    for (int i = 0; i < 2 * D; i++) l.x[i] = i < D ? 1 : -1, l.u[i] = 1;
    const double printed = printed_eq20(sd, 0, 0, 1), code = printed_code(sd, 0, 0, 1, 1), found = slope_along_u(&l),
                 ours = law_ask(&l, TAUT_NORM_TOKENS, sqrt(D)).lip.v;
    CHECK_NEAR(found, 1, 1e-12, "the values alone");
    CHECK(printed < found && code < found && found <= ours, "values: printed < found <= ours");
    CHECK_STATED(ours, 1, 2, 1e-9, "ours is exact");
    printf("values s d = %g: %.4g and %.4g < %.4g <= %.4g\n", sd, printed, code, found, ours);
    law_end(&l);
}

/* Every head reads another token, so the output is longer than any input. */
static void equation_21(double factor, double want)
{
    enum { D = 16, H = 4, DH = 4 };
    law l;
    begin(&l, (taut_attention_spec){ .width = D, .heads = H, .scale = factor / DH }, H + 1);
    for (int h = 0; h < H; h++) l.x[h * D + h * DH] = 4, l.x[H * D + h * DH] = 2;
    law_forward(&l, l.y);
    const double found = longest_token(l.y, l.plan.out) / 4, printed = printed_eq21(1, 1, 1),
                 ours = law_ask(&l, TAUT_NORM_TOKENS, 4).size.v / 4;
    CHECK_NEAR(found, want, 5e-5, "eq (21): attained");
    CHECK(printed < found && found <= ours, "eq (21): printed < found <= ours");
    CHECK_NEAR(ours, sqrt(H), 1e-6, "ours is sqrt(H), the limit");
    printf("eq (21) s d_h = %g: %.4g < %.4f <= %.4f; ", factor, printed, found, ours);
    law_end(&l);
}

/* 4 heads, W_Q swaps the coordinates 1 and 2, m tokens at 4 E0 and m at -4 E0: (16m + 1)/(2m + 1), up to 8. */
static void many_heads(int64_t m)
{
    enum { D = 16 };
    law l;
    begin(&l, (taut_attention_spec){ .width = D, .heads = 4, .scale = 0.25 }, 2 * m + 1);
    double *q = (double *)l.seen[0]->value;
    q[1 * D + 1] = q[2 * D + 2] = 0, q[1 * D + 2] = q[2 * D + 1] = 1;
    l.x[1] = l.u[0] = 4;
    for (int64_t j = 1; j <= 2 * m; j++) l.x[j * D] = l.u[j * D + 2] = j <= m ? 4 : -4;
    const double printed = printed_heads(1, 1, 1, 1), code = printed_code(1, 1, 1, 1, 1), found = slope_along_u(&l),
                 ours = law_ask(&l, TAUT_NORM_TOKENS, 4).lip.v, n = (double)m;
    CHECK_NEAR(found, (16 * n + 1) / (2 * n + 1), 1e-11, "many heads: attained");
    CHECK(printed < found && code < found && found <= ours, "many heads: printed < found <= ours");
    CHECK_NEAR(ours, sqrt(4 + 16) + 4, 1e-6, "ours");
    printf("m = %lld: %.4g < %.4f <= %.4f; ", (long long)m, printed, found, ours);
    law_end(&l);
}

/* Heads of width one, identity weights, scale 1, a token at 0 between two clusters: the slope grows with H. */
static void narrow_heads(int64_t heads, double want)
{
    enum { T = 201 };
    law l;
    begin(&l, (taut_attention_spec){ .width = heads, .heads = heads, .scale = 1 }, T);
    const double size = sqrt((double)heads);
    for (int64_t j = 1; j < T; j++) l.x[j * heads] = j % 2 ? size : -size;
    l.u[0] = size;
    const double printed = printed_heads(1, 1, 1, 1), found = slope_along_u(&l),
                 ours = law_ask(&l, TAUT_NORM_TOKENS, size).lip.v;
    CHECK_NEAR(found, want, 6e-3, "heads of width one: attained");
    CHECK(printed < found && found <= ours, "heads of width one: printed < found <= ours");
    printf("H = %lld: %.3f; ", (long long)heads, found);
    law_end(&l);
}

int main(void)
{
    test_begin();
    taut_threads_set(1);
    equation_20(8), equation_20(4);
    values(0.25);
    equation_21(1, 1.3349), equation_21(8, 1.9997);
    many_heads(1), many_heads(20), many_heads(1000);
    narrow_heads(4, 3.99), narrow_heads(6, 5.98), narrow_heads(12, 11.95);
    printf("\n");
    return test_end("enforced attention", "4 formulas beaten, ours hold");
}
