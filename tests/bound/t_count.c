/* up_count against the worst rows it speaks about: for every padding and every key j, logits that put j at
 * the top of the range and all others at the bottom, position logits included, summed over the queries. */
#include "bound/count.h"

#include "bound/arb_include.h"
#include "harness.h"

static double worst;

static bool sees(const taut_attention_weights *w, int64_t length, int64_t i, int64_t j)
{
    return j < length && (!w->causal || j <= i + w->tk - w->tq);
}

/* P_ij when j's content logit is `range` above the others'. */
static double share(const taut_attention_weights *w, taut_spread h, int64_t length, int64_t i, int64_t j)
{
    const double at = (double)(i + w->tk - w->tq);
    double sum = 0;
    for (int64_t k = 0; k < w->tk; k++) {
        if (!sees(w, length, i, k)) continue;
        const double far = fabs(at - (double)j) - fabs(at - (double)k);
        sum += k == j ? 1 : exp(-h.range.v + h.slope.v * far);
    }
    return sees(w, length, i, j) ? 1 / sum : 0;
}

static double collected(const taut_attention_weights *w, const taut_spread *h, int heads, int64_t length, int64_t j)
{
    double sum = 0;
    for (int64_t i = 0; i < w->tq; i++) {
        double most = 0;
        for (int k = 0; k < heads; k++) most = fmax(most, share(w, h[k], length, i, j));
        sum += most;
    }
    return sum;
}

static void check_one(void)
{
    taut_attention_weights w = { .tq = rng_int(0, 7), .tk = rng_int(0, 7), .causal = rng_int(0, 1) };
    taut_spread h[3];
    const int heads = (int)rng_int(1, 3), alibi = (int)rng_int(0, 1);
    w.keys_min = rng_int(0, 1) ? w.tk : rng_int(0, w.tk);
    for (int k = 0; k < heads; k++)
        h[k] = (taut_spread){ { rng_int(0, 2) ? 3 * rng_unit() : 0 }, alibi ? up_alibi_slope(k, 8) : UP_ZERO };
    const double c = up_count(&w, h, heads).v;
    CHECK_LE(c, (double)w.tq + 1e-9, "never more than the queries");
    for (int64_t length = w.keys_min; length <= w.tk; length++)
        for (int64_t j = 0; j < length; j++) {
            const double found = collected(&w, h, heads, length, j);
            CHECK_LE(found, c * (1 + 1e-14), "probability on one key");
            if (c > 0) worst = fmax(worst, found / c);
        }
    if (w.tq == 1 && w.causal && w.tk > 0) { /* one query, its own key the nearest */
        const int64_t fewest = w.keys_min > 0 ? w.keys_min : 1;
        CHECK_NEAR(c, collected(&w, h, heads, fewest, fewest - 1), 1e-12, "is attained with ALiBi");
    }
    if (!alibi && w.tk > 0) { /* the bound is the worst case: the fewest keys, all eyes on the first */
        const double most = collected(&w, h, heads, w.keys_min > 0 ? w.keys_min : 1, 0);
        CHECK_NEAR(c, most, 1e-12 * (1 + most), "is attained");
    }
}

int main(void)
{
    test_begin();
    const int cases = effort(20000);
    for (case_no = 0; case_no < cases; case_no++) check_one();
    for (int64_t n = 1; n <= 16; n++)
        for (int64_t h = 0; h < n; h++) {
            const double slope = up_alibi_slope(h, n).v, truth = pow(2, -8 * (double)(h + 1) / (double)n);
            CHECK(slope > truth * (1 + 1e-15) && slope < truth * (1 + 1e-14), "ALiBi slope");
        }
    const taut_attention_weights w = { .tq = 3, .tk = 3, .keys_min = 3 };
    CHECK(up_count(&w, (taut_spread[]){ { UP_NONE, UP_ZERO } }, 1).v >= 3, "an unbounded range");
    CHECK(up_count(&w, NULL, 0).v == 0, "no heads");
    flint_cleanup();
    return test_end("count", "%d masks, worst found/bound = %.15f", cases, worst);
}
