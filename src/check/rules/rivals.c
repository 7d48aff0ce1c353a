/* Attentions in linear time: cosFormer and Performer, which have constants, and three that have none.  All have q = W_Q x + b_Q,
 * k and v alike, and y = out W_O o + b_O.  Below n_Q, n_K, n_V are the stated norms, Q, K, V what they make of X and the biases;
 * T keys, t queries, H heads.  Whatever is true of q, k, v is true of the part of them that a head has.  The proofs are in
 * docs/modules, a page for each.
 *
 * o of cosFormer: weights a_ij >= 0 over sqrt((their sum)^2 + eps^2).  |da_ij| <= K |dq_i| + Q |dk_j|, and
 *     |do_i| <= max_j |dv_j| + (2 V/eps) sum_j |da_ij|,      |o_i| <= V,
 * head by head.  o of Performer: a mean, over its directions w_r, of means vbar_r of values, so that with s = sqrt(scale) and
 * w >= |w_r|   |do_i| <= max_j |dv_j| + 2 V s (w + s K) max_j |dk_j| + V s w |dq_i|.
 *
 * Their forward passes.  What q, k and v are off by goes through as any change does, and so does what a weight or a logit is
 * rounded by; a mean whose logits are off by e is off by (exp(2 e) - 1) V. */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

enum { Q, K, V, OUT, DIRECTIONS = 8 };
static double asks(const ck_node *n) { return (double)(ck_queries(n) ? ck_queries(n) : n->tokens); }
static double read_by_all(const ck_node *n) { return (double)(n->tokens - ck_queries(n)); }
static int64_t heads_of(const ck_node *n) { return (int64_t)ck_constant(n, "heads"); }

static bool fits(const ck_node *n)
{
    const double steps = ck_constant(n, "steps"), tokens = ck_constant(n, "tokens");
    const int64_t dh = n->width / heads_of(n);
    if (n->width % heads_of(n) != 0 || ck_queries(n) >= n->tokens || !(steps >= 0 && steps <= 100)) return false;
    if (steps != floor(steps) || (ck_is(n, "performer") && n->w[DIRECTIONS].cols % dh != 0)) return false;
    if (ck_is(n, "performer")) return ck_constant(n, "scale") >= 0;
    return !ck_is(n, "cosformer") || (ck_constant(n, "eps") > 0 && tokens >= fmax(asks(n), read_by_all(n)));
}

ck_reach ck_reach_of(ck_fields *f, int side, ck_mat w, ck_mat b, double x)
{
    static const char *const key[][2] = {
        { "query", "query_bias" }, { "key", "key_bias" }, { "value", "value_bias" }, { "out_norm", "bias" }
    };
    const double norm = ck_claim_norm(f, key[side][0], w);
    return (ck_reach){ norm, norm * x + ck_claim(f, key[side][1], ck_length(b)) };
}

static ck_reach reach_of(ck_fields *f, const ck_node *n, int side, double x)
{
    return ck_reach_of(f, side, n->w[side], n->w[4 + side], x);
}

ck_bound ck_leave(ck_fields *f, const ck_node *n, double lip, double size)
{
    const double to = fabs(ck_constant(n, "out"));
    const ck_reach o = reach_of(f, n, OUT, to * size);
    return (ck_bound){ to * o.norm * lip, o.size };
}

static ck_bound cosformer(ck_fields *f, ck_node *n, double x)
{
    const ck_reach q = reach_of(f, n, Q, x), k = reach_of(f, n, K, x), v = reach_of(f, n, V, x);
    const double keys = read_by_all(n), rows = asks(n), heads = sqrt((double)heads_of(n));
    const double steep = 2 * ck_over(v.size, ck_constant(n, "eps"));
    const double tokens = heads * v.norm + steep * keys * (k.size * q.norm + q.size * k.norm);
    const double flat = sqrt(rows) * v.norm + steep * (keys * k.size * q.norm + sqrt(rows * keys) * q.size * k.norm);
    return ck_leave(f, n, f->c->out->flat ? flat : tokens, heads * v.size);
}

/* w_r as rows */
static ck_mat directions(const ck_node *n)
{
    const int64_t dh = n->width / heads_of(n);
    return (ck_mat){ n->w[DIRECTIONS].v, 0, n->w[DIRECTIONS].cols / dh, dh, dh };
}

static ck_bound performer(ck_fields *f, ck_node *n, double x)
{
    const ck_reach q = reach_of(f, n, Q, x), k = reach_of(f, n, K, x), v = reach_of(f, n, V, x);
    const double w = ck_claim(f, "longest", ck_longest(directions(n))), s = sqrt(ck_constant(n, "scale"));
    const double heads = sqrt((double)heads_of(n)), all = f->c->out->flat ? sqrt(asks(n)) : heads;
    const double keys = v.norm + 2 * v.size * s * (w + s * k.size) * k.norm;
    return ck_leave(f, n, all * keys + v.size * s * w * q.norm, heads * v.size);
}

