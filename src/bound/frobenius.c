/* |w| = sqrt(sum w_i^2), rounded up and rounded down.
 *
 * The tree's halves of halves are shared out to threads where there is much to add; its shape, and so the sum, is the same.
 *
 * Proof.  A binary tree of sums with leaves of at most LEAF terms: every square meets at most D roundings,
 * D = len for one leaf and LEAF + 64 otherwise (len < 2^63 is halved fewer than 64 times), so
 *     computed (1 - g_D) <= sum w_i^2 <= computed (1 + g_D),
 * plus what underflow took from the squares, at most len 2^-1075.  Entries beyond 2^+-200 are first scaled
 * by a power of two, which costs 2^-1075 an entry, sqrt(len) 2^-1075 in the norm. */
#include "base/clones.h"
#include "bound/norm.h"
#include "bound/range.h"

enum { LEAF = 128, DEPTH = 6, BRANCHES = 1 << DEPTH };

TAUT_CLONES static double leaf(const double *w, int64_t len)
{
    double s[4] = { 0 };
    int64_t i = 0;
    for (; i + 4 <= len; i += 4)
        for (int k = 0; k < 4; k++) s[k] += w[i + k] * w[i + k];
    for (; i < len; i++) s[0] += w[i] * w[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

static double sum_branch(const double *w, int64_t len)
{
    if (len <= LEAF) return leaf(w, len);
    const int64_t half = len / 2;
    return sum_branch(w, half) + sum_branch(w + half, len - half);
}

/* Branch i of the BRANCHES that the tree has DEPTH halvings down, counted from the left. */
static double sum_branch_at(const double *w, int64_t len, int i)
{
    for (int level = DEPTH - 1; level >= 0; level--) {
        const int64_t half = len / 2;
        const bool right = i >> level & 1;
        w += right ? half : 0;
        len = right ? len - half : half;
    }
    return sum_branch(w, len);
}

static double sum_squares(const double *w, int64_t len)
{
    double sum[BRANCHES];
    if (len < RANGE_SHARED) return sum_branch(w, len);
#pragma omp parallel for schedule(static)
    for (int i = 0; i < BRANCHES; i++) sum[i] = sum_branch_at(w, len, i);
    for (int left = BRANCHES / 2; left > 0; left /= 2)
        for (int i = 0; i < left; i++) sum[i] = sum[2 * i] + sum[2 * i + 1];
    return sum[0];
}

static taut_up gamma_of(int64_t len) { return up_gamma(len <= LEAF ? len : LEAF + 64); }
static taut_up lost(int64_t len) { return up_mul(up_int(len), (taut_up){ 0x1p-1074 }); }

static taut_up up_in_range(const double *w, int64_t len)
{
    const taut_up sum = { sum_squares(w, len) };
    return up_sqrt(up_add(up_add(sum, up_mul(sum, gamma_of(len))), lost(len)));
}

static taut_lo lo_in_range(const double *w, int64_t len)
{
    const taut_up sum = { sum_squares(w, len) };
    return lo_sqrt(lo_sub((taut_lo){ sum.v }, up_add(up_mul(sum, gamma_of(len)), lost(len))));
}

taut_up up_norm_frobenius(const double *w, int64_t len)
{
    const double most = range_max(w, len);
    if (most == 0 || !(most <= DBL_MAX)) return (taut_up){ most };
    if (len == 1) return up_exact(w[0]);
    const int e = range_shift(most);
    if (!e) return up_in_range(w, len);
    double *c = range_copy(w, len, e);
    if (!c) return UP_NONE;
    const taut_up r = up_add(up_in_range(c, len), up_mul(up_sqrt(up_int(len)), (taut_up){ 0x1p-1074 }));
    free(c);
    return up_ldexp(r, e);
}

taut_lo lo_norm_frobenius(const double *w, int64_t len)
{
    const double most = range_max(w, len);
    if (most == 0 || !(most <= DBL_MAX)) return (taut_lo){ 0 };
    if (len == 1) return lo_exact(w[0]);
    const int e = range_shift(most);
    if (!e) return lo_in_range(w, len);
    double *c = range_copy(w, len, e);
    if (!c) return (taut_lo){ 0 };
    const taut_lo r = lo_sub(lo_in_range(c, len), up_mul(up_sqrt(up_int(len)), (taut_up){ 0x1p-1074 }));
    free(c);
    return lo_wrap(nextafter(ldexp(r.v, e), 0));
}
