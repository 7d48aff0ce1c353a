/* PLASH; the proofs are in docs/modules/plash.md.
 *
 * Stage I gathers T keys and values in M tokens [kt, vt], the part `middle` makes z of them, and stage III reads z by softmax
 * attention.  P is the longest prototype of a head, s = |route|; below, the errors of the forward pass are changes too:
 *     |d kt| <= T (1 + 2 s P K) |dk|,    |d vt| <= T (|dv| + 2 s P V |dk|),    |[kt, vt]| <= T sqrt(K^2 + V^2) */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

enum { Q, K, V, OUT, PROTOTYPES = 8, GROUP_KEY, GROUP_VALUE };

static const ck_mat none;

static bool fits(const ck_node *n)
{
    const double pair = ck_constant(n, "pair");
    return n->width % (int64_t)ck_constant(n, "heads") == 0 && ck_queries(n) < n->tokens &&
           (pair == 0 || ((pair == 1 || pair == 2) && !ck_queries(n)));
}

/* The maps that ask, are routed and are read. */
static const int *roles(const ck_node *n)
{
    static const int role[][3] = { { Q, K, V }, { K, Q, V }, { V, Q, K } };
    return role[(int)ck_constant(n, "pair")];
}

/* The longest row that a head has, of an error of its own beside it. */
static double longest(const ck_node *n, ck_mat m)
{
    const int64_t dh = n->width / (int64_t)ck_constant(n, "heads");
    double most = 0;
    for (int64_t at = 0; at < m.cols; at += dh) {
        const double here = ck_longest((ck_mat){ m.v + at, 0, m.rows, dh, m.ld });
        if (here > most || isnan(here)) most = here;
    }
    return most;
}

static ck_bound prove(ck_fields *f, ck_node *n, double x)
{
    const int *role = roles(n);
    const ck_reach q = ck_reach_of(f, Q, n->w[role[0]], n->w[4 + role[0]], x);
    const ck_reach k = ck_reach_of(f, K, n->w[role[1]], n->w[4 + role[1]], x);
    const ck_reach v = ck_reach_of(f, V, n->w[role[2]], n->w[4 + role[2]], x);
    const double keys = (double)(n->tokens - ck_queries(n)), asked = ck_queries(n) ? (double)ck_queries(n) : keys;
    const double heads = sqrt(ck_constant(n, "heads")), scale = fabs(ck_constant(n, "scale"));
    const double turn = 2 * fabs(ck_constant(n, "route")) * ck_claim(f, "longest", longest(n, n->w[PROTOTYPES]));
    const double g = ck_hypot(k.norm * (1 + turn * k.size), v.norm + turn * v.size * k.norm);
    int64_t parts;
    const cJSON *json = ck_list(f, "of", &parts);
    if (parts != 1) ck_fail(f->c, "%s (plash): it must have one part", n->path);
    ck_node *middle = n + 1;
    ck_confirm(f->c, middle, json, keys * ck_hypot(k.size, v.size));
    n->defect = middle->defect > 0 ? INFINITY : 0;
    const double kg = ck_claim_norm(f, "group_key", n->w[GROUP_KEY]);
    const double vg = ck_claim_norm(f, "group_value", n->w[GROUP_VALUE]), far = scale * (vg * middle->out);
    const double gathered = middle->lip * (f->c->out->flat ? sqrt(asked * keys) : keys) * g;
    const double group = gathered * ((f->c->out->flat ? 1 : heads) * vg + far * q.size * kg);
    return ck_leave(f, n, far * (kg * middle->out) * q.norm + group, heads * (vg * middle->out));
}

/* Softmax of every row; with logits off by e, a weight is then off by this much relatively, and never by more than 2 in all. */
static double shares(ck_mat logits, double e)
{
    const double off = 2 * e + ck_gamma(2 * (double)logits.cols + 64);
    for (int64_t i = 0; i < logits.rows; i++) {
        double *s = logits.v + i * logits.ld, top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < logits.cols; j++) top = fmax(top, s[j]);
        for (int64_t j = 0; j < logits.cols; j++) sum += s[j] = exp(s[j] - top);
        for (int64_t j = 0; j < logits.cols; j++) s[j] /= sum;
    }
    return (off < 0.01 ? 1.01 * off : 2) + 1e-290; /* + underflow */
}

/* by a.b of the rows of one head */
static ck_mat dots(ck *c, ck_mat a, ck_mat b, int64_t at, int64_t dh, double by)
{
    const ck_mat s = ck_new(c, a.rows, b.rows);
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < b.rows; j++) {
            double sum = 0;
            for (int64_t k = at; k < at + dh; k++) sum += a.v[i * a.ld + k] * b.v[j * b.ld + k];
            s.v[i * s.ld + j] = by * sum;
        }
    return s;
}

