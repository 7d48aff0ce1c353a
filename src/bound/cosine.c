/* Scaled cosine attention: Lipschitz constants and growth, from the weights alone.
 *
 * n(z) = z / sqrt(|z|^2 + eps) has |n| = sin t and ||Dn|| <= l cos t, l = 1/sqrt(eps), for an angle t; for |z| <= Z,
 * |n| <= p(Z) = Z / sqrt(Z^2 + eps).  Row i of head h, keys moving by e_j and the query by f, with values w_j = x_j
 * and F_h = W_O^h W_V^h, or w_j = n(v_j) and F_h = W_O^h:
 *     d wbar_i = sum_j P_ij dw_j + sum_j P_ij (w_j - wbar_i) dS_ij,  dS_ij = tau (dn(q_i).n(k_j) + n(q_i).dn(k_j)).
 * g.(w_j - wbar_i) has mean 0 and variance at most R_h^2, R_h = X or p(V_h) (Popoviciu), so by Cauchy-Schwarz with
 * weights P_ij the second sum is no longer than R_h sqrt(sum_j P_ij dS_ij^2), where
 *     |dS_ij| <= tau l ( sin t_i cos t_j a + cos t_i sin t_j b ),   a = |W_K e_j|, b = |W_Q f|.
 * That is at most tau l times max(a, b), as sin(t_i + t_j) <= 1, and times sqrt(a^2 + p(K_h)^2 b^2), and times
 * p(Q_h) a + p(K_h) b.
 * Heads are added with weights: for any r_h > 0 and T = ||[F_h / r_h]||,
 *     mean    T |(r_h m_h)|, m_h = 1 or l ||W_V^h||;   flat: T sqrt(C) times sqrt(sum r_h^2) or l ||[r_h W_V^h]||
 *     logits  T tau l min( |(r_h R_h max(||W_K^h||, ||W_Q^h||))|, sqrt(A^2 + B^2), A' + B )
 *             A = |(r_h R_h ||W_K^h||)|, A' with p(Q_h) more, B = ||[r_h R_h p(K_h) W_Q^h]||
 *     flat    the last two, with A = sqrt(C) ||[r_h R_h W_K^h]||, and A' likewise.
 * tokens and flat = |out| (mean + logits), each with the best r of three.  C as in count.c, with logits within
 * 2 tau p(Q_h) p(K_h).  growth = |out| (T |(r_h R_h)| + |W_O b_V|) + |b_O|, without b_V for normalised values. */
#include "bound/cosine.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bound/count.h"
#include "bound/joint.h"
#include "bound/norm.h"
#include "bound/range.h"

enum { FAMILIES = 3 };

typedef struct {
    taut_up query, key, value;        /* norms of W_Q^h, W_K^h, and of W_V^h where values are normalised */
    taut_up reach_q, reach_k, radius; /* p(Q_h), p(K_h); R_h, but 1 where it is X */
    const double *wq, *wk, *wv;       /* (dh, width) */
    double size, r;                   /* an estimate of ||F_h||; r_h of this family */
} head;

typedef struct {
    const taut_cosine_weights *w;
    taut_ledger *ledger;
    taut_up x, far, tau, slope; /* far: X, or 1 where values are normalised; slope: 1/sqrt(eps) */
    int64_t live;
    head *h;
    taut_pair *out; /* F_h */
    taut_spread *spread;
    double *r, *t; /* r_h and 1/r_h of this family */
} problem;

/* What T multiplies: the mean, A and A', and both at once, in either norm; B and growth are the same. */
typedef struct {
    taut_up mean, in, in_near, both;
} side;
typedef struct {
    taut_up t, out, growth;
    side tokens, flat;
} family;

/* A product in which 0 wins over infinity. */
static taut_up times(taut_up a, taut_up b) { return a.v == 0 || b.v == 0 ? UP_ZERO : up_mul(a, b); }

static taut_up up_vector(const double *b, int64_t len) { return b ? up_norm_frobenius(b, len) : UP_ZERO; }

static taut_up up_slope(double eps) { return up_div((taut_up){ 1 }, lo_sqrt((taut_lo){ eps })); }

