/* Multi-head attention: Lipschitz constants and growth, from the weights alone.
 *
 * X_q and X_k are the sizes of query and key tokens, s = |scale|, A_h = W_K^hT W_Q^h, and M_h = W_O^h W_V^h; a head is
 * live unless M_h = 0.  P^h_ij are the probabilities (0 where masked); xbar_i^h and Cov_i^h are the mean and the
 * covariance of the key tokens under row i of P^h; u_i^h = s W_K^hT q_i^h.  When key token j moves by e_j and query
 * token i by f, row i of the Jacobian gives
 *     sum_h M_h ( sum_j P_ij (I + (x_j - xbar_i) u_i^T) e_j + s Cov_i A_h f ).          (b_K and b_V drop out)
 * [M_h] are blocks side by side; [A_h], and all other [B_h], are blocks one below the other.  For any r_h > 0 let
 *     T = ||[M_h / r_h]||,   N = ||[r_h A_h]||,   n = |[r_h W_K^hT b_Q^h]|,   sigma = sum_h r_h^2,
 *     in = s X_k (X_q N + n)   >=  X_k sqrt(sum_h r_h^2 |u_i^h|^2).
 * Cauchy-Schwarz with weights r_h^2 P_ij gives the keys' and the queries' constants; cross terms vanish, since
 * sum_j P_ij (x_j - xbar_i) = 0; and Cov_i <= X_k^2:
 *     L_x = T sqrt(sigma + in^2);   or, with two choices r and r',  L_x = T sqrt(sigma) + T' in',
 *     L_y = T s X_k^2 N.
 * tokens = |out| (L_x + L_y): f = e_i in self-attention, and cross-attention measures e and f by the larger one.
 *
 * RoPE.  u_ij now depends on j, so cross terms stay and only the form with r and r' is left; and rotations stand
 * between W_K^hT and W_Q^h, so that their product is of no use.  With kn_h = ||W_K^h||,
 *     L_x = T sqrt(sigma) + T' s X_k ( X_q ||[r'_h kn_h W_Q^h]|| + |(r'_h kn_h |b_Q^h|)_h| ),
 *     L_y = T' s X_k ||[r'_h (kn_h X_k + |b_K^h|) W_Q^h]||.
 *
 * flat.  The rows' squares add up.  Key j meets the sum over i of P^h_ij, so L_x gains sqrt(C), where
 * C >= sum_i max_h P^h_ij for every j (count.c); query i meets its own row only, so L_y gains nothing.
 *     self: |out| (sqrt(C) L_x + L_y);   cross: |out| sqrt(C L_x^2 + L_y^2).
 * growth.  |y_i| <= |out| (T sqrt(sigma) X_k + |W_O b_V|) + |b_O|, as |xbar_i^h| <= X_k; a query without keys: |b_O|.
 *
 * Every matrix goes through balls and certified norms.  Any r gives a bound, so plain estimates may choose r. */
#include "bound/attention.h"

#include <omp.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bound/count.h"
#include "bound/joint.h"
#include "bound/norm.h"
#include "bound/range.h"

enum { FAMILIES = 3 };

typedef struct {
    const taut_attention_weights *w;
    taut_ledger *ledger;
    taut_up s, xq, xk;
    int64_t live;                          /* how many heads are live: the length of the arrays below */
    taut_pair *out, *logit;                /* M_h = W_O^h W_V^h;  A_h^T = W_Q^hT W_K^h (not with RoPE) */
    taut_ball *q;                          /* W_Q^h (RoPE) */
    taut_up *kb;                           /* |W_K^hT b_Q^h|; with RoPE ||W_K^h|| |b_Q^h| */
    taut_up *kn, *kr, *qr;                 /* RoPE: ||W_K^h||, and the sizes of k and q */
    taut_spread *spread;                   /* how far the logits of a row range: for C */
    double *size_out, *size_logit, *r, *t; /* estimates of ||M_h|| and ||A_h||; this family's r and t = 1/r */
} problem;

/* One choice of r: T, sigma, in / (s X_k) and L_y / (T s X_k). */
typedef struct {
    taut_up t, sigma, in, y;
} family;

/* size * norm (`radius` is a size here); a norm of exactly 0 gives 0, even where the size is infinite. */
static taut_up times(taut_up radius, taut_up norm) { return norm.v == 0 ? UP_ZERO : up_mul(radius, norm); }

static taut_up up_vector(const double *b, int64_t len) { return b ? up_norm_frobenius(b, len) : UP_ZERO; }

