/* Attention at an input: from the rows' numbers (local_row.c) to constants.
 *
 * Row i of head h maps the key tokens' changes e and the query token's own change f_i to a vector of length at most
 *     sqrt(sum_j K_ij |e_j|^2) + tau_i |f_i|,   K_ij = p_ij beta_i       (Cauchy-Schwarz with weights P_ij).
 * In self-attention f = e, and the keys' part and the queries' part of a constant add up; in cross-attention e and f
 * are different tokens, and the two parts add up in squares (join).  [x_i] is the matrix of the rows x_i.  One head:
 *     triangle   sqrt(max_j sum_i K_ij) + max_i tau_i
 *     concave    of the same K and tau, local_concave.c
 *     split      nv ||p|| + ||[vm_i u_i]|| + max_i tau_i: through the values, the keys' logits, the queries' logits
 *     block      ||N||, N_ij the norm of the Jacobian's block (i, j), where N_ii includes tau_i
 *     pair       of small heads at the input itself, local_pair.c
 *     tokens     max_i ( sqrt(beta_i) + tau_i )
 * All heads, which write into different coordinates (without W_O its norm is 1, and sum_h ||W_O^h|| L_h is not used):
 *     triangle, concave, tokens   of K = sum_h K^h, tau_i^2 = sum_h (tau_i^h)^2, beta_i = sum_h beta_i^h, times ||W_O||
 *     block      the smaller of ||W_O|| sqrt(sum_h L_h^2) and sum_h ||W_O^h|| L_h, L_h the least of head h's five
 *     split      V + ||W_O|| ( ||stack_h [vm_i u_i]|| + max_i tau_i ), where with Q = mean_h P^h V is the smaller of
 *                ||Q|| ||W_O W_V|| + ||W_O|| sqrt(sum_h ||P^h - Q||^2 nv_h^2), ||W_O|| sqrt(sum_h ||p^h||^2 nv_h^2)
 * Where token j comes out of a map of constant l_j (slope_k, slope_q), K_ij, N_ij and tau_i become K_ij l_j^2, N_ij l_j
 * and tau_i l_i; in split and tokens the keys' part is multiplied by max_j l_j.
 *
 * Errors.  The real P' has |P' - p| <= 2 dev, entry by entry.  The rows vm_i u_i are made from the computed q; the real
 * u'_i is off by at most s (na d_i + nk eq_i), which is added in Frobenius norm.  For one head a root of W_K W_K^T
 * takes the place of W_K, which adds s sqrt(lost) |q_i|. */
#include "bound/local.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/local_impl.h"
#include "bound/norm.h"
#include "bound/positive.h"

typedef struct {
    const taut_attention_weights *w;
    const taut_local_at *at;
    double *k, *tau2, *beta; /* sums over heads of K, tau^2 and beta */
    double *p, *dev;         /* (heads, tq, tk) */
    taut_ball *keys;         /* [vm_i u_i], one per head (not with RoPE) */
    /* loose: sqrt(sum_h x_h^2), x_h what the norm of keys[h] can lack (RoPE: the whole up_key_part); root: sqrt(sum_h
     * L_h^2); sum: sum_h ||W_O^h|| L_h; values: sqrt(sum_h ||p^h||^2 nv_h^2) */
    taut_up loose, root, sum, values;
    taut_up *slope_q, *slope_k, *nv;
} layer;

static taut_up up_max_tau(const layer *l, const double *tau)
{
    taut_up most = UP_ZERO;
    for (int64_t i = 0; i < l->w->tq; i++) most = up_max(most, up_mul(up_wrap(tau[i]), l->slope_q[i]));
    return most;
}

static taut_up up_largest(const taut_up *x, int64_t n)
{
    taut_up most = UP_ZERO;
    for (int64_t i = 0; i < n; i++) most = up_max(most, x[i]);
    return most;
}