/* to_j += sum_i s_ij from_i of one head, into columns that begin `shift` later; turned: to_i += sum_j s_ij from_j */
static void gather(ck_mat to, int64_t shift, ck_mat s, bool turned, ck_mat from, int64_t at, int64_t dh)
{
    for (int64_t i = 0; i < s.rows; i++)
        for (int64_t j = 0; j < s.cols; j++) {
            double *row = to.v + (turned ? i : j) * to.ld + shift;
            for (int64_t k = at; k < at + dh; k++) row[k] += s.v[i * s.ld + j] * from.v[(turned ? j : i) * from.ld + k];
        }
}

static void run(ck *c, const ck_node *n, ck_mat *x)
{
    const int *role = roles(n);
    const int64_t d = n->width, dh = d / (int64_t)ck_constant(n, "heads");
    const double route = ck_constant(n, "route"), scale = ck_constant(n, "scale"), t = (double)x->rows;
    const double gamma = ck_gamma((double)dh + 24);
    if (ck_queries(n)) ck_not_run(c, n, x);
    const ck_mat q = ck_affine(c, *x, 1, n->w[role[0]], n->w[4 + role[0]]), p = n->w[PROTOTYPES];
    const ck_mat k = ck_affine(c, *x, 1, n->w[role[1]], n->w[4 + role[1]]);
    const ck_mat v = ck_affine(c, *x, 1, n->w[role[2]], n->w[4 + role[2]]);
    const double lp = fabs(route) * longest(n, p), lk = ck_longest(k), lv = ck_longest(v), lq = longest(n, q);
    ck_mat u = ck_new(c, p.rows, 2 * d), o = ck_new(c, x->rows, d);
    double off = 0;
    for (int64_t at = 0; at < d; at += dh) {
        const ck_mat s = dots(c, k, p, at, dh, route);
        off = shares(s, gamma * lp * longest(n, k));
        gather(u, 0, s, false, k, at, dh);
        gather(u, d, s, false, v, at, dh);
    }
    const double in_k = k.err * (1 + 2 * lp * (lk + k.err)), in_v = v.err + 2 * lp * (lv + v.err) * k.err;
    const double err = t * (ck_hypot(in_k, in_v) + (off + ck_gamma(t + 8)) * ck_hypot(lk, lv));
    const double before = err * (c->out->flat ? sqrt((double)u.rows) : 1);
    ck_shape still = ck_shape_of(c, u.rows, INFINITY);
    const double own = ck_forward(c, n + 1, &u, INFINITY, &still).off; /* at u as it was computed */
    u.err = before > 0 ? n[1].lip * before + own : own;
    const ck_mat kg = ck_affine(c, u, 1, n->w[GROUP_KEY], none), vg = ck_affine(c, u, 1, n->w[GROUP_VALUE], none);
    const double lg = longest(n, kg), lw = longest(n, vg) + vg.err;
    const double moved = (lq + q.err) * kg.err + lg * q.err + gamma * lq * lg;
    for (int64_t at = 0; at < d; at += dh) {
        const ck_mat s = dots(c, q, kg, at, dh, scale);
        off = shares(s, fabs(scale) * moved);
        gather(o, 0, s, true, vg, at, dh);
    }
    o.err = sqrt(ck_constant(n, "heads")) * ((off + ck_gamma((double)u.rows + 8)) * lw + vg.err);
    *x = ck_affine(c, o, ck_constant(n, "out"), n->w[OUT], n->w[4 + OUT]);
}

/* Its part reads as many tokens as there are prototypes, of keys and values, and makes one of the width for each. */
static int64_t join(ck *c, const cJSON *part, ck_node *n, int64_t d)
{
    const int64_t after = c->tokens, groups = n->w[PROTOTYPES].rows;
    c->tokens = groups;
    if (!part || part->next || ck_build(c, part, n, 2 * d) != d || c->tokens != groups)
        ck_fail(c, "%s: its parts do not fit the rule plash", n->path);
    c->tokens = after;
    return d;
}

const ck_rule ck_rule_plash = { .name = "plash",
                                .prove = prove,
                                .run = run,
                                .fits = fits,
                                .shape = ck_asked,
                                .join = join,
                                .constants = { "#heads", "out", "+queries", "scale", "~pair", "route" },
                                .tensors = {
                                    CK_FOUR, { "prototypes", "md" }, { "kg.weight", "dd" }, { "vg.weight", "dd" } } };