/* |W_K^hT b_Q^h|, rounding included. */
static taut_up up_key_bias(const taut_attention_weights *w, int64_t h)
{
    if (!w->bq) return UP_ZERO;
    taut_ball k = ball_of(w->wk + h * w->dh * w->width, w->dh, w->width), b = ball_of(w->bq + h * w->dh, w->dh, 1);
    taut_ball kb = ball_mul(&k, true, &b, false);
    const taut_up r = up_ball_frobenius(&kb);
    ball_free(&k), ball_free(&b), ball_free(&kb);
    return r;
}

static bool allocate(problem *p, int64_t heads)
{
    const size_t n = (size_t)(heads > 0 ? heads : 1);
    p->out = taut_calloc(n, sizeof *p->out), p->logit = taut_calloc(n, sizeof *p->logit);
    p->q = taut_calloc(n, sizeof *p->q), p->spread = taut_calloc(n, sizeof *p->spread);
    p->kb = taut_calloc(4 * n, sizeof *p->kb), p->r = taut_calloc(4 * n, sizeof *p->r);
    if (!p->out || !p->logit || !p->q || !p->spread || !p->kb || !p->r) return false;
    p->kn = p->kb + n, p->kr = p->kn + n, p->qr = p->kr + n;
    p->t = p->r + n, p->size_out = p->t + n, p->size_logit = p->size_out + n;
    return true;
}

static void release(problem *p)
{
    for (int64_t h = 0; h < p->live; h++) {
        pair_free(&p->out[h]);
        pair_free(&p->logit[h]);
        ball_free(&p->q[h]);
    }
    free(p->out), free(p->logit), free(p->q), free(p->spread), free(p->kb), free(p->r);
}

/* What is certified of a head alone; with RoPE `query` is ||W_Q^h||, else ||A_h||. */
typedef struct {
    taut_up query, query_bias, key, key_bias;
} head_norms;

/* Fills in entry h of p's matrices and estimates, and its norms, if it is live; one thread's work.  false: no memory. */
static bool read_head(problem *p, int64_t h, head_norms *n)
{
    const taut_attention_weights *w = p->w;
    const int64_t at = h * w->dh, from = at * w->width;
    const double *wq = w->wq + from, *wk = w->wk + from;
    double *tall = taut_malloc((size_t)(w->width * w->dh + 1) * sizeof *tall);
    if (!tall) return false;
    for (int64_t i = 0; i < w->width; i++)
        for (int64_t j = 0; j < w->dh; j++) tall[i * w->dh + j] = w->wo[(i * w->heads + h) * w->dh + j];
    p->out[h] = pair_of(tall, w->wv + from, w->width, w->dh, w->width);
    if (!pair_is_zero(&p->out[h])) {
        p->size_out[h] = est_pair(&p->out[h]);
        if (w->rope) {
            p->q[h] = ball_of(wq, w->dh, w->width);
            n->query = up_norm(wq, w->dh, w->width), n->key = up_norm(wk, w->dh, w->width);
            n->query_bias = up_vector(w->bq ? w->bq + at : NULL, w->dh);
            n->key_bias = up_vector(w->bk ? w->bk + at : NULL, w->dh);
        } else {
            for (int64_t i = 0; i < w->dh; i++)
                for (int64_t j = 0; j < w->width; j++) tall[j * w->dh + i] = wq[i * w->width + j];
            p->logit[h] = pair_of(tall, wk, w->width, w->dh, w->width);
            p->size_logit[h] = est_pair(&p->logit[h]);
            n->query = up_joint_norm(&p->logit[h], (double[]){ 1 }, 1);
            n->query_bias = up_key_bias(w, h);
        }
    }
    free(tall);
    return true;
}

/* States a live head's norms, and how far they let its logits range. */
static void state_head(problem *p, int64_t h, int64_t at, head_norms n)
{
    const taut_attention_weights *w = p->w;
    const taut_up two_s = up_mul((taut_up){ 2 }, p->s), slope = w->alibi ? up_alibi_slope(h, w->heads) : UP_ZERO;
    ledger_open(p->ledger, "head");
    ledger_exact(p->ledger, "index", (double)h);
    if (w->rope) {
        const taut_up qn = up_state(p->ledger, "query", n.query);
        const taut_up bq = up_state(p->ledger, "query_bias", n.query_bias);
        const taut_up bk = up_state(p->ledger, "key_bias", n.key_bias);
        p->kn[at] = up_state(p->ledger, "key", n.key);
        p->kb[at] = times(bq, p->kn[at]);
        p->kr[at] = up_add(times(p->xk, p->kn[at]), bk);
        p->qr[at] = up_add(times(p->xq, qn), bq);
        p->size_logit[at] = p->kn[at].v * qn.v;
        p->spread[at] = (taut_spread){ times(times(p->kr[at], p->qr[at]), two_s), slope };
    } else {
        p->kb[at] = up_state(p->ledger, "query_bias", n.query_bias);
        const taut_up a = up_state(p->ledger, "query", n.query);
        const taut_up u = up_add(times(p->xq, a), p->kb[at]);
        p->spread[at] = (taut_spread){ times(times(p->xk, u), two_s), slope };
    }
    ledger_close(p->ledger);
}