/* p(Z) = Z / sqrt(Z^2 + eps), which grows with Z */
static taut_up up_reach(taut_up z, double eps)
{
    if (z.v == 0) return UP_ZERO;
    const taut_lo below = lo_sqrt(lo_add(lo_mul((taut_lo){ z.v }, (taut_lo){ z.v }), (taut_lo){ eps }));
    return z.v < INFINITY ? up_min((taut_up){ 1 }, up_div(z, below)) : (taut_up){ 1 };
}

/* The norm of one head's matrix, and how long its normalised vectors can be. */
static taut_up up_side(const problem *p, const double *w, const double *b, const char *name, const char *bias_name,
                       taut_up *reach)
{
    const taut_up norm = up_state(p->ledger, name, up_norm(w, p->w->dh, p->w->width));
    const taut_up bias = up_state(p->ledger, bias_name, up_vector(b, p->w->dh));
    *reach = up_reach(up_add(times(p->x, norm), bias), p->w->eps);
    return norm;
}

static void read_head(problem *p, int64_t at, int64_t index)
{
    const taut_cosine_weights *w = p->w;
    head *h = &p->h[at];
    const int64_t row = index * w->dh, first = row * w->width;
    *h = (head){ .wq = w->wq + first, .wk = w->wk + first, .wv = w->wv + first, .radius = { 1 } };
    ledger_open(p->ledger, "head");
    ledger_exact(p->ledger, "index", (double)index);
    h->query = up_side(p, h->wq, w->bq ? w->bq + row : NULL, "query", "query_bias", &h->reach_q);
    h->key = up_side(p, h->wk, w->bk ? w->bk + row : NULL, "key", "key_bias", &h->reach_k);
    if (w->values) h->value = up_side(p, h->wv, w->bv ? w->bv + row : NULL, "value", "value_bias", &h->radius);
    ledger_close(p->ledger);
    h->size = est_pair(&p->out[at]);
    const taut_up range = times((taut_up){ 2 }, times(p->tau, up_mul(h->reach_q, h->reach_k)));
    p->spread[at] = (taut_spread){ range, w->alibi ? up_alibi_slope(index, w->heads) : UP_ZERO };
}

/* F_h: W_O^h times W_V^h, or times I. */
static taut_pair output_of(const taut_cosine_weights *w, int64_t h, double *tall, const double *identity)
{
    for (int64_t i = 0; i < w->width; i++)
        for (int64_t j = 0; j < w->dh; j++) tall[i * w->dh + j] = w->wo[(i * w->heads + h) * w->dh + j];
    if (w->values) return pair_of(tall, identity, w->width, w->dh, w->dh);
    return pair_of(tall, w->wv + h * w->dh * w->width, w->width, w->dh, w->width);
}

static bool allocate(problem *p)
{
    const size_t n = (size_t)(p->w->heads > 0 ? p->w->heads : 1);
    p->h = taut_calloc(n, sizeof *p->h);
    p->out = taut_calloc(n, sizeof *p->out);
    p->spread = taut_calloc(n, sizeof *p->spread);
    p->r = taut_calloc(2 * n, sizeof *p->r);
    p->t = p->r + n;
    return p->h && p->out && p->spread && p->r;
}

static void release(problem *p)
{
    for (int64_t h = 0; p->out && h < p->live; h++) pair_free(&p->out[h]);
    free(p->h), free(p->out), free(p->spread), free(p->r);
}

static bool read_heads(problem *p)
{
    const taut_cosine_weights *w = p->w;
    double *tall = taut_malloc((size_t)(w->width * w->dh + 1) * sizeof *tall);
    double *identity = taut_calloc((size_t)(w->dh * w->dh + 1), sizeof *identity);
    const bool ready = tall && identity;
    for (int64_t i = 0; ready && i < w->dh; i++) identity[i * w->dh + i] = 1;
    for (int64_t h = 0; ready && h < w->heads; h++) {
        p->out[p->live] = output_of(w, h, tall, identity);
        if (pair_is_zero(&p->out[p->live]))
            pair_free(&p->out[p->live]);
        else
            read_head(p, p->live++, h);
    }
    free(tall), free(identity);
    return ready;
}

