/* Statements of "How Smooth Is Attention?" that fail, each with its counterexample: Theorem E.3 (biases), Theorem
 * C.3 (local), Theorem 4.4 (masked mean field), the remark on RMSNorm in 2.3, and the number that E.1 calls the
 * norm.  l2 over all tokens (norm flat), one head, scale 1.  docs/errata.md has the text. */
#include "laws.h"
#include "taut.h"

/* E.3: |K| stands there once, not squared; a = |K^T Q| */
static double printed_e3(double a, double k, double q, double bias, double v, double r, double n)
{
    const double u = q * r + bias;
    return sqrt(3) * v * sqrt(a * a * r * r * r * r + n * (k * u * u * r * r + 1));
}
/* C.3: diameter r, |A x_i| <= rho */
static double printed_c3(double rho, double r, double v, double n)
{
    return sqrt(3) * v * sqrt((rho * rho * r * r + 1) * n + rho * rho * r * r);
}
/* 3.3 with the factor of its proof, n + 1 */
static double printed_33(double a, double v, double n) { return sqrt(3) * v * sqrt(a * a * (n + 1) + n); }
/* 4.4 */
static double printed_44(double a, double v) { return v * (1 + 3 * a) * exp(2 * a); }

static void set(law *l, int p, const double *w)
{
    memcpy(l->seen[p]->value, w, (size_t)(l->seen[p]->rows * l->seen[p]->cols) * 8);
}

static void begin(law *l, taut_attention_spec spec, int64_t tokens)
{
    spec.heads = 1, spec.scale = 1, spec.out = 1;
    law_begin(l, taut_attention(&spec), (taut_shape){ 1, tokens, spec.width });
    memset(l->x, 0, (size_t)l->nx * 8);
}

static double steepest(law *l, int steps)
{
    law_forward(l, l->y);
    fill(l->u, l->nx);
    return slope_flat(l, steps);
}

/* One feature, A = -3, 403 tokens at -1 and one at 1.  Scaling K by c and Q by 1/c changes nothing in the network,
 * but the printed bound falls to 35.4. */
static void biases_scaled(void)
{
    enum { N = 404 };
    law l;
    begin(&l, (taut_attention_spec){ .width = 1 }, N);
    const double c = 1000, q[] = { -3 / c }, k[] = { c }, one[] = { 1 };
    set(&l, 0, q), set(&l, 1, k), set(&l, 2, one), set(&l, 3, one);
    for (int i = 0; i < N; i++) l.x[i] = i ? -1 : 1;
    const double found = steepest(&l, 60), printed = printed_e3(3, c, 3 / c, 0, 1, 1, N),
                 ours = law_ask(&l, TAUT_NORM_FLAT, 1).lip.v;
    CHECK_NEAR(found, 40.35, 5e-3, "E.3: T8's two clusters");
    CHECK(printed < found && found <= ours, "E.3: printed < found <= ours");
    printf("E.3 %.4g < %.4g <= %.4g, ", printed, found, ours);
    law_end(&l);
}

/* Two tokens (0, +-1), Q = 0, b_Q = 1, |K| = 100: the derivative is 100. */
static void biases(void)
{
    static const double zero[4] = { 0 }, k[] = { 100, 0, 0, 0 }, id[] = { 1, 0, 0, 1 }, b[] = { 1, 0 },
                        x[] = { 0, 1, 0, -1 };
    law l;
    begin(&l, (taut_attention_spec){ .width = 2, .bias = true }, 2);
    set(&l, 0, zero), set(&l, 1, b), set(&l, 2, k), set(&l, 3, zero), set(&l, 4, id), set(&l, 5, zero), set(&l, 6, id);
    set(&l, 7, zero);
    memcpy(l.x, x, sizeof x);
    const double found = steepest(&l, 60), printed = printed_e3(0, 100, 0, 1, 1, 1, 2),
                 ours = law_ask(&l, TAUT_NORM_FLAT, 1).lip.v;
    CHECK_LE(99.9, found, "E.3: attained");
    CHECK(printed < 25 && found <= ours, "E.3: printed < found <= ours");
    printf("and %.4g < %.4g <= %.4g; ", printed, found, ours);
    law_end(&l);
}

/* A x_i = 0 for every token, but not A^T x_j. */
static void local(void)
{
    static const double a[] = { 0, 100, 0, 0 }, id[] = { 1, 0, 0, 1 }, x[] = { 1, 0, -1, 0, 1, 0, -1, 0 };
    law l;
    begin(&l, (taut_attention_spec){ .width = 2 }, 4);
    set(&l, 0, a), set(&l, 1, id), set(&l, 2, id), set(&l, 3, id);
    memcpy(l.x, x, sizeof x);
    law_forward(&l, l.y);
    for (int i = 0; i < 8; i++) l.u[i] = i % 2 ? 1 : 0.01; /* all tokens move alike */
    const double found = slope_flat(&l, 20), printed = printed_c3(0, 2, 1, 4),
                 ours = law_ask(&l, TAUT_NORM_FLAT, 1).lip.v;
    CHECK_NEAR(printed, 3.4641, 1e-4, "C.3: printed");
    CHECK_NEAR(found, 100.00999900019995, 1e-11, "C.3: exact");
    CHECK(printed < found && found <= ours, "C.3: printed < found <= ours");
    printf("C.3 %.5g < %.6g <= %.6g; ", printed, found, ours);
    law_end(&l);
}