static taut_up join(const layer *l, taut_up keys, taut_up queries)
{
    return l->w->cross ? up_hypot(keys, queries) : up_add(keys, queries);
}

/* triangle and concave of K and tau, both still without the factors l. */
static void root_bounds(const layer *l, taut_local_bound *b, const double *k, const double *tau)
{
    const int64_t tq = l->w->tq, tk = l->w->tk;
    double *scaled = taut_malloc((size_t)(tq * tk + tq + 1) * sizeof *scaled);
    taut_up most = UP_ZERO;
    if (!scaled) return;
    double *t = scaled + tq * tk;
    for (int64_t j = 0; j < tk; j++) {
        const taut_up square = up_mul(l->slope_k[j], l->slope_k[j]);
        taut_up col = UP_ZERO;
        for (int64_t i = 0; i < tq; i++) {
            const taut_up x = up_mul(up_wrap(k[i * tk + j]), square);
            scaled[i * tk + j] = x.v;
            col = up_add(col, x);
        }
        most = up_max(most, col);
    }
    for (int64_t i = 0; i < tq; i++) t[i] = up_mul(up_wrap(tau[i]), l->slope_q[i]).v;
    b->triangle = join(l, up_sqrt(most), up_max_tau(l, tau));
    b->concave = up_min(b->triangle, up_concave(scaled, t, tq, tk, !l->w->cross));
    free(scaled);
}

/* block of one head. */
static taut_up up_blocks(const layer *l, const local_head *f)
{
    const int64_t tq = f->tq, tk = f->tk;
    double *n = taut_malloc((size_t)(tq * tk + 1) * sizeof *n);
    if (!n) return UP_NONE;
    for (int64_t i = 0; i < tq; i++)
        for (int64_t j = 0; j < tk; j++) {
            const taut_up own = { !l->w->cross && i == j ? f->tau[i] : 0 };
            n[i * tk + j] = up_mul(up_add(up_wrap(f->block[i * tk + j]), own), l->slope_k[j]).v;
        }
    const taut_up norm = up_norm_positive(n, tq, tk);
    free(n);
    return l->w->cross ? up_hypot(norm, up_max_tau(l, f->tau)) : norm;
}

/* [vm_i s q_i^T R], where R is r = W_K, or r transposed for a root r with W_K W_K^T <= r^T r + lost I.  *loose becomes
 * what its norm can lack of the norm of the real [vm_i u'_i]. */
static taut_ball key_rows(const local_head *f, const taut_ball *r, bool transposed, double lost, taut_up *loose)
{
    const taut_up root = up_sqrt(up_wrap(lost)), na = { f->na }, nk = { f->nk }, s = { f->s };
    taut_up out = UP_ZERO;
    taut_ball q = ball_of(f->q, f->tq, f->dh), u = ball_mul(&q, false, r, transposed);
    taut_ball rows = ball_scale_rows(&u, f->vm), scaled = ball_scale(&rows, f->s);
    for (int64_t i = 0; i < f->tq; i++) {
        const double *d = f->w->cross ? f->at->dq : f->at->dk;
        const taut_up moved = up_mul(na, (taut_up){ d ? d[i] : 0 }), wrong = up_mul(nk, up_wrap(f->eq[i]));
        const taut_up rest = up_mul(root, up_norm_frobenius(f->q + i * f->dh, f->dh));
        const taut_up away = up_mul(up_mul(up_wrap(f->vm[i]), s), up_add(up_add(moved, wrong), rest));
        out = up_add(out, up_mul(away, away));
    }
    *loose = up_sqrt(out);
    ball_free(&q), ball_free(&u), ball_free(&rows);
    return scaled;
}

/* The keys' logits: ||[vm_i u_i]||; with RoPE sqrt(max_j sum_i p_ij U_i^2 lam_i), where U_i sqrt(lam_i) comes from
 * beta_i = (nv + U_i sqrt(lam_i))^2. */