/* Family 0: all r = 1.  Else r_h^2 like ||F_h|| / s_h, which is best for T |(r_h s_h)| when the F_h do not
 * overlap: s_h of the mean (1) and of the logits (2). */
static void choose(problem *p, int kind)
{
    double most = 0, sum = 0;
    for (int64_t i = 0; i < p->live; i++) {
        const head *h = &p->h[i];
        const double s = kind == 1 ? (p->w->values ? h->value.v : 1) : h->radius.v * (h->key.v + h->query.v);
        p->r[i] = h->size / fmax(s, 1e-300);
        most = fmax(most, p->r[i]);
    }
    for (int64_t i = 0; i < p->live; i++) sum += p->r[i] = fmax(p->r[i], 1e-8 * most);
    for (int64_t i = 0; i < p->live; i++) {
        p->t[i] = kind ? sqrt(sum / p->r[i]) : 1;
        if (!(p->t[i] > 0x1p-100 && p->t[i] < 0x1p100)) p->t[i] = 1;
        p->r[i] = p->t[i] == 1 ? 1 : nextafter(1 / p->t[i], INFINITY); /* larger r only adds */
        p->h[i].r = p->r[i];
    }
}

/* What stands before a head's matrix or norm. */
typedef taut_up factor_fn(const head *);
static taut_up share(const head *h) { return up_exact(h->r); }
static taut_up share_values(const head *h) { return up_mul(share(h), h->value); }
static taut_up share_radius(const head *h) { return up_mul(share(h), h->radius); }
static taut_up share_near(const head *h) { return up_mul(share_radius(h), h->reach_q); }
static taut_up share_query(const head *h) { return up_mul(share_radius(h), h->reach_k); }
static taut_up share_key(const head *h) { return up_mul(share_radius(h), h->key); }
static taut_up share_key_near(const head *h) { return up_mul(share_near(h), h->key); }
static taut_up share_both(const head *h) { return up_mul(share_radius(h), up_max(h->key, h->query)); }

static taut_up up_list(const problem *p, factor_fn *factor)
{
    taut_up all = UP_ZERO;
    for (int64_t i = 0; i < p->live; i++) all = up_hypot(all, factor(&p->h[i]));
    return all;
}

/* ||[f_h W^h]||, stacked; `which` is the offset of W^h in a head. */
static taut_up up_stack(const problem *p, const char *key, size_t which, factor_fn *factor)
{
    taut_ball *parts = taut_calloc((size_t)p->live, sizeof *parts);
    if (!parts) return UP_NONE;
    for (int64_t i = 0; i < p->live; i++) {
        const double *w = *(const double *const *)((const char *)&p->h[i] + which);
        taut_ball exact = ball_of(w, p->w->dh, p->w->width);
        parts[i] = ball_scale(&exact, factor(&p->h[i]).v);
        ball_free(&exact);
    }
    taut_ball all = ball_vcat(parts, p->live);
    const taut_up norm = up_state(p->ledger, key, up_ball_norm(&all));
    for (int64_t i = 0; i < p->live; i++) ball_free(&parts[i]);
    ball_free(&all);
    free(parts);
    return norm;
}

static family up_family(problem *p, int kind)
{
    family f;
    choose(p, kind);
    ledger_open(p->ledger, "family");
    ledger_list(p->ledger, "weights", p->t, (int)p->live);
    f.t = up_state(p->ledger, "out_norm", up_joint_norm(p->out, p->t, p->live));
    f.out = up_stack(p, "query_norm", offsetof(head, wq), share_query);
    f.flat.in = up_stack(p, "key_norm", offsetof(head, wk), share_radius);
    f.flat.in_near = up_stack(p, "key_norm_near", offsetof(head, wk), share_near);
    f.flat.mean = f.tokens.mean = up_list(p, share);
    if (p->w->values) {
        f.tokens.mean = times(p->slope, up_list(p, share_values));
        f.flat.mean = times(p->slope, up_stack(p, "value_norm", offsetof(head, wv), share));
    }
    ledger_close(p->ledger);
    f.tokens.in = up_list(p, share_key);
    f.tokens.in_near = up_list(p, share_key_near);
    f.tokens.both = up_list(p, share_both);
    f.flat.both = UP_NONE;
    f.growth = up_list(p, share_radius);
    return f;
}

