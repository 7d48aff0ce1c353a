/* The map is linear in x up to b_O.  In the max-token norm a mean is no longer than the longest of what it is taken of,
 * so the heads side by side are at most sqrt(sum_h (g_h ||W_V^h||)^2) times as long, and
 *     tokens  Lip = ||W_O|| sqrt(sum_h (g_h ||W_V^h||)^2),    |y| <= Lip X + |b_O|.
 * In flat, q^h acts on the tokens with ||q^h||_2^2 <= ||q^h||_1 ||q^h||_inf = (largest column sum c_h) * 1.  The heads side by
 * side are A = [g_h q^h (x) W_V^h]_h, and A^T A = sum_h g_h^2 q^hT q^h (x) W_V^hT W_V^h <= I (x) sum_h g_h^2 c_h W_V^hT W_V^h, so
 *     flat    Lip = ||W_O|| ||[g_h sqrt(c_h) W_V^h]_h||,    the scaled heads below each other: sqrt(H) less than head by head.
 * On a torus every row of q^h is a shift of the first and every column too: c_h = 1.
 *
 * Column sums.  With a_k = exp(w[k]) causal rows have q_ij = a_{i-j} / Z_i, Z_i = a_0 + ... + a_i, which grows with i, so
 *     sum_i q_ij = sum_k a_k / Z_{k+j} <= sum_k a_k / Z_k,   column 0: the largest, and n numbers are enough.
 * A shorter sequence has a part of that sum.  Otherwise a shorter sequence may have the heavier column, since its rows
 * share with fewer keys: every column of every length up to n is added up, n^3/3 quotients.  The largest logit cancels
 * in a/Z: logits are shifted by the table's largest, a_k from above, Z from below, and no quotient counts as more than
 * 1.  Logits more than FAR below count as FAR below in a, as nothing in Z: no exp comes near underflow. */
#include "bound/posattention.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "bound/norm.h"
#include "bound/range.h"
#include "bound/scalar.h"

enum { FAR = 640 };

typedef struct {
    taut_up *a; /* by distance, from above */
    taut_lo *b; /* the same, from below */
    taut_lo *z; /* of each query */
} column;

static taut_up share(taut_up a, taut_lo z) { return z.v > 0 ? up_min((taut_up){ 1 }, up_div(a, z)) : (taut_up){ 1 }; }

static taut_up up_first_column(const column *c, int64_t n)
{
    taut_up sum = UP_ZERO;
    taut_lo z = { 0 };
    for (int64_t i = 0; i < n; i++) {
        z = lo_add(z, c->b[i]);
        sum = up_add(sum, share(c->a[i], z));
    }
    return sum;
}

static taut_up up_any_column(const column *c, int64_t n, int64_t zero)
{
    taut_up most = UP_ZERO;
    for (int64_t len = 1; len <= n; len++) {
        const int64_t last = len - 1;
        for (int64_t i = 0; i < last; i++) c->z[i] = lo_add(c->z[i], c->b[zero + i - last]);
        c->z[last] = (taut_lo){ 0 };
        for (int64_t j = 0; j < len; j++) c->z[last] = lo_add(c->z[last], c->b[zero + last - j]);
        for (int64_t j = 0; j < len; j++) {
            taut_up sum = UP_ZERO;
            for (int64_t i = 0; i < len; i++) sum = up_add(sum, share(c->a[zero + i - j], c->z[i]));
            most = up_max(most, sum);
        }
    }
    return most;
}

taut_up up_posattention_column(const taut_posattention_weights *w, int64_t head)
{
    const double *logit = w->table + head * w->span;
    if (w->torus) return isfinite(range_max(logit, w->span)) ? up_int(1) : UP_NONE;
    column c = { taut_malloc((size_t)w->span * sizeof *c.a), taut_malloc((size_t)w->span * sizeof *c.b),
                 taut_malloc((size_t)(w->tokens + 1) * sizeof *c.z) };
    double most = -INFINITY;
    taut_up sum = UP_NONE;
    for (int64_t k = 0; k < w->span; k++) most = fmax(most, logit[k]);
    if (c.a && c.b && c.z && isfinite(range_max(logit, w->span))) {
        for (int64_t k = 0; k < w->span; k++) { /* the difference rounds once */
            const double x = logit[k] - most;
            c.a[k] = up_exp(nextafter(fmax(x, -FAR), INFINITY));
            c.b[k] = lo_exp(x < -FAR ? -INFINITY : nextafter(x, -INFINITY));
        }
        sum = w->causal ? up_first_column(&c, w->tokens) : up_any_column(&c, w->tokens, w->span / 2);
    }
    free(c.a), free(c.b), free(c.z);
    return sum;
}