/* Entry h becomes entry `at`, which is not behind it. */
static void move_head(problem *p, int64_t h, int64_t at)
{
    if (h == at) return;
    p->out[at] = p->out[h], p->logit[at] = p->logit[h], p->q[at] = p->q[h];
    p->size_out[at] = p->size_out[h], p->size_logit[at] = p->size_logit[h];
    p->out[h] = p->logit[h] = (taut_pair){ 0 };
    p->q[h] = (taut_ball){ 0 };
}

/* A thread has heads of its own where there are enough of them; else all threads are at each head's products. */
static bool read_heads(problem *p)
{
    const int64_t heads = p->w->heads;
    const bool apart = 2 * heads >= omp_get_max_threads() && heads * p->w->dh * p->w->width >= RANGE_SHARED;
    head_norms *norms = taut_calloc((size_t)(heads > 0 ? heads : 1), sizeof *norms);
    bool good = true;
    if (!norms) return false;
    p->live = heads;
#pragma omp parallel for schedule(dynamic) reduction(&& : good) if (heads > 1 && apart)
    for (int64_t h = 0; h < heads; h++) good = good && read_head(p, h, &norms[h]);
    if (good) p->live = 0;
    for (int64_t h = 0; good && h < heads; h++) {
        if (pair_is_zero(&p->out[h])) {
            pair_free(&p->out[h]);
            continue;
        }
        move_head(p, h, p->live);
        state_head(p, h, p->live++, norms[h]);
    }
    free(norms);
    return good;
}

/* Family 0: r_h = 1.  Family 1: r_h^2 proportional to ||M_h||, which keeps T sqrt(sigma) small.  Family 2: to
 * ||M_h|| / ||A_h||, which keeps T N small.  p->r holds r_h^2, up to a factor, until the last loop. */
static void choose(problem *p, int kind)
{
    double most_out = 0, most_logit = 0, sum = 0;
    for (int64_t h = 0; h < p->live; h++) {
        most_out = fmax(most_out, p->size_out[h]);
        most_logit = fmax(most_logit, p->size_logit[h]);
    }
    for (int64_t h = 0; h < p->live; h++) {
        p->r[h] = fmax(p->size_out[h], 1e-6 * most_out);
        if (kind == 2) p->r[h] /= fmax(p->size_logit[h], 1e-6 * most_logit);
        sum += p->r[h];
    }
    for (int64_t h = 0; h < p->live; h++) {
        p->t[h] = kind ? sqrt(sum / p->r[h]) : 1;
        if (!(p->t[h] > 0x1p-100 && p->t[h] < 0x1p100)) p->t[h] = 1;
        p->r[h] = p->t[h] == 1 ? 1 : nextafter(1 / p->t[h], INFINITY); /* r >= 1/t: no bound shrinks */
    }
}

/* ||[r_h g_h W_Q^h]||. */
static taut_up up_query_stack(const problem *p, const taut_up *g)
{
    taut_ball *parts = taut_calloc((size_t)p->live, sizeof *parts);
    if (!parts) return UP_NONE;
    for (int64_t h = 0; h < p->live; h++) parts[h] = ball_scale(&p->q[h], up_mul((taut_up){ p->r[h] }, g[h]).v);
    taut_ball all = ball_vcat(parts, p->live);
    const taut_up norm = up_ball_norm(&all);
    for (int64_t h = 0; h < p->live; h++) ball_free(&parts[h]);
    ball_free(&all);
    free(parts);
    return norm;
}