/* Nystromformer, clustered, ProbSparse: no constant, but a size.  A head's o is a mean of values, with clusters perhaps plus
 * scale C_j^T q with |C_j| <= K V; a sum of up to T values where ProbSparse is causal; and F Z (G v) of Nystromformer, where
 * |F_i| <= 1, |G v| <= sqrt(m) V and ||Z|| <= (13/4)^steps / sqrt(m). */
static ck_bound jumping(ck_fields *f, ck_node *n, double x)
{
    double size = sqrt((double)heads_of(n)) * reach_of(f, n, V, x).size;
    const cJSON *reason = ck_take(f, "reason");
    if (reason && !cJSON_IsString(reason)) ck_fail(f->c, "%s (%s): its reason is no word", n->path, f->part);
    if (ck_constant(n, "first") != 0) {
        const double q = reach_of(f, n, Q, x).size;
        size *= 1 + fabs(ck_constant(n, "scale")) * (q * reach_of(f, n, K, x).size);
    }
    if (ck_is(n, "probsparse") && ck_constant(n, "causal") != 0) size *= (double)n->tokens;
    for (double i = 0; i < ck_constant(n, "steps") && ck_is(n, "nystrom"); i++) size *= 3.25;
    return (ck_bound){ INFINITY, ck_leave(f, n, 0, size).out };
}

/* Where rounding decides to which side it falls, no forward pass confirms another. */
static void jump(ck *c, const ck_node *n, ck_mat *x)
{
    if (ck_queries(n)) *x = ck_rows(*x, 0, ck_queries(n));
    c->jumped = true;
}

static ck_mat side(ck *c, const ck_node *n, ck_mat x, int s)
{
    if (ck_queries(n)) ck_not_run(c, n, &x);
    return ck_affine(c, x, 1, n->w[s], n->w[4 + s]);
}

static void positive(ck_mat *x)
{
    for (int64_t i = 0; i < x->rows * x->ld; i++) x->v[i] = fmax(x->v[i], 0);
}

/* An angle is off by some u, and so is its cosine. */
static void run_cosformer(ck *c, const ck_node *n, ck_mat *x)
{
    const int64_t heads = heads_of(n), dh = n->width / heads, t = x->rows;
    const double eps = ck_constant(n, "eps"), right = 1.57079632679489662 / ck_constant(n, "tokens");
    ck_mat q = side(c, n, *x, Q), k = side(c, n, *x, K), v = side(c, n, *x, V), o = ck_new(c, t, n->width);
    positive(&q), positive(&k);
    for (int64_t at = 0; at < n->width; at += dh)
        for (int64_t i = 0; i < t; i++) {
            double sum = 0, *to = o.v + i * o.ld + at;
            for (int64_t j = 0; j < t; j++) {
                double a = 0;
                for (int64_t d = 0; d < dh; d++) a += q.v[i * q.ld + at + d] * k.v[j * k.ld + at + d];
                a *= fmax(cos(right * (double)(i - j)), 0);
                sum += a;
                for (int64_t d = 0; d < dh; d++) to[d] += a * v.v[j * v.ld + at + d];
            }
            for (int64_t d = 0; d < dh; d++) to[d] /= sqrt(sum * sum + eps * eps);
        }
    const double lq = ck_longest(q), lk = ck_longest(k), lv = ck_longest(v) + v.err, many = (double)t;
    const double weight = q.err * lk + (lq + q.err) * k.err + ck_gamma((double)dh + 40) * lq * lk;
    o.err = sqrt((double)heads) * (v.err + 2 * lv * many * weight / eps + 2 * ck_gamma(2 * many + 64) * lv);
    *x = ck_affine(c, o, ck_constant(n, "out"), n->w[OUT], n->w[4 + OUT]);
}

/* What a mean of vectors up to `size` is off by, if its logits are off by e; `many` of them. */
static double mean_off(double e, double many, double size)
{
    const double off = 2 * e + ck_gamma(2 * many + 64);
    return off < 0.01 ? 1.01 * off * size : INFINITY;
}

