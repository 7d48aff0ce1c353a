/* Attention at an input: every bound against the norm of the Jacobian written out, on layers of all kinds; the vectors
 * worked out by hand and by another program; balls against inputs searched for in them; invariances; bad input. */
#include <fenv.h>

#include "bound/local.h"

#include "base/alloc.h"
#include "bound/local_oracle.h"
#include "bound/norm.h"
#include "bound/oracle.h"

static double exact_norm(const scene *s, int64_t head)
{
    int64_t rows, cols;
    double *j = oracle_jacobian(s, head, &rows, &cols);
    const double n = oracle_norm(j, rows, cols);
    free(j);
    return n;
}

/* The norm from the largest token to the largest token, from below: signs of directions by ascent. */
static double exact_tokens(const scene *s)
{
    int64_t rows, cols;
    double *j = oracle_jacobian(s, -1, &rows, &cols), best = 0, *x = doubles(cols), *g = doubles(cols);
    const int64_t d = s->w.width, out = rows / s->w.tq;
    for (int64_t i = 0; i < s->w.tq; i++)
        for (int start = 0; start < 3; start++) {
            fill(x, cols);
            for (int step = 0; step < 30; step++) {
                double y[MOST * 4] = { 0 }, size = 0;
                for (int64_t t = 0; t < cols / d; t++) {
                    const double n = norm(x + t * d, d);
                    for (int64_t c = 0; c < d; c++) x[t * d + c] = n > 0 ? x[t * d + c] / n : 0;
                }
                for (int64_t r = 0; r < out; r++) y[r] = dot(j + (i * out + r) * cols, x, cols), size += y[r] * y[r];
                best = fmax(best, sqrt(size));
                memset(g, 0, (size_t)cols * 8);
                for (int64_t r = 0; r < out; r++)
                    for (int64_t c = 0; c < cols; c++) g[c] += y[r] * j[(i * out + r) * cols + c];
                memcpy(x, g, (size_t)cols * 8);
            }
        }
    free(j), free(x), free(g);
    return best;
}

static double worst_head, worst_layer, worst_tokens, sum_head;
static int heads_seen;

static void holds(const taut_local_bound *b, double exact, const char *what)
{
    const taut_up each[] = { b->triangle, b->concave, b->split, b->block, b->pair, b->flat };
    for (int i = 0; i < 6; i++) CHECK_LE(exact, each[i].v * (1 + 1e-12), what);
    CHECK(b->flat.v <= b->triangle.v && b->flat.v <= b->concave.v && b->flat.v <= b->split.v &&
              b->flat.v <= b->block.v && b->flat.v <= b->pair.v,
          "flat is the smallest");
}

static double worst_exact;

/* Written out: proved to be within 1e-8 of the norm, or not answered. */
static void exact_mode(const scene *s, int64_t head, double exact)
{
    const double up = up_attention_exact(&s->w, &s->at, head).v;
    if (s->w.rope || s->w.cross) {
        CHECK(up == INFINITY, "no exact mode with RoPE or queries of their own");
        return;
    }
    CHECK_LE(exact, up * (1 + 1e-12), "exact mode is a bound");
    CHECK_LE(up, exact * (1 + 1e-8) + 1e-290, "and near");
    if (exact > 0) worst_exact = fmax(worst_exact, up / exact - 1);
}

static scene random_scene(void)
{
    const int64_t heads = rng_int(1, 3), dh = 2 * rng_int(1, 2), width = rng_int(1, 6), tk = rng_int(1, 6);
    const bool cross = rng_int(0, 3) == 0, rope = rng_int(0, 3) == 0;
    const int64_t tq = cross ? rng_int(1, 5) : tk;
    scene s = scene_new(width, heads, dh, tq, tk, pow(10, 2 * rng_pm()), pow(10, rng_pm() * 1.5));
    if (rng_int(0, 1)) scene_biases(&s);
    s.w.cross = cross, s.w.rope = rope, s.w.causal = rng_int(0, 2) == 0, s.w.alibi = rng_int(0, 4) == 0;
    if (rng_int(0, 3) == 0) s.at.keys = rng_int(0, tk);
    if (rng_int(0, 5) == 0) s.w.wo = NULL;
    if (rng_int(0, 7) == 0)
        for (int64_t i = width; i < tk * width; i++) s.xk[i] = s.xk[i % width]; /* all tokens alike */
    if (rng_int(0, 9) == 0) memset((double *)s.w.wq, 0, (size_t)(heads * dh * width) * 8);
    return s;
}

static void random_layers(void)
{
    for (case_no = 0; case_no < effort(70); case_no++) {
        scene s = random_scene();
        taut_local_bound heads[3];
        const taut_local_bound all = up_attention_local(&s.w, &s.at, heads);
        for (int64_t h = 0; h < s.w.heads; h++) {
            const double exact = exact_norm(&s, h);
            holds(&heads[h], exact, "one head");
            exact_mode(&s, h, exact);
            if (exact > 0) {
                worst_head = fmax(worst_head, exact / heads[h].flat.v);
                sum_head += log10(heads[h].flat.v / exact), heads_seen++;
            }
        }
        const double exact = exact_norm(&s, -1), tokens = exact_tokens(&s);
        holds(&all, exact, "the layer");
        CHECK_LE(tokens, all.tokens.v * (1 + 1e-12), "max-token");
        if (exact > 0) worst_layer = fmax(worst_layer, exact / all.flat.v);
        if (tokens > 0) worst_tokens = fmax(worst_tokens, tokens / all.tokens.v);
        scene_free(&s);
    }
}

