/* Stage I, kt_j = sum_i A_ij k_i and vt_j = sum_i A_ij v_i with A_i = softmax over j of s k_i.p_j, and Stage III,
 * softmax attention of the queries to the representatives, per head.  T keys of length at most K, values V,
 * prototypes P, H heads; proofs in docs/modules/plash.md:
 *     |(kt_j, vt_j)| <= T sqrt(K^2 + V^2)
 *     slope          <= g T (tokens), g sqrt(T) (flat),
 *                       g^2 = (||W_K|| (1 + 2 s P K))^2 + (||W_V|| + 2 s P V ||W_K||)^2
 *     |o|            <= sqrt(H) VG
 *     slope          <= s VG KG ||W_Q|| in a query;  sqrt(H) ||W_Vg|| + s VG Q ||W_Kg|| in the largest
 *                       representative, ||W_Vg|| + s VG Q ||W_Kg|| in their l2 norm */
#include "bound/plash.h"

/* How wrong weights within exp(+-x) are, relatively; never more than 1 of a weight up to 1, nor 2 of a mean. */
static taut_up wrong_by(taut_up x, double most) { return x.v <= 0.5 ? up_add(x, up_mul(x, x)) : (taut_up){ most }; }

static taut_up twice(taut_up x) { return up_ldexp(x, 1); }

taut_plash_route up_plash_route(const taut_plash_reach *r)
{
    const taut_up s = up_exact(r->route), t = up_int(r->tk), sp = twice(up_mul(s, r->prototype));
    const taut_up a = up_mul(r->k.norm, up_add((taut_up){ 1 }, up_mul(sp, r->k.size)));
    const taut_up b = up_add(r->v.norm, up_mul(up_mul(sp, r->v.size), r->k.norm));
    const taut_up g = up_hypot(a, b), size = up_mul(t, up_hypot(r->k.size, r->v.size));
    /* the errors of k and v go through as any change does; then the logits' and the sums' own */
    const taut_up in_k = up_mul(r->k.round, up_add((taut_up){ 1 }, up_mul(sp, r->k.size)));
    const taut_up in_v = up_add(r->v.round, up_mul(up_mul(sp, r->v.size), r->k.round));
    const taut_up logit = up_mul(up_gamma(r->dh + 8), up_mul(s, up_mul(r->prototype, r->k.size)));
    const taut_up own = up_add(wrong_by(up_add(up_ldexp(logit, 2), up_gamma(r->groups + 32)), 1), up_gamma(r->tk + 8));
    return (taut_plash_route){ size, up_mul(g, t), up_mul(g, up_sqrt(t)),
                               up_add(up_mul(t, up_hypot(in_k, in_v)), up_mul(up_felt(size), own)) };
}

taut_plash_readout up_plash_readout(const taut_plash_reach *r, taut_up group_round)
{
    const taut_up s = up_exact(r->scale), heads = up_sqrt(up_int(r->heads)), vg = r->vg.size, kg = r->kg.size;
    const taut_up slope = up_mul(up_mul(s, vg), up_mul(r->q.size, r->kg.norm));
    const taut_up dk = up_add(r->kg.round, up_mul(r->kg.norm, group_round));
    const taut_up dv = up_add(r->vg.round, up_mul(r->vg.norm, group_round));
    taut_up logit = up_add(up_mul(r->q.round, up_add(kg, dk)), up_mul(r->q.size, dk));
    logit = up_mul(s, up_add(logit, up_mul(up_gamma(r->dh + 16), up_mul(r->q.size, kg))));
    const taut_up p = wrong_by(up_add(up_ldexp(logit, 2), up_gamma(r->groups + 32)), 2);
    const taut_up wrong = up_add(up_mul(up_felt(up_add(vg, dv)), up_add(p, up_gamma(r->groups + 8))), dv);
    return (taut_plash_readout){ up_mul(heads, vg), up_mul(up_mul(s, vg), up_mul(kg, r->q.norm)),
                                 up_add(up_mul(heads, r->vg.norm), slope), up_add(r->vg.norm, slope),
                                 up_mul(heads, wrong) };
}