/* o, a row for every logit row: its softmax's mean of v (columns from `at` on, dh of them); l: the log-sum-exps. */
static void means(ck_mat o, int64_t to, double *l, ck_mat logits, ck_mat v, int64_t at, int64_t dh)
{
    for (int64_t r = 0; r < logits.rows; r++) {
        double *s = logits.v + r * logits.ld, top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < logits.cols; j++) top = fmax(top, s[j]);
        for (int64_t j = 0; j < logits.cols; j++) sum += s[j] = exp(s[j] - top);
        if (l) l[r] = top + log(sum);
        for (int64_t j = 0; j < logits.cols; j++)
            for (int64_t d = 0; d < dh; d++) o.v[r * o.ld + to + d] += s[j] / sum * v.v[j * v.ld + at + d];
    }
}

/* The logits of vectors w_r and z (columns from `at` on): by r and j. */
static ck_mat dots(ck *c, ck_mat w, ck_mat z, int64_t at, bool squares)
{
    const ck_mat s = ck_new(c, w.rows, z.rows);
    for (int64_t r = 0; r < w.rows; r++)
        for (int64_t j = 0; j < z.rows; j++)
            for (int64_t d = 0; d < w.cols; d++) {
                const double b = z.v[j * z.ld + at + d];
                s.v[r * s.ld + j] += w.v[r * w.ld + d] * b - (squares ? b * b / 2 : 0);
            }
    return s;
}

static void run_performer(ck *c, const ck_node *n, ck_mat *x)
{
    const int64_t heads = heads_of(n), dh = n->width / heads, t = x->rows;
    const ck_mat w = directions(n), none = { 0 };
    ck_mat q = side(c, n, *x, Q), k = side(c, n, *x, K), v = side(c, n, *x, V), o = ck_new(c, t, n->width);
    double *l = ck_room(c, w.rows, sizeof *l), most = 0;
    ck_weigh(&q, sqrt(ck_constant(n, "scale")), none, none);
    ck_weigh(&k, sqrt(ck_constant(n, "scale")), none, none);
    for (int64_t at = 0; at < n->width; at += dh) {
        ck_mat bar = ck_new(c, w.rows, dh);
        means(bar, 0, l, dots(c, w, k, at, true), v, at, dh);
        ck_mat second = dots(c, w, q, at, false);
        for (int64_t r = 0; r < w.rows; r++) {
            most = fmax(most, fabs(l[r]));
            for (int64_t i = 0; i < t; i++) second.v[r * second.ld + i] += l[r];
        }
        means(o, at, NULL, ck_turn(c, second), bar, 0, dh);
    }
    const double lw = ck_longest(w), lq = ck_longest(q), lk = ck_longest(k), lv = ck_longest(v) + v.err;
    const double gamma = 2 * ck_gamma(2 * (double)dh + 24), many = (double)t;
    const double first = (lw + lk + k.err) * k.err + gamma * lk * (lw + lk);
    const double sums = first + ck_gamma(many + 96) + gamma * (most + log(many) + 1);
    const double second = lw * q.err + gamma * (lw * lq + most) + sums;
    const double bar = mean_off(first, many, lv) + v.err;
    o.err = sqrt((double)heads) * (mean_off(second, (double)w.rows, lv + bar) + bar);
    *x = ck_affine(c, o, ck_constant(n, "out"), n->w[OUT], n->w[4 + OUT]);
}

const ck_rule ck_rule_cosformer = { .name = "cosformer",
                                    .prove = cosformer,
                                    .run = run_cosformer,
                                    .fits = fits,
                                    .shape = ck_asked,
                                    .constants = { "#heads", "out", "#tokens", "eps", "+queries" },
                                    .tensors = { CK_FOUR } };
const ck_rule ck_rule_performer = { .name = "performer",
                                    .prove = performer,
                                    .run = run_performer,
                                    .fits = fits,
                                    .shape = ck_asked,
                                    .constants = { "#heads", "out", "scale", "+queries" },
                                    .tensors = { CK_FOUR, { "=directions", "r" } } };
const ck_rule ck_rule_nystrom = { .name = "nystrom",
                                  .prove = jumping,
                                  .run = jump,
                                  .fits = fits,
                                  .shape = ck_asked,
                                  .constants = { "#heads", "out", "scale", "#landmarks", "~steps", "+queries" },
                                  .tensors = { CK_FOUR } };
const ck_rule ck_rule_clustered = { .name = "clustered",
                                    .prove = jumping,
                                    .run = jump,
                                    .fits = fits,
                                    .shape = ck_asked,
                                    .constants = { "#heads", "out", "scale", "#clusters", "~steps", "?first",
                                                   "+queries" },
                                    .tensors = { CK_FOUR } };
const ck_rule ck_rule_probsparse = { .name = "probsparse",
                                     .prove = jumping,
                                     .run = jump,
                                     .fits = fits,
                                     .constants = { "#heads", "out", "scale", "?causal", "#factor", "~seed" },
                                     .tensors = { CK_FOUR } };