static const double t3_x[] = { 1, 0, 0, 1, 1, 1 }, t3_q[] = { 1, 2, 0, 1 }, t3_k[] = { 1, 0, 1, 1 },
                    t3_v[] = { 2, 0, 1, 1 };

/* Worked out with other programs: three tokens, one head, with and without a causal mask. */
static void vectors(void)
{
    taut_attention_weights w = {
        .width = 2, .heads = 1, .dh = 2, .wq = t3_q, .wk = t3_k, .wv = t3_v, .scale = sqrt(0.5), .tq = 3, .tk = 3
    };
    const taut_local_at at = { .xk = t3_x, .keys = 3 };
    taut_local_bound b, whole = up_attention_local(&w, &at, &b);
    CHECK_NEAR(b.triangle.v, 4.00368035, 1e-7, "triangle");
    CHECK_NEAR(b.concave.v, 3.53445989, 2e-5, "concave");
    CHECK_NEAR(b.split.v, 4.47115811, 1e-6, "split");
    CHECK_NEAR(b.block.v, 3.88968127, 1e-6, "block");
    CHECK_NEAR(b.pair.v, 4.06287454, 1e-6, "pair");
    CHECK_LE(3.264101461264, b.flat.v, "exact norm");
    CHECK_NEAR(whole.flat.v, b.flat.v, 1e-6, "one head is the layer");
    w.causal = true;
    (void)up_attention_local(&w, &at, &b);
    CHECK_NEAR(b.triangle.v, 4.21122768, 1e-7, "triangle, causal");
    CHECK_NEAR(b.concave.v, 3.73334679, 2e-5, "concave, causal");
    CHECK_NEAR(b.block.v, 3.80429726, 1e-6, "block, causal");
    CHECK_NEAR(b.pair.v, 4.84841121, 1e-6, "pair, causal");
    CHECK_LE(3.455425946673, b.flat.v, "exact norm, causal");
}

/* The norm from below, quickly: power iteration in double. */
static double quick_norm(const scene *s)
{
    int64_t rows, cols;
    double *j = oracle_jacobian(s, -1, &rows, &cols), x[MOST * MOST], y[MOST * MOST], found = 0;
    for (int64_t c = 0; c < cols; c++) x[c] = 1 + 0.1 * rng_pm();
    for (int step = 0; step < 20; step++) {
        const double size = norm(x, cols);
        for (int64_t r = 0; r < rows; r++) y[r] = dot(j + r * cols, x, cols) / size;
        found = fmax(found, norm(y, rows));
        for (int64_t c = 0; c < cols; c++) x[c] = 0;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++) x[c] += j[r * cols + c] * y[r];
    }
    free(j);
    return found;
}

/* The largest norm found by climbing over inputs in the ball, corners first. */
static double climb(scene *s, const double *d, int tries)
{
    const int64_t len = s->w.tk * s->w.width;
    double *centre = doubles(len), *best = doubles(len), most = 0;
    memcpy(centre, s->xk, (size_t)len * 8);
    memcpy(best, s->xk, (size_t)len * 8);
    for (int i = 0; i < tries; i++) {
        const double step = i % 3 == 0 ? 1 : pow(10, -2 * rng_unit());
        for (int64_t t = 0; t < s->w.tk; t++) {
            double *x = s->xk + t * s->w.width, off[MOST];
            for (int64_t c = 0; c < s->w.width; c++)
                off[c] = best[t * s->w.width + c] - centre[t * s->w.width + c] + step * d[t] * rng_pm();
            const double n = norm(off, s->w.width),
                         f = n > d[t] || i % 3 == 0 ? (n > 0 ? d[t] / n : 0) * (1 - 1e-14) : 1;
            for (int64_t c = 0; c < s->w.width; c++) x[c] = centre[t * s->w.width + c] + f * off[c];
        }
        const double now = quick_norm(s);
        if (!(now > most)) continue;
        most = now;
        memcpy(best, s->xk, (size_t)len * 8);
    }
    memcpy(s->xk, centre, (size_t)len * 8);
    free(centre), free(best);
    return most;
}

static double worst_ball;