static taut_up up_key_part(const local_head *f)
{
    if (!f->w->rope) {
        taut_up loose;
        taut_ball rows = key_rows(f, &f->rk, true, f->lost_k, &loose);
        const taut_up r = up_add(up_ball_norm(&rows), loose);
        ball_free(&rows);
        return r;
    }
    taut_up most = UP_ZERO;
    for (int64_t j = 0; j < f->tk; j++) {
        taut_up col = UP_ZERO;
        for (int64_t i = 0; i < f->tq; i++) { /* beta has this very nv in it: exact */
            const taut_up u = up_sub(up_sqrt(up_wrap(f->beta[i])), lo_exact(f->nv));
            col = up_add(col, up_mul(up_wrap(f->p[i * f->tk + j]), up_mul(u, u)));
        }
        most = up_max(most, col);
    }
    return up_sqrt(most);
}

static taut_up up_all(const taut_local_bound *b)
{
    return up_min(b->pair, up_min(up_min(b->triangle, b->concave), up_min(b->split, b->block)));
}

static taut_local_bound up_head(const layer *l, const local_head *f)
{
    taut_local_bound b = { UP_NONE, UP_NONE, UP_NONE, UP_NONE, UP_NONE, UP_NONE, UP_ZERO };
    const int64_t tq = f->tq, tk = f->tk;
    double *k = taut_malloc((size_t)(tq * tk + 1) * sizeof *k);
    for (int64_t i = 0; k && i < tq * tk; i++) k[i] = up_mul(up_wrap(f->p[i]), up_wrap(f->beta[i / tk])).v;
    if (k) root_bounds(l, &b, k, f->tau);
    free(k);
    const taut_up most = up_largest(l->slope_k, tk), keys = up_key_part(f);
    const taut_up values = up_mul(up_wrap(f->nv), up_norm_positive(f->p, tq, tk));
    b.split = join(l, up_mul(most, up_add(values, keys)), up_max_tau(l, f->tau));
    b.block = up_blocks(l, f), b.pair = up_pair(f, l->slope_k);
    for (int64_t i = 0; i < tq; i++)
        b.tokens = up_max(
            b.tokens, up_add(up_mul(most, up_sqrt(up_wrap(f->beta[i]))), up_mul(up_wrap(f->tau[i]), l->slope_q[i])));
    b.flat = up_all(&b);
    return b;
}

static taut_up up_out_part(const taut_attention_weights *w, int64_t h)
{
    if (!w->wo) return (taut_up){ 1 };
    taut_ball o = ball_of(w->wo, w->width, w->heads * w->dh), part = ball_cols(&o, h * w->dh, w->dh);
    const taut_up norm = up_ball_norm(&part);
    ball_free(&o), ball_free(&part);
    return norm;
}

/* Adds head f, whose constants are b, to the sums over heads. */
static void gather(layer *l, const local_head *f, const taut_local_bound *b)
{
    const int64_t tq = f->tq, tk = f->tk, h = f->index, d = l->w->width;
    for (int64_t i = 0; i < tq; i++) {
        const taut_up beta = up_wrap(f->beta[i]), tau = up_wrap(f->tau[i]);
        l->beta[i] = up_add((taut_up){ l->beta[i] }, beta).v;
        l->tau2[i] = up_add((taut_up){ l->tau2[i] }, up_mul(tau, tau)).v;
        for (int64_t j = 0; j < tk; j++) {
            double *sum = &l->k[i * tk + j];
            *sum = up_add((taut_up){ *sum }, up_mul(up_wrap(f->p[i * tk + j]), beta)).v;
        }
    }
    memcpy(l->p + h * tq * tk, f->p, (size_t)(tq * tk) * sizeof *f->p);
    memcpy(l->dev + h * tq * tk, f->dev, (size_t)(tq * tk) * sizeof *f->dev);
    l->values = up_hypot(l->values, up_mul(up_wrap(f->nv), up_norm_positive(f->p, tq, tk)));
    l->root = up_hypot(l->root, b->flat);
    l->sum = up_add(l->sum, up_mul(up_out_part(l->w, h), b->flat));
    l->nv[h] = up_wrap(f->nv);
    if (l->w->rope) {
        l->loose = up_hypot(l->loose, up_key_part(f));
        return;
    }
    taut_up loose;
    taut_ball wk = ball_of(l->w->wk + h * f->dh * d, f->dh, d);
    l->keys[h] = key_rows(f, &wk, false, 0, &loose);
    l->loose = up_hypot(l->loose, loose);
    ball_free(&wk);
}

