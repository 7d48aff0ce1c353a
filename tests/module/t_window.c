/* Attention in windows: the laws; who sees whom, token by token, against plain loops; softmax attention where the window
 * holds everybody; and two witnesses: of means over windows, which no longer input makes steeper, and of a global token,
 * which every row reads, so that slopes and constant grow like sqrt(t). */
#include "base/float32.h"
#include "laws.h"

static taut_around around(int64_t width, int64_t heads, bool causal)
{
    return (taut_around){ .width = width, .heads = heads, .scale = 0.8, .out = 0.9, .causal = causal };
}

static taut_module *make(taut_shape in)
{
    taut_around a = around(in.d, in.d % 2 == 0 && rng_int(0, 1) ? 2 : 1, rng_int(0, 1));
    a.bias = rng_int(0, 1);
    const int64_t window = rng_int(1, 3);
    return taut_window(&a, window, rng_int(0, 2));
}

static bool sees(int64_t i, int64_t j, int64_t window, int64_t global, bool causal)
{
    if (causal && j > i) return false;
    if (i < global || j < global) return true;
    const int64_t a = (i - global) / window, b = (j - global) / window;
    return a - b <= 1 && b - a <= 1;
}

/* W_Q = W_K = W_V = W_O = 1, one feature; looked at from token `from` on. */
static void against_loops(int64_t t, int64_t window, int64_t global, bool causal, int64_t from)
{
    law l;
    const taut_around a = around(1, 1, causal);
    law_begin(&l, taut_window(&a, window, global), (taut_shape){ 2, t, 1 });
    for (int i = 0; i < 4; i++) *(double *)l.seen[i]->value = 1;
    law_forward(&l, l.y);
    for (int64_t r = 0; r < 2 * t; r++) {
        const int64_t e = r / t * t, i = r % t;
        if (i < from) continue;
        double sum = 0, mean = 0;
        for (int64_t j = 0; j < t; j++) {
            if (!sees(i, j, window, global, causal)) continue;
            const double p = exp(taut_float32(0.8) * l.x[e + i] * l.x[e + j]);
            sum += p, mean += p * l.x[e + j];
        }
        CHECK_NEAR(l.y[r], taut_float32(0.9) * mean / sum, 1e-13, "softmax over those that it sees");
    }
    law_end(&l);
}

static void is_softmax(bool causal)
{
    const taut_shape in = { 2, 6, 4 };
    const taut_around r = around(4, 2, causal);
    law l, a;
    law_begin(&l, taut_window(&r, 6, 0), in);
    law_begin(
        &a,
        taut_attention(&(taut_attention_spec){ .width = 4, .heads = 2, .scale = 0.8, .out = 0.9, .causal = causal }),
        in);
    for (int i = 0; i < l.params; i++) memcpy(a.seen[i]->value, l.seen[i]->value, 16 * 8);
    memcpy(a.x, l.x, (size_t)l.nx * 8);
    law_forward(&a, a.y);
    law_forward(&l, l.y);
    for (int64_t i = 0; i < l.ny; i++) CHECK_NEAR(l.y[i], a.y[i], 1e-14, "softmax attention");
    for (int n = 0; n < 2 && !causal; n++)
        CHECK_NEAR(law_ask(&l, (taut_norm)n, 2).lip.v, law_ask(&a, (taut_norm)n, 2).lip.v, 0, "with its constant");
    law_end(&l);
    law_end(&a);
}

/* W_Q = 0: everybody takes the mean of those that it sees.  The steepest slope, and the constant in the flat norm. */
static double means(int64_t t, int64_t window, int64_t global, double *proved)
{
    law l;
    const taut_around a = { .width = 1, .heads = 1, .scale = 1, .out = 1 };
    law_begin(&l, taut_window(&a, window, global), (taut_shape){ 1, t, 1 });
    for (int i = 0; i < 4; i++) *(double *)l.seen[i]->value = i > 0;
    for (int64_t i = 0; i < t; i++) l.x[i] = 1;
    law_forward(&l, l.y);
    *proved = law_ask(&l, TAUT_NORM_FLAT, 1).lip.v;
    const double found = slope_at(&l, TAUT_NORM_FLAT, 300);
    law_end(&l);
    return found;
}

static void witnesses(void)
{
    double proved[4];
    const double few = means(6, 1, 0, &proved[0]), many = means(60, 1, 0, &proved[1]);
    CHECK_LE(0.95, many, "uniform means of 3 keep a common change");
    CHECK_LE(many, proved[1], "below what is proved");
    CHECK_LE(few, proved[0], "below what is proved");
    CHECK_NEAR(proved[1], proved[0], 0, "a longer input is no steeper");
    const double g8 = means(8, 1, 1, &proved[2]), g128 = means(128, 1, 1, &proved[3]);
    CHECK_LE(2.5 * g8, g128, "a global key is met by every row: slopes grow like sqrt(t)");
    CHECK_LE(g128, proved[3], "and so does the constant");
}

int main(void)
{
    test_begin();
    laws(make, 1);
    for (int i = 0; i < 60; i++) against_loops(1 + i % 13, 1 + i % 4, i % 3, i % 2, 0);
    against_loops(4500, 2, 1, false, 4080); /* more blocks than one call takes */
    is_softmax(false);
    is_softmax(true);
    witnesses();
    return test_end("window", "worst slope / bound = %.6f", law_worst);
}