static void balls(void)
{
    for (case_no = 0; case_no < effort(12); case_no++) {
        const int64_t tk = rng_int(2, 4), dh = 2;
        scene s = scene_new(rng_int(1, 3), rng_int(1, 2), dh, tk, tk, pow(10, rng_pm()), 1);
        s.w.rope = rng_int(0, 2) == 0, s.w.causal = rng_int(0, 1);
        double d[MOST], before = 0;
        s.at.dk = d;
        for (double r = 1e-3; r < 1; r *= 6) {
            for (int64_t t = 0; t < tk; t++) d[t] = r * (t % 2 ? 1 : 0.3);
            const taut_local_bound b = up_attention_local(&s.w, &s.at, NULL);
            const double found = climb(&s, d, 40);
            holds(&b, found, "ball");
            CHECK(b.pair.v == INFINITY, "pair is about one input");
            CHECK_LE(before, b.flat.v * (1 + 1e-9), "larger balls have larger constants");
            worst_ball = fmax(worst_ball, found / b.flat.v);
            before = b.flat.v;
        }
        scene_free(&s);
    }
}

/* Nothing changes for K -> cK, Q -> Q/c, another order of tokens, another b_K or b_V. */
static void invariances(void)
{
    for (case_no = 0; case_no < effort(40); case_no++) {
        scene s = scene_new(4, 2, 2, 5, 5, 2, 1);
        scene_biases(&s);
        const taut_local_bound a = up_attention_local(&s.w, &s.at, NULL);
        for (int64_t i = 0; i < 16; i++) ((double *)s.w.wk)[i] *= 8, ((double *)s.w.wq)[i] /= 8;
        for (int64_t i = 0; i < 4; i++)
            ((double *)s.w.bq)[i] /= 8, ((double *)s.w.bk)[i] = rng_pm(), ((double *)s.w.bv)[i] = rng_pm();
        for (int64_t c = 0; c < 4; c++) {
            const double keep = s.xk[c];
            s.xk[c] = s.xk[8 + c], s.xk[8 + c] = keep;
        }
        const taut_local_bound b = up_attention_local(&s.w, &s.at, NULL);
        CHECK_NEAR(a.flat.v, b.flat.v, 1e-6 * a.flat.v, "invariant");
        scene_free(&s);
    }
}

/* What limits are: one token, identical tokens, no key at all, no logits; and what is no number. */
static void limits(void)
{
    scene s = scene_new(3, 1, 2, 1, 1, 1, 1);
    taut_local_bound b;
    (void)up_attention_local(&s.w, &s.at, &b);
    CHECK_NEAR(b.flat.v, up_norm(s.w.wv, 2, 3).v, 1e-9, "one token: ||W_V||");
    s.at.keys = 0;
    CHECK(up_attention_local(&s.w, &s.at, &b).flat.v < 1e-290, "no key: 0");
    s.at.keys = 1;
    s.xk[1] = NAN;
    CHECK(up_attention_local(&s.w, &s.at, &b).flat.v == INFINITY && b.flat.v == INFINITY, "NaN: no bound");
    s.xk[1] = 0;
    double d[] = { NAN };
    s.at.dk = d;
    CHECK(up_attention_local(&s.w, &s.at, &b).flat.v == INFINITY, "a radius that is no number: no bound");
    scene_free(&s);
    scene same = scene_new(3, 1, 2, 6, 6, 1, 1);
    for (int64_t i = 3; i < 18; i++) same.xk[i] = same.xk[i % 3];
    (void)up_attention_local(&same.w, &same.at, &b);
    CHECK_NEAR(b.flat.v, up_norm(same.w.wv, 2, 3).v, 1e-9, "identical tokens: ||W_V||");
    memset((double *)same.w.wq, 0, 6 * 8);
    fill(same.xk, 18);
    (void)up_attention_local(&same.w, &same.at, &b);
    CHECK_NEAR(b.flat.v, up_norm(same.w.wv, 2, 3).v + 0, 1.0, "A = 0 stays near ||W_V||");
    CHECK_LE(exact_norm(&same, 0), b.flat.v, "A = 0");
    scene_free(&same);
}

/* Without memory there is no bound, and nothing is left behind. */
static void no_memory(void)
{
    scene s = scene_new(3, 2, 2, 3, 3, 1, 1);
    const double whole = up_attention_local(&s.w, &s.at, NULL).flat.v;
    for (long n = 1; n < 400; n++) {
        taut_alloc_fail_at(n);
        const double got = up_attention_local(&s.w, &s.at, NULL).flat.v;
        taut_alloc_fail_at(0);
        CHECK_LE(whole, got * (1 + 1e-12), "a failed allocation makes no smaller bound");
    }
    scene_free(&s);
}

/* Rows are made with the processor rounding up; nobody else is to notice, in any thread. */
static void rounding_is_left(void)
{
    int other = 0;
#pragma omp parallel reduction(+ : other)
    other += fegetround() != FE_TONEAREST;
    CHECK(other == 0 && 1 + 0x1p-60 == 1, "the rounding mode is as it was");
}

int main(void)
{
    test_begin();
    vectors();
    limits();
    random_layers();
    balls();
    invariances();
    no_memory();
    rounding_is_left();
    return test_end(
        "local",
        "found / proved: head %.6f, layer %.6f, max-token %.6f, ball %.4f; mean log10 of a head %.3f; exact mode +%.1e",
        worst_head, worst_layer, worst_tokens, worst_ball, sum_head / heads_seen, worst_exact);
}
