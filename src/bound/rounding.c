/* An inner product of length k is wrong by at most g_k sum |a_i b_i| (up_gamma), so W x by g_k |W||x| entry
 * by entry, whose l2 norm is at most g_k ||W||_F |x|.  The rest is the triangle inequality: what a stage
 * adds, and what it does to the error that comes in.  What underflows is added wherever numbers are multiplied
 * (UP_LOST), before the factors behind.  All constants are generous: 1e-13 more or less changes no verdict. */
#include "bound/rounding.h"

#include "bound/norm.h"

static taut_up vector(const double *b, int64_t len) { return b ? up_norm_frobenius(b, len) : UP_ZERO; }

static taut_up largest(const double *g, int64_t d)
{
    taut_up most = UP_ZERO;
    for (int64_t i = 0; i < d; i++) most = up_max(most, up_exact(g[i]));
    return g ? most : (taut_up){ 1 };
}

taut_up up_round_sum(taut_up a, taut_up b) { return up_add(up_mul((taut_up){ 0x1p-50 }, up_add(a, b)), UP_LOST); }

/* |W| |x| + |b|, the size of what W x + b adds up */
static taut_up mass(const double *w, const double *b, int64_t rows, int64_t cols, taut_up size)
{
    return up_add(up_mul(up_norm_frobenius(w, rows * cols), size), vector(b, rows));
}

taut_up up_round_linear(const double *w, const double *b, int64_t rows, int64_t cols, taut_up size)
{
    return up_rounded(cols + 4, mass(w, b, rows, cols, size));
}

taut_up up_round_curve(taut_up size) { return up_add(up_mul((taut_up){ 0x1p-47 }, size), UP_LOST); }

/* Centring moves x by at most g_{d+4} |x|; x / sqrt(|x|^2/d + eps) is 1/sqrt(eps)-Lipschitz; the root, the
 * division and the gain are relative errors of something no longer than sqrt(d), and what squares lose is small beside eps. */
taut_up up_round_normlayer(const double *g, const double *b, int64_t d, double eps, taut_up size)
{
    const taut_up root = up_sqrt(up_int(d)), most = largest(g, d);
    const taut_up centred = up_div(up_rounded(d + 4, size), lo_sqrt(lo_exact(eps)));
    const taut_up relative = up_add(up_gamma(d + 12), up_div(UP_LOST, lo_exact(eps)));
    const taut_up scaled = up_mul(most, up_add(centred, up_add(up_mul(relative, root), UP_LOST)));
    return up_add(scaled, up_round_sum(up_mul(most, root), vector(b, d)));
}

taut_up up_round_size(const double *g, const double *b, int64_t d)
{
    const taut_up z = up_mul(up_sqrt(up_int(d)), (taut_up){ 1 + 0x1p-20 });
    return up_mul(up_add(up_mul(largest(g, d), z), vector(b, d)), (taut_up){ 1 + 0x1p-40 });
}

taut_up up_round_centre(const double *g, int64_t d, taut_up size)
{
    return up_mul(up_mul((taut_up){ 2 }, largest(g, d)), up_rounded(d + 8, size));
}

taut_up up_round_mlp(const taut_mlp_weights *w, taut_up size)
{
    const taut_up h = mass(w->w_in, w->b_in, w->hidden, w->width, size), factor = up_exact(w->factor);
    const taut_up dh = up_rounded(w->width + 4, h), curve = up_round_curve(up_add(h, dh));
    const taut_up da = up_add(up_mul(factor, up_add(up_mul(up_slopes_lip(w->slopes), dh), curve)), UP_LOST);
    const taut_up a = up_add(up_mul(factor, h), da), frobenius = up_norm_frobenius(w->w_out, w->out * w->hidden);
    const taut_up second = up_rounded(w->hidden + 4, up_add(up_mul(frobenius, a), vector(w->b_out, w->out)));
    return up_add(up_mul(frobenius, da), second);
}

/* How wrong a mean with weights within exp(+-x) can be, relative to its values: exp(x) - 1 <= x + x^2 for x <= 1; and never
 * more than the distance between two means. */
static taut_up up_expm1(taut_up x)
{
    return x.v <= 1 ? up_add(x, up_mul(x, x)) : (taut_up){ x.v < 0x1p900 ? 3 : INFINITY };
}

/* A logit is wrong by dS: the errors of q and k, the inner product, turning by a position's angle, alibi.
 * Then every probability is wrong by a factor within exp(+-2 dS) and n + 20 roundings, and so is the mean of
 * the values; a probability that underflows is one of the roundings that are counted and not made. */
taut_up up_round_attention(const taut_attention_weights *w, taut_up size)
{
    const int64_t inner = w->heads * w->dh;
    const taut_up s = up_exact(w->scale), c = up_exact(w->out), tokens = up_int(w->tq > w->tk ? w->tq : w->tk);
    const taut_up q = up_felt(mass(w->wq, w->bq, inner, w->width, size)), gemm = up_gamma(w->width + 8);
    const taut_up k = up_felt(mass(w->wk, w->bk, inner, w->width, size));
    const taut_up v = up_felt(mass(w->wv, w->bv, inner, w->width, size));
    const taut_up turn = w->rope ? up_mul((taut_up){ 0x1p-48 }, up_add(tokens, (taut_up){ 1 })) : UP_ZERO;
    const taut_up relative = up_add(up_mul((taut_up){ 3 }, up_add(gemm, turn)), up_gamma(w->dh + 16));
    const taut_up product = up_add(up_mul(up_mul(q, k), up_mul((taut_up){ 2 }, relative)),
                                   UP_LOST); /* also of S - max */
    taut_up ds = up_add(up_mul(s, product), UP_LOST);
    if (w->alibi) ds = up_add(ds, up_mul((taut_up){ 0x1p-49 }, tokens));
    const taut_up p = up_expm1(up_add(up_mul((taut_up){ 2 }, ds), up_gamma(w->tk + 32)));
    const taut_up heads = up_sqrt(up_int(w->heads)), mean = up_mul(heads, v);
    const taut_up wrong = up_mul(mean, up_add(p, up_add(up_mul((taut_up){ 2 }, gemm), up_gamma(w->tk + 8))));
    const taut_up frobenius = up_norm_frobenius(w->wo, w->width * inner);
    const taut_up out = up_add(up_mul(frobenius, wrong), up_rounded(inner + 8, up_mul(frobenius, up_add(mean, wrong))));
    return up_add(up_mul(c, out), up_round_sum(up_mul(c, up_mul(frobenius, mean)), vector(w->bo, w->width)));
}