/* No logits, a causal mask: the Cesaro matrix.  With p = 1 it is worse: one token reaches 1 + 1/2 + ... + 1/n. */
static void masked(int64_t n, double want)
{
    static const double zero[] = { 0 }, one[] = { 1 };
    law l;
    begin(&l, (taut_attention_spec){ .width = 1, .causal = true }, n);
    set(&l, 0, zero), set(&l, 1, zero), set(&l, 2, one), set(&l, 3, one);
    const double found = steepest(&l, n > 100 ? 60 : 2000), printed = printed_44(0, 1),
                 ours = law_ask(&l, TAUT_NORM_FLAT, 1).lip.v;
    memset(l.u, 0, (size_t)l.nx * 8);
    l.u[0] = 1;
    law_jvp(&l);
    double sum = 0, harmonic = 0;
    for (int64_t i = 0; i < n; i++) sum += fabs(l.ju[i]), harmonic += 1 / (double)(i + 1);
    CHECK_NEAR(sum, harmonic, 1e-12 * harmonic, "4.4: p = 1");
    CHECK_NEAR(found, want, n == 2 ? 1e-12 : 5e-4, "4.4: attained");
    CHECK(printed < found && found <= ours, "4.4: printed < found <= ours");
    printf("4.4 n = %lld: %.4g < %.5f <= %.4f, p = 1: %.4f; ", (long long)n, printed, found, ours, sum);
    law_end(&l);
}

/* RMSNorm before attention: the constant of x/|x| is 1/|x|, not 1. */
static void normalised(void)
{
    static const double zero[4] = { 0 }, id[] = { 1, 0, 0, 1 };
    const double gain[] = { sqrt(0.5), sqrt(0.5) }, eps = 1e-4; /* gain sqrt(d) = 1, so theta' = theta */
    const char *const names[] = { "norm", "attn" };
    taut_module *const row[] = { taut_rmsnorm(2, eps), taut_attention(&(taut_attention_spec){
                                                           .width = 2, .heads = 1, .scale = 1, .out = 1 }) };
    law l;
    law_begin(&l, taut_sequence(2, names, row), (taut_shape){ 1, 1, 2 });
    set(&l, 0, gain), set(&l, 1, zero), set(&l, 2, id), set(&l, 3, id), set(&l, 4, id);
    l.x[0] = 1e-3, l.x[1] = 0;
    const double found = steepest(&l, 30), printed = printed_33(0, 1, 1), ours = law_ask(&l, TAUT_NORM_FLAT, 1).lip.v;
    CHECK_LE(70, found, "2.3: attained");
    CHECK(printed < found && found <= ours, "2.3: printed < found <= ours");
    printf("2.3 %.4g < %.4g <= %.4g; ", printed, found, ours);
    law_end(&l);
}

/* E.1 iterates v = J^T J u and calls v.u the norm: it is the square. */
static double printed_e1(law *l)
{
    double mu = 0;
    fill(l->u, l->nx);
    for (int i = 0; i < 300; i++) {
        const double size = norm(l->u, l->nx);
        for (int64_t j = 0; j < l->nx; j++) l->u[j] /= size;
        law_jvp(l);
        memcpy(l->v, l->ju, (size_t)l->ny * 8);
        law_vjp(l);
        mu = dot(l->u, l->jv, l->nx);
        memcpy(l->u, l->jv, (size_t)l->nx * 8);
    }
    return mu;
}

static void power_iteration(void)
{
    static const double x[] = { 1, 0, 0, 1, 1, 1 }, wq[] = { 1, 2, 0, 1 }, wk[] = { 1, 0, 1, 1 }, wv[] = { 2, 0, 1, 1 },
                        id[] = { 1, 0, 0, 1 };
    law l;
    law_begin(&l, taut_attention(&(taut_attention_spec){ .width = 2, .heads = 1, .scale = sqrt(0.5), .out = 1 }),
              (taut_shape){ 1, 3, 2 });
    set(&l, 0, wq), set(&l, 1, wk), set(&l, 2, wv), set(&l, 3, id);
    memcpy(l.x, x, sizeof x);
    const double found = steepest(&l, 300), mu = printed_e1(&l);
    CHECK_NEAR(found, 3.264101461264, 1e-6, "E.1: T3");
    CHECK_NEAR(mu, found * found, 1e-9, "E.1: the square");
    printf("E.1 %.6g is %.6g squared\n", mu, found);
    law_end(&l);
}

int main(void)
{
    test_begin();
    taut_threads_set(1);
    biases_scaled();
    biases();
    local();
    masked(2, 1.14412280563537), masked(10, 1.4101), masked(1000, 1.7481);
    normalised();
    power_iteration();
    return test_end("castin", "5 statements beaten, ours hold");
}
