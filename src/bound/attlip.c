/* The rounding of AttLip's residual g = sum_h G_h W_h + (y - x)/eta in double, u = 2^-53, gamma_k = k u/(1 - k u).
 *
 * Per head, vm = max |v_i|, w = |W_h|_F, s the scale, n tokens, d features:
 *     turn = 2^-48 (n + 1) with rotary positions, else 0 a rotation: the angle of a position, its sine, two products
 *     ev = gamma_{d+1} max |y_i| w + turn vm             a computed v_i is off by ev
 *     ES = s (8 vm ev + 4 gamma_{dh+4} vm^2) + 2^-49 near n      a logit: |v_i + v_j|^2 moves by 2 |v_i + v_j| 2 ev, and is
 *                                                        summed; the distance's part
 *     Ea = e^{2 ES} - 1 + gamma_{n+10}                   alpha, relative: exp, its row sum, a quotient
 *     head: [ s (2 (Ea + gamma_{n+4}) vm + 2 ev) |1 + col| + (gamma_{heads dh + 2} + turn) |G_h| ] w
 * since g_k's coefficients (1 + col_k) and alpha_ki + alpha_ik sum to 2 (1 + col_k).  Then gamma_3 (|y| + |x|)/eta for the
 * other term, and |g|_fp (1 + gamma_{n d + 4}) for the norm, beside whose squares 2^-500 stands for what they lose.  What other
 * products lose (UP_LOST) is added where they are made.  The norms that go in were computed themselves, within
 * 2^-20: they are raised by that.  exp is taken to be within 4 units in the last place. */
#include "bound/attlip.h"

static taut_up raised(double computed) { return up_mul(up_exact(computed), (taut_up){ 1 + 0x1p-20 }); }

/* e^x - 1 from above, x >= 0: x + x^2 for x <= 1. */
static taut_up up_growth(taut_up x) { return x.v <= 1 ? up_add(x, up_mul(x, x)) : UP_NONE; }

static taut_up up_head(const taut_attlip_point *p, const taut_attlip_head *h)
{
    const taut_up s = up_exact(p->scale), vm = raised(h->longest), w = raised(h->weight);
    const taut_up turn = p->rope ? up_mul((taut_up){ 0x1p-48 }, up_int(p->tokens + 1)) : UP_ZERO;
    const taut_up ev = up_add(up_rounded(p->width + 1, up_mul(raised(p->longest), w)), up_mul(turn, vm));
    const taut_up moved = up_mul((taut_up){ 8 }, up_mul(vm, ev));
    const taut_up summed = up_mul((taut_up){ 4 }, up_rounded(p->dh + 4, up_mul(vm, vm)));
    const taut_up away = up_mul((taut_up){ 0x1p-49 }, up_mul(up_exact(p->near), up_int(p->tokens)));
    const taut_up logit = up_add(up_mul(s, up_add(moved, summed)), away);
    const taut_up alpha = up_add(up_growth(up_mul((taut_up){ 2 }, logit)), up_gamma(p->tokens + 10));
    const taut_up weights = up_mul(up_mul((taut_up){ 2 }, up_add(alpha, up_gamma(p->tokens + 4))), vm);
    const taut_up sums = up_add(up_add(weights, up_mul((taut_up){ 2 }, ev)), UP_LOST);
    const taut_up rows = up_add(up_mul(up_mul(s, sums), raised(h->columns)), UP_LOST);
    const taut_up back = up_add(up_gamma(p->heads * p->dh + 2), turn);
    return up_add(up_mul(up_add(rows, up_mul(back, raised(h->g))), w), UP_LOST);
}

taut_up up_attlip_residual(const taut_attlip_point *p, const taut_attlip_head *h)
{
    taut_up sum = UP_ZERO;
    for (int64_t i = 0; i < p->heads; i++) sum = up_add(sum, up_head(p, &h[i]));
    sum = up_mul((taut_up){ 1.01 }, sum); /* what is of second order */
    const taut_up other = up_rounded(3, up_div(up_add(raised(p->y), raised(p->x)), lo_exact(p->eta)));
    const taut_up norm = up_add((taut_up){ 1 }, up_gamma(p->tokens * p->width + 4));
    return up_add(up_add(sum, other), up_mul(up_add(up_exact(p->residual), (taut_up){ 0x1p-500 }), norm));
}
