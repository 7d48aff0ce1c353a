/* C = sum over queries i of the most that row i can give to one key.
 *
 * A row that sees k keys, with logits within E of each other, has P <= 1/(1 + (k-1) exp(-E)).  Row i may see the
 * first v_i keys (v_i = tk; causal: i + tk - tq + 1, at most tk), of which padding leaves k between
 * min(keys_min, v_i) and v_i, at least 1; rows without keys give nothing.  Every row that sees key j sees
 * key 0, so summing over all rows with v_i >= 1 covers every j.
 *   no ALiBi   P's bound falls as k grows: the fewest keys are the worst.
 *   ALiBi      distances to the first k keys differ by at most k-1, so E = range + slope (k-1), and
 *              t exp(-slope t) rises, then falls: over t = k-1 its least value is at one of the two ends.
 * With any padding allowed (keys_min 0) this is the number of queries; a single key attains it. */
#include "bound/count.h"

#include "bound/scalar.h"

taut_up up_alibi_slope(int64_t head, int64_t heads)
{
    /* the exponent is at most 8 and rounded once, exp2 is good to a few ulp: 2^-48 covers both */
    return up_mul((taut_up){ exp2(-8 * (double)(head + 1) / (double)heads) }, (taut_up){ 1 + 0x1p-48 });
}

/* (k-1) exp(-(range + slope (k-1))) from below. */
static taut_lo lo_others(taut_spread h, int64_t k)
{
    const taut_up e = up_add(h.range, up_mul(h.slope, up_int(k - 1)));
    return k < 2 ? (taut_lo){ 0 } : lo_mul(lo_exact((double)(k - 1)), lo_exp(-e.v));
}

/* The most one key gets from a row that sees between `fewest` and `most` keys. */
static taut_up up_share(const taut_spread *heads, int64_t count, int64_t fewest, int64_t most)
{
    double least = INFINITY;
    for (int64_t h = 0; h < count; h++) {
        least = fmin(least, lo_others(heads[h], fewest).v);
        if (heads[h].slope.v > 0) least = fmin(least, lo_others(heads[h], most).v);
    }
    return count ? up_div((taut_up){ 1 }, lo_add((taut_lo){ 1 }, (taut_lo){ least })) : UP_ZERO;
}

taut_up up_count(const taut_attention_weights *w, const taut_spread *heads, int64_t count)
{
    taut_up sum = UP_ZERO, share = UP_ZERO;
    int64_t before = -1;
    for (int64_t i = 0; i < w->tq; i++) {
        int64_t sees = w->causal ? i + w->tk - w->tq + 1 : w->tk;
        sees = sees < w->tk ? sees : w->tk;
        if (sees < 1) continue;
        int64_t fewest = w->keys_min < sees ? w->keys_min : sees;
        fewest = fewest < 1 ? 1 : fewest;
        if (sees != before) share = up_share(heads, count, fewest, sees);
        before = sees;
        sum = up_add(sum, share);
    }
    return sum;
}
