/* How wrong cosine attention is when it is computed in double.
 *
 * q = W_Q x + b_Q is off by g |W||x| entry by entry, turning it by an angle that grows with the position adds
 * 2^-48 a position, and n is 1/sqrt(eps)-Lipschitz with a few roundings of a vector no longer than 1; what its
 * squares lose by underflow is small beside eps.  A logit is off by tau times both, every probability by a
 * factor within exp(+-2 dS), and the rest is sums. */
#include "bound/cosine.h"
#include "bound/norm.h"

static taut_up vector(const double *b, int64_t len) { return b ? up_norm_frobenius(b, len) : UP_ZERO; }

/* |W| |x| + |b|, the size of what W x + b adds up */
static taut_up mass(const double *w, const double *b, int64_t rows, int64_t cols, taut_up size)
{
    return up_add(up_mul(up_norm_frobenius(w, rows * cols), size), vector(b, rows));
}

/* of n(W x + b) */
static taut_up up_wrong(const taut_cosine_weights *w, taut_up size, taut_up relative)
{
    const taut_up slope = up_div((taut_up){ 1 }, lo_sqrt((taut_lo){ w->eps }));
    const taut_up lost = up_div(UP_LOST, (taut_lo){ w->eps });
    return up_add(up_mul(slope, up_mul(up_felt(size), relative)), up_add(up_gamma(w->dh + 16), lost));
}

taut_up up_cosine_round(const taut_cosine_weights *w, taut_up x)
{
    const int64_t inner = w->heads * w->dh;
    const taut_up c = up_exact(w->out), tau = up_exact(w->tau), heads = up_sqrt(up_int(w->heads));
    const taut_up tokens = up_int(w->tokens), gemm = up_gamma(w->width + 8);
    const taut_up angle = w->rope ? up_mul((taut_up){ 0x1p-48 }, up_add(tokens, (taut_up){ 1 })) : UP_ZERO;
    const taut_up turned = up_add(gemm, angle);
    const taut_up dq = up_wrong(w, mass(w->wq, w->bq, inner, w->width, x), turned);
    const taut_up dk = up_wrong(w, mass(w->wk, w->bk, inner, w->width, x), turned);
    const taut_up v = up_felt(mass(w->wv, w->bv, inner, w->width, x));
    const taut_up dn = up_add(up_add(dq, dk), up_add(up_mul(dq, dk), up_gamma(w->dh + 16)));
    taut_up ds = up_mul((taut_up){ 2 }, up_mul(tau, dn)); /* also of S - max */
    if (w->alibi) ds = up_add(ds, up_mul((taut_up){ 0x1p-49 }, tokens));
    const taut_up twice = up_add(up_mul((taut_up){ 2 }, ds), up_gamma(w->tokens + 32));
    const taut_up p = twice.v <= 1 ? up_add(twice, up_mul(twice, twice)) : UP_NONE; /* exp(x) - 1 */
    const taut_up dv = w->values ? up_wrong(w, v, gemm) : up_mul(v, gemm);
    const taut_up mean = up_mul(heads, w->values ? up_exact(1) : v);
    const taut_up wrong = up_add(up_mul(mean, up_add(p, up_gamma(w->tokens + 8))),
                                 up_mul(up_mul((taut_up){ 2 }, heads), dv));
    const taut_up frobenius = up_norm_frobenius(w->wo, w->width * inner);
    const taut_up out = up_add(up_mul(frobenius, wrong),
                               up_rounded(inner + 16, up_mul(frobenius, up_add(mean, wrong))));
    const taut_up sum = up_mul((taut_up){ 0x1p-50 },
                               up_add(up_mul(c, up_mul(frobenius, mean)), vector(w->bo, w->width)));
    return up_add(up_mul(c, out), up_add(sum, UP_LOST));
}