static family up_family(problem *p, int kind)
{
    family f = { UP_NONE, UP_ZERO, UP_NONE, UP_NONE };
    taut_up bias = UP_ZERO;
    choose(p, kind);
    ledger_open(p->ledger, "family");
    ledger_list(p->ledger, "weights", p->t, (int)p->live);
    for (int64_t h = 0; h < p->live; h++) {
        const taut_up r = { p->r[h] };
        f.sigma = up_add(f.sigma, up_mul(r, r));
        bias = up_hypot(bias, up_mul(r, p->kb[h]));
    }
    f.t = up_state(p->ledger, "out_norm", up_joint_norm(p->out, p->t, p->live));
    const taut_up n = up_state(p->ledger, "logit_norm",
                               p->w->rope ? up_query_stack(p, p->kn) : up_joint_norm(p->logit, p->r, p->live));
    f.in = up_add(times(p->xq, n), bias);
    f.y = up_state(p->ledger, "query_norm", p->w->rope ? up_query_stack(p, p->kr) : times(p->xk, n));
    ledger_close(p->ledger);
    return f;
}

/* mean = T sqrt(sigma), keys = L_x, queries = L_y, each the least over the families. */
typedef struct {
    taut_up mean, keys, queries;
} parts;

static parts up_parts(problem *p)
{
    parts r = { UP_NONE, UP_NONE, UP_NONE };
    taut_up in = UP_NONE;
    const taut_up sx = up_mul(p->s, p->xk);
    for (int kind = 0; kind < (p->live > 1 ? FAMILIES : 1); kind++) {
        const family f = up_family(p, kind);
        const taut_up a = times(sx, f.in);
        r.mean = up_min(r.mean, up_mul(f.t, up_sqrt(f.sigma)));
        in = up_min(in, up_mul(f.t, a));
        r.queries = up_min(r.queries, up_mul(f.t, times(sx, f.y)));
        if (!p->w->rope) r.keys = up_min(r.keys, up_mul(f.t, up_sqrt(up_add(f.sigma, up_mul(a, a)))));
    }
    r.keys = up_min(r.keys, up_add(r.mean, in));
    return r;
}

/* |W_O b_V|: what the values' bias adds to every output. */
static taut_up up_value_bias(const taut_attention_weights *w)
{
    if (!w->bv) return UP_ZERO;
    taut_ball o = ball_of(w->wo, w->width, w->heads * w->dh), b = ball_of(w->bv, w->heads * w->dh, 1);
    taut_ball ob = ball_mul(&o, false, &b, false);
    const taut_up r = up_ball_frobenius(&ob);
    ball_free(&o), ball_free(&b), ball_free(&ob);
    return r;
}

/* Every weight must be finite, even one that no formula uses. */
static bool finite_weights(const taut_attention_weights *w)
{
    const int64_t inner = w->heads * w->dh, len = inner * w->width;
    const double *const matrix[] = { w->wq, w->wk, w->wv, w->wo }, *const bias[] = { w->bq, w->bk, w->bv };
    bool ok = isfinite(w->scale) && isfinite(w->out);
    for (int i = 0; i < 4; i++) ok = ok && range_max(matrix[i], len) <= DBL_MAX;
    for (int i = 0; i < 3; i++) ok = ok && (!bias[i] || range_max(bias[i], inner) <= DBL_MAX);
    return ok && (!w->bo || range_max(w->bo, w->width) <= DBL_MAX);
}

taut_attention_bound up_attention(const taut_attention_weights *w, taut_up x_q, taut_up x_k, taut_ledger *ledger)
{
    taut_attention_bound r = { UP_NONE, UP_NONE, UP_NONE };
    problem p = { .w = w, .ledger = ledger, .s = up_exact(w->scale), .xq = up_wrap(x_q.v), .xk = up_wrap(x_k.v) };
    if (!w->cross) p.xq = p.xk = up_max(p.xq, p.xk);
    if (finite_weights(w) && allocate(&p, w->heads) && read_heads(&p)) {
        const taut_up c = up_exact(w->out);
        const parts l = p.live ? up_parts(&p) : (parts){ UP_ZERO, UP_ZERO, UP_ZERO };
        const taut_up keys = up_mul(up_sqrt(up_state(ledger, "count", up_count(w, p.spread, p.live))), l.keys);
        r.tokens = up_mul(c, up_add(l.keys, l.queries));
        r.flat = up_mul(c, w->cross ? up_hypot(keys, l.queries) : up_add(keys, l.queries));
        r.growth = up_mul(c, up_add(times(p.xk, l.mean), up_state(ledger, "value_bias", up_value_bias(w))));
        r.growth = up_add(r.growth, up_state(ledger, "bias", up_vector(w->bo, w->width)));
    }
    release(&p);
    return r;
}
