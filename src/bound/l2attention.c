/* y_i = W_O concat_h( W_V A_h sum_j P^h_ij x_j ),  P = row softmax of -|W_Q (x_i - x_j)|^2/sqrt(dh),  A_h = W_Q^T W_Q/sqrt(dh).
 *
 * A head is the unit map F(z)_i = o_i = sum_j P_ij z_j, P = softmax(-|z_i - z_j|^2), between z = W_Q x / dh^(1/4) and
 * W_V W_Q^T / dh^(1/4).  With c = W0((N-1)/e), N tokens:
 *     dF_i = sum_j P_ij dz_j - 2 sum_j P_ij (z_j - o_i) (z_i - z_j).(dz_i - dz_j)
 *     m_i = sum_j P_ij |z_j - z_i|^2 <= c:  sum a e^-a / (1 + sum e^-a) is largest where all a are F + 1, F e^F = (N-1)/e
 *     (1) |P dZ| <= sqrt(N) |dZ|, and max-token <= max-token: rows sum to 1, columns to at most N
 *     (2) the part of dz_i is 2 Cov_i, <= 2 m_i <= 2 c
 *     (3) the part of dz_j, by Cauchy-Schwarz: <= 2 sqrt(m_i) sqrt(sum_j P_ij |z_j - z_i|^2 |dz_j|^2); that is 2 c in the
 *         max-token norm; summed over i first, P_ij a <= a e^-a/(1 + e^-a) <= W0(1/e), so 2 sqrt(c (N-1) W0(1/e)) flat
 *     flat:  L = sqrt(N) + 2 c + 2 sqrt(c (N-1) W0(1/e)),      tokens:  L = 1 + 4 c
 *     Lip <= L/sqrt(dh) * sqrt(sum_h ||W_Q^h||^4 ||W_V^h||^2) ||W_O||,   |y_i| <= the same without L, times max |x_j|.
 * Padding takes keys away, which only makes N smaller.  Without A_h in the values nothing like this holds. */
#include "bound/l2attention.h"

#include "bound/norm.h"
#include "bound/rounding.h"
#include "bound/scalar.h"

/* w e^(w+1) >= x proves w >= W0(x/e). */
taut_up up_lambert(double x)
{
    double w = x > 0 ? log1p(x / 2.718281828459045) : 0;
    if (!(x >= 0) || isinf(x)) return UP_NONE;
    for (int i = 0; i < 60; i++) w -= (w * exp(w + 1) - x) / ((w + 1) * exp(w + 1));
    w = w > 0 ? w : 0;
    for (int i = 0; i < 60; i++, w = w * (1 + ldexp(1e-15, i)) + 1e-300) {
        const taut_lo grown = lo_mul((taut_lo){ w }, lo_exp(nextafter(w + 1, 0)));
        if (grown.v >= x) return (taut_up){ w };
    }
    return UP_NONE;
}

/* A token's rounding error; v: how long W_Q x is, inner: |W_V^h| |W_Q^h| / sqrt(dh) in the Frobenius norm. */
static taut_up up_head_round(const taut_l2attention_weights *w, taut_up size, taut_up v, taut_up q_norm, taut_up inner)
{
    const taut_lo root = lo_sqrt(lo_exact((double)w->dh));
    const taut_up ev = up_rounded(w->width + 1, up_mul(size, q_norm)), two = { 2 };
    const taut_up sums = up_mul((taut_up){ 6 }, up_rounded(w->dh + 6, up_mul(v, v)));
    const taut_up logit = up_div(up_add(up_mul((taut_up){ 6 }, up_mul(v, ev)), sums), root), x = up_mul(two, logit);
    if (!(x.v <= 1)) return UP_NONE;
    const taut_up alpha = up_add(up_add(x, up_mul(x, x)), up_gamma(w->tokens + 10));
    const taut_up o = up_add(up_mul(up_add(alpha, up_gamma(w->tokens + 4)), v), up_add(ev, UP_LOST));
    const taut_up maps = up_mul(up_gamma(w->width + w->dh + 4), v);
    const taut_up lost = up_mul(
        UP_LOST, up_add((taut_up){ 1 }, up_mul(two, v))); /* of W_V W_Q^T / sqrt(dh), and of it times o */
    return up_add(up_mul(up_mul((taut_up){ 1.01 }, inner), up_add(o, maps)), lost);
}

taut_l2attention_bound up_l2attention(const taut_l2attention_weights *w, taut_up size, taut_ledger *ledger)
{
    const int64_t head = w->dh * w->width;
    const taut_up n = up_int(w->tokens), two = { 2 };
    const taut_up c = up_state(ledger, "lambert", up_lambert((double)(w->tokens > 0 ? w->tokens - 1 : 0)));
    const taut_up others = up_mul(up_mul(c, n), up_lambert(1)); /* n in the place of n - 1 */
    const taut_up flat = up_add(up_add(up_sqrt(n), up_mul(two, c)), up_mul(two, up_sqrt(others)));
    const taut_up tokens = up_add((taut_up){ 1 }, up_mul((taut_up){ 4 }, c));
    const taut_lo root = lo_sqrt(lo_exact((double)w->dh));
    taut_up sum = UP_ZERO, round = UP_ZERO;
    for (int64_t h = 0; h < w->heads; h++) {
        const double *q = w->wq + h * head, *v = w->wv + h * head;
        ledger_open(ledger, "head");
        const taut_up nq = up_state(ledger, "query", up_norm(q, w->dh, w->width));
        const taut_up nv = up_state(ledger, "value", up_norm(v, w->dh, w->width));
        ledger_close(ledger);
        const taut_up part = up_mul(up_mul(nq, nq), nv), fq = up_norm_frobenius(q, head);
        const taut_up inner = up_div(up_mul(up_norm_frobenius(v, head), fq), root);
        sum = up_add(sum, up_mul(part, part));
        round = up_hypot(round, up_head_round(w, size, up_mul(nq, size), fq, inner));
    }
    const taut_up out = up_state(ledger, "out_norm", up_norm(w->wo, w->width, w->heads * w->dh));
    const taut_up base = up_mul(up_div(up_sqrt(sum), root), out), fo = up_norm_frobenius(w->wo, head * w->heads);
    const taut_up last = up_mul(up_gamma(w->heads * w->dh + 2), up_mul(up_div(up_sqrt(sum), root), size));
    return (taut_l2attention_bound){ up_mul(tokens, base), up_mul(flat, base), base,
                                     up_add(up_mul(fo, up_add(round, last)), UP_LOST) };
}