/* ||W_O W_V||; without W_O ||W_V||. */
static taut_up up_value_norm(const taut_attention_weights *w)
{
    const int64_t inner = w->heads * w->dh;
    if (!w->wo) return up_norm(w->wv, inner, w->width);
    taut_ball o = ball_of(w->wo, w->width, inner), v = ball_of(w->wv, inner, w->width),
              m = ball_mul(&o, false, &v, false);
    const taut_up norm = up_ball_norm(&m);
    ball_free(&o), ball_free(&v), ball_free(&m);
    return norm;
}

/* sqrt(sum_h ||P^h - Q||^2 nv_h^2), and in *mean_norm ||Q||. */
static taut_up up_apart(const layer *l, taut_up *mean_norm)
{
    const int64_t heads = l->w->heads, tq = l->w->tq, tk = l->w->tk, len = tq * tk;
    double *mean = taut_calloc((size_t)(3 * len + 1), sizeof *mean);
    taut_up all = UP_ZERO;
    if (!mean) return *mean_norm = UP_NONE;
    double *dev = mean + len, *diff = dev + len;
    const taut_up g = up_gamma(heads + 8); /* roundings of a computed mean and of the difference from it */
    for (int64_t i = 0; i < len; i++) {
        taut_up sum = UP_ZERO;
        for (int64_t h = 0; h < heads; h++)
            mean[i] += l->p[h * len + i], sum = up_add(sum, up_wrap(l->dev[h * len + i]));
        mean[i] /= (double)heads, dev[i] = up_div(sum, lo_exact((double)heads)).v;
    }
    for (int64_t h = 0; h < heads; h++) {
        taut_up away = UP_ZERO;
        for (int64_t i = 0; i < len; i++) {
            const taut_up p = { l->p[h * len + i] }, both = up_add(up_wrap(l->dev[h * len + i]), (taut_up){ dev[i] });
            const taut_up e = up_add(up_ldexp(both, 1), up_mul(g, up_add(p, (taut_up){ mean[i] })));
            diff[i] = p.v - mean[i];
            away = up_add(away, up_mul(e, e));
        }
        const taut_up norm = up_add(up_norm(diff, tq, tk), up_sqrt(away));
        all = up_hypot(all, up_mul(norm, l->nv[h]));
    }
    for (int64_t i = 0; i < len; i++) mean[i] = up_mul((taut_up){ mean[i] }, up_add((taut_up){ 1 }, g)).v;
    *mean_norm = up_norm_positive(mean, tq, tk);
    free(mean);
    return all;
}

static taut_up up_split(const layer *l, taut_up out, const double *tau)
{
    taut_up keys = l->loose, mean;
    if (!l->w->rope) {
        taut_ball all = ball_vcat(l->keys, l->w->heads);
        keys = up_add(keys, up_ball_norm(&all));
        ball_free(&all);
    }
    const taut_up apart = up_apart(l, &mean);
    const taut_up shared = up_add(up_mul(mean, up_value_norm(l->w)), up_mul(out, apart));
    const taut_up values = up_min(shared, up_mul(out, l->values)), most = up_largest(l->slope_k, l->w->tk);
    return join(l, up_mul(most, up_add(values, up_mul(out, keys))), up_mul(out, up_max_tau(l, tau)));
}