/* ||[s_h W^h]_h||; each product is rounded once. */
static taut_up up_joint(const taut_posattention_weights *w, const taut_up *s)
{
    const int64_t len = w->width * w->width, head = len / w->heads;
    double *m = taut_malloc((size_t)len * sizeof *m);
    if (!m) return UP_NONE;
    for (int64_t i = 0; i < len; i++) m[i] = s[i / head].v * w->wv[i];
    const taut_up rounded = up_add(up_mul((taut_up){ 0x1p-52 }, up_norm_frobenius(m, len)),
                                   up_mul((taut_up){ 0x1p-1073 }, up_int(w->width)));
    const taut_up norm = up_norm(m, w->width, w->width);
    free(m);
    return up_add(norm, rounded);
}

/* Head h's numbers; the answer is g_h sqrt(c_h), or g_h where columns do not count. */
static taut_up up_head(const taut_posattention_weights *w, int64_t h, bool flat, taut_up *mean, taut_ledger *l)
{
    const int64_t dh = w->width / w->heads;
    ledger_open(l, "head");
    ledger_exact(l, "index", (double)h);
    const taut_up v = up_state(l, "norm", up_norm(w->wv + h * dh * w->width, dh, w->width));
    const taut_up gain = up_exact(w->gain[h]), root = up_mul(gain, v);
    *mean = up_add(*mean, up_mul(root, root));
    const taut_up s = flat ? up_mul(gain, up_sqrt(up_state(l, "column", up_posattention_column(w, h)))) : gain;
    ledger_close(l);
    return s;
}

taut_posattention_bound up_posattention(const taut_posattention_weights *w, bool flat, taut_up size, taut_ledger *l)
{
    taut_up mean = UP_ZERO, *s = taut_malloc((size_t)w->heads * sizeof *s); /* mean: a sum of squares, in tokens */
    const bool known = s && isfinite(range_max(w->table, w->heads * w->span)) && (!w->torus || w->span == w->tokens);
    for (int64_t h = 0; s && h < w->heads; h++) s[h] = up_head(w, h, flat, &mean, l);
    const taut_up joint = !s ? UP_NONE : flat ? up_state(l, "joint", up_joint(w, s)) : up_sqrt(mean);
    const taut_up o = up_state(l, "out_norm", up_norm(w->wo, w->width, w->width));
    const taut_up bias = up_state(l, "bias", w->bo ? up_norm_frobenius(w->bo, w->width) : UP_ZERO);
    const taut_up still = up_mul(o, up_sqrt(mean));
    free(s);
    return (taut_posattention_bound){ known ? up_mul(o, joint) : UP_NONE,
                                      known ? up_add(up_mul(still, size), bias) : UP_NONE };
}

/* v = W_V x is wrong by g_{d+4} ||W_V||_F X.  A logit minus the row's largest rounds once, by at most 2^-52 max |w|, and
 * exp and the division are a few roundings: each probability is right up to exp(+-2 ds), and so is the mean, whose sum
 * adds n roundings.  Heads may look at different tokens, hence sqrt(H). */
taut_up up_round_posattention(const taut_posattention_weights *w, taut_up size)
{
    taut_up most = UP_ZERO;
    for (int64_t h = 0; h < w->heads; h++) most = up_max(most, up_exact(w->gain[h]));
    const taut_up largest = { range_max(w->table, w->heads * w->span) };
    const taut_up v = up_felt(up_mul(up_norm_frobenius(w->wv, w->width * w->width), size)),
                  gemm = up_gamma(w->width + 8);
    const taut_up ds = up_mul((taut_up){ 0x1p-51 }, largest);
    const taut_up x = up_add(up_mul((taut_up){ 2 }, ds), up_gamma(w->tokens + 40));
    const taut_up p = x.v <= 1 ? up_add(x, up_mul(x, x)) : (taut_up){ x.v < 0x1p900 ? 3 : INFINITY };
    const taut_up mean = up_mul(up_mul(most, up_sqrt(up_int(w->heads))), v);
    const taut_up relative = up_add(p, up_add(up_mul((taut_up){ 2 }, gemm), up_gamma(w->tokens + 8)));
    const taut_up wrong = up_add(up_mul(mean, relative), UP_LOST); /* gains may be small */
    const taut_up o = up_norm_frobenius(w->wo, w->width * w->width);
    const taut_up out = up_add(up_mul(o, wrong), up_rounded(w->width + 8, up_mul(o, up_add(mean, wrong))));
    const taut_up bias = w->bo ? up_norm_frobenius(w->bo, w->width) : UP_ZERO;
    return up_add(out, up_mul((taut_up){ 0x1p-50 }, up_add(up_mul(o, mean), bias)));
}
