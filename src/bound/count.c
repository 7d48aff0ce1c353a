/* C = sum over queries i of the most that row i can give to one key.
 *
 * A row that sees k keys has P_ij <= 1/(1 + O), O the others' sum of exp(S_il - S_ij).  Content logits differ
 * by at most `range`.  ALiBi takes slope * distance; the k keys are neighbours, so their distances, sorted
 * and counted from the nearest, are at most 0, 1, ..., k-1, and with q = exp(-slope) O >= exp(-range) (q +
 * q^2 + ... + q^{k-1})      (k-1 when there is no slope): for the nearest key at once, and for a farther one
 * O only grows.  More keys, more others: the fewest are the worst.  Row i may see the first v_i keys (v_i =
 * tk; causal: i + tk - tq + 1, at most tk), of which it sees at least min(keys_min, v_i), and at least
 * 1, or the row gives nothing.  Every row that sees key j sees key 0, so the sum over all rows with v_i >= 1
 * covers every j.  With keys_min 0, any of them hidden, C is the number of queries, and a single key attains
 * it. */
#include "bound/count.h"

#include "bound/scalar.h"

taut_up up_alibi_slope(int64_t head, int64_t heads)
{
    /* the exponent is at most 8 and rounded once, exp2 is good to a few ulp: 2^-48 covers both */
    return up_mul((taut_up){ exp2(-8 * (double)(head + 1) / (double)heads) }, (taut_up){ 1 + 0x1p-48 });
}

/* q + ... + q^{k-1} = (1 - exp(-slope (k-1))) / (exp(slope) - 1), from below. */
static taut_lo lo_geometric(taut_up slope, int64_t k)
{
    const taut_lo terms = lo_exact((double)(k - 1));
    if (slope.v == 0 || k < 2) return terms;
    const taut_up last = up_exp(-lo_mul((taut_lo){ slope.v }, terms).v);
    return lo_div(lo_sub((taut_lo){ 1 }, last), up_sub(up_exp(slope.v), (taut_lo){ 1 }));
}

/* The most one key gets from a row that sees k keys. */
static taut_up up_share(const taut_spread *heads, int64_t count, int64_t k)
{
    double least = INFINITY;
    for (int64_t h = 0; h < count; h++)
        least = fmin(least, lo_mul(lo_exp(-heads[h].range.v), lo_geometric(heads[h].slope, k)).v);
    return count ? up_div((taut_up){ 1 }, lo_add((taut_lo){ 1 }, (taut_lo){ least })) : UP_ZERO;
}

taut_up up_count(const taut_attention_weights *w, const taut_spread *heads, int64_t count)
{
    taut_up sum = UP_ZERO, share = UP_ZERO;
    int64_t before = 0;
    for (int64_t i = 0; i < w->tq; i++) {
        int64_t sees = w->causal ? i + w->tk - w->tq + 1 : w->tk;
        sees = sees < w->tk ? sees : w->tk;
        if (sees < 1) continue;
        int64_t fewest = w->keys_min < sees ? w->keys_min : sees;
        fewest = fewest < 1 ? 1 : fewest;
        if (fewest != before) share = up_share(heads, count, fewest);
        before = fewest;
        sum = up_add(sum, share);
    }
    return sum;
}