/* T tau / sqrt(eps) times A and B, keys' parts times `count`. */
static taut_up up_logits(const problem *p, const family *f, const side *s, taut_up count)
{
    const taut_up angle = up_hypot(up_mul(count, s->in), f->out);
    const taut_up apart = up_add(up_mul(count, s->in_near), f->out);
    const taut_up best = up_min(s->both, up_min(angle, apart));
    return times(up_mul(f->t, best), times(times(p->tau, p->slope), p->far));
}

typedef struct {
    taut_up tokens, flat, growth;
} least;

/* mean + logits, each the least over the families; count is sqrt(C). */
static least up_least(problem *p, taut_up count)
{
    taut_up mean = UP_NONE, mean_flat = UP_NONE, logits = UP_NONE, logits_flat = UP_NONE, growth = UP_NONE;
    for (int kind = 0; kind < (p->live > 1 ? FAMILIES : 1); kind++) {
        const family f = up_family(p, kind);
        mean = up_min(mean, up_mul(f.t, f.tokens.mean));
        logits = up_min(logits, up_logits(p, &f, &f.tokens, (taut_up){ 1 }));
        mean_flat = up_min(mean_flat, up_mul(up_mul(f.t, count), f.flat.mean));
        logits_flat = up_min(logits_flat, up_logits(p, &f, &f.flat, count));
        growth = up_min(growth, times(up_mul(f.t, f.growth), p->far));
    }
    return (least){ up_add(mean, logits), up_add(mean_flat, logits_flat), growth };
}

/* |W_O b_V|: what the bias of plain values adds to every output. */
static taut_up up_value_bias(const taut_cosine_weights *w)
{
    if (!w->bv || w->values) return UP_ZERO;
    taut_ball o = ball_of(w->wo, w->width, w->heads * w->dh), b = ball_of(w->bv, w->heads * w->dh, 1);
    taut_ball ob = ball_mul(&o, false, &b, false);
    const taut_up r = up_ball_frobenius(&ob);
    ball_free(&o), ball_free(&b), ball_free(&ob);
    return r;
}

static bool finite_weights(const taut_cosine_weights *w)
{
    const int64_t inner = w->heads * w->dh, len = inner * w->width;
    const double *const matrix[] = { w->wq, w->wk, w->wv, w->wo }, *const bias[] = { w->bq, w->bk, w->bv };
    bool ok = isfinite(w->tau) && isfinite(w->out) && w->eps >= 0 && isfinite(w->eps);
    for (int i = 0; i < 4; i++) ok = ok && range_max(matrix[i], len) <= DBL_MAX;
    for (int i = 0; i < 3; i++) ok = ok && (!bias[i] || range_max(bias[i], inner) <= DBL_MAX);
    return ok && (!w->bo || range_max(w->bo, w->width) <= DBL_MAX);
}

taut_attention_bound up_cosine(const taut_cosine_weights *w, taut_up x, taut_ledger *ledger)
{
    taut_attention_bound r = { UP_NONE, UP_NONE, UP_NONE };
    problem p = { .w = w, .ledger = ledger, .x = up_wrap(x.v), .tau = up_exact(w->tau) };
    p.far = w->values ? up_exact(1) : p.x;
    p.slope = up_slope(w->eps);
    if (finite_weights(w) && allocate(&p) && read_heads(&p)) {
        const taut_attention_weights rows = {
            .tq = w->tokens, .tk = w->tokens, .keys_min = w->keys_min, .causal = w->causal
        };
        const taut_up c = up_exact(w->out), count = up_state(ledger, "count", up_count(&rows, p.spread, p.live));
        const least l = p.live ? up_least(&p, up_sqrt(count)) : (least){ UP_ZERO, UP_ZERO, UP_ZERO };
        const taut_up shift = up_state(ledger, "value_bias", up_value_bias(w));
        r.tokens = up_mul(c, l.tokens);
        r.flat = up_mul(c, l.flat);
        r.growth = up_add(up_mul(c, up_add(l.growth, shift)), up_state(ledger, "bias", up_vector(w->bo, w->width)));
    }
    release(&p);
    return r;
}