static taut_local_bound up_layer(const layer *l)
{
    taut_local_bound b = { UP_NONE, UP_NONE, UP_NONE, UP_NONE, UP_NONE, UP_NONE, UP_ZERO };
    const int64_t tq = l->w->tq, inner = l->w->heads * l->w->dh;
    const taut_up out = l->w->wo ? up_norm(l->w->wo, l->w->width, inner) : (taut_up){ 1 };
    const taut_up most = up_largest(l->slope_k, l->w->tk);
    for (int64_t i = 0; i < tq; i++) l->tau2[i] = up_sqrt((taut_up){ l->tau2[i] }).v; /* from here on tau */
    root_bounds(l, &b, l->k, l->tau2);
    b.triangle = up_mul(out, b.triangle), b.concave = up_mul(out, b.concave);
    b.split = up_split(l, out, l->tau2);
    b.block = l->w->wo ? up_min(up_mul(out, l->root), l->sum) : l->root;
    for (int64_t i = 0; i < tq; i++)
        b.tokens = up_max(b.tokens, up_add(up_mul(most, up_sqrt(up_wrap(l->beta[i]))),
                                           up_mul((taut_up){ l->tau2[i] }, l->slope_q[i])));
    b.tokens = up_mul(out, b.tokens);
    b.flat = up_all(&b);
    if (!l->w->wo) return b;
    taut_up *const each[] = { &b.triangle, &b.concave, &b.split, &b.block, &b.flat, &b.tokens };
    for (int i = 0; i < 6; i++) *each[i] = up_mul(up_exact(l->w->out), *each[i]);
    return b;
}

static void slopes(taut_up *out, const taut_up *given, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = given ? given[i] : (taut_up){ 1 };
}

static bool layer_begin(layer *l)
{
    const taut_attention_weights *w = l->w;
    const size_t tq = (size_t)w->tq, tk = (size_t)w->tk, heads = (size_t)w->heads;
    l->k = taut_calloc(tq * tk * (1 + 2 * heads) + 2 * tq + 1, sizeof *l->k);
    l->keys = taut_calloc(heads, sizeof *l->keys);
    l->slope_q = taut_calloc(tq + tk + heads + 1, sizeof *l->slope_q);
    if (!l->k || !l->keys || !l->slope_q) return false;
    l->p = l->k + tq * tk, l->dev = l->p + heads * tq * tk, l->beta = l->dev + heads * tq * tk, l->tau2 = l->beta + tq;
    l->slope_k = l->slope_q + tq, l->nv = l->slope_k + tk;
    slopes(l->slope_k, l->at->slope_k, w->tk);
    slopes(l->slope_q, w->cross ? l->at->slope_q : l->at->slope_k, w->tq);
    return true;
}

taut_local_bound up_attention_local(const taut_attention_weights *w, const taut_local_at *at, taut_local_bound *heads)
{
    const taut_local_bound none = { UP_NONE, UP_NONE, UP_NONE, UP_NONE, UP_NONE, UP_NONE, UP_NONE };
    layer l = { .w = w, .at = at };
    bool good = w->tq > 0 && w->tk > 0 && layer_begin(&l);
    for (int64_t h = 0; heads && h < w->heads; h++) heads[h] = none;
    for (int64_t h = 0; good && h < w->heads; h++) {
        local_head f;
        good = local_head_begin(&f, w, at, h);
        if (good) local_pair_begin(&f);
        good = good && local_rows(&f);
        if (good) {
            const taut_local_bound b = up_head(&l, &f);
            if (heads) heads[h] = b;
            gather(&l, &f, &b);
        }
        local_head_end(&f);
    }
    const taut_local_bound all = good ? up_layer(&l) : none;
    for (int64_t h = 0; l.keys && h < w->heads; h++) ball_free(&l.keys[h]);
    free(l.k), free(l.keys), free(l.slope_q);
    return all;
}
