/* PLASH and the sketch inside it; the proofs are in docs/modules/plash.md and sketch.md.
 *
 * Stage I gathers T keys and values in M tokens [kt, vt], the part `middle` makes z of them, and stage III reads z by softmax
 * attention.  P is the longest prototype of a head, s = |route|; below, the errors of the forward pass are changes too:
 *     |d kt| <= T (1 + 2 s P K) |dk|,    |d vt| <= T (|dv| + 2 s P V |dk|),    |[kt, vt]| <= T sqrt(K^2 + V^2)
 * The sketch reads g = x / (max(|x|, floor) tau), |g| <= r.  With d features, the fullest bucket of a degree f^2 and its spectra
 * at most p = min(sqrt(d), sqrt(D) f) r, TS_k is at most f r p^(k-1) long and k f p^(k-1) steep.  Each of its entries is a sum
 * of products of k entries of g; whatever these are off by relatively, and the roundings of the sums, count for each factor. */
#include "check/ck.h"

enum { DEGREES, SIZES, HASH, BETA, FIRST }; /* of a sketch; then a weight for each degree */
enum { Q, K, V, OUT, PROTOTYPES = 8, GROUP_KEY, GROUP_VALUE, MOST = 16 }; /* of PLASH; the highest degree */

static const ck_mat none;

bool ck_sketch_fits(const ck_node *n)
{
    const ck_mat degree = n->w[DEGREES], size = n->w[SIZES], hash = n->w[HASH];
    int64_t at = 0;
    bool fits = n->k[0] > 0 && n->k[1] > 0 && degree.cols <= 4;
    for (int64_t i = 0; fits && i < degree.cols; i++) {
        const double k = degree.v[i], d = size.v[i];
        fits = k >= 1 && k <= MOST && k == floor(k) && d == (double)n->w[FIRST + i].cols &&
               at + (int64_t)k * n->width <= hash.cols;
        for (const int64_t end = at + (fits ? (int64_t)k * n->width : 0); at < end; at++)
            fits = fits && hash.v[at] >= -d && hash.v[at] < d && hash.v[at] == floor(hash.v[at]);
    }
    return fits && at == hash.cols;
}

static int64_t bucket(double hash) { return (int64_t)(hash < 0 ? -1 - hash : hash); }

/* How long TS of degree number i is for |g| <= r, and how steep. */
static ck_bound degree_bound(ck *c, const ck_node *n, int i, const double *hash, double r)
{
    const struct ck_block *mark = c->blocks;
    const double k = n->w[DEGREES].v[i], size = n->w[SIZES].v[i];
    double most = 0, others = 1;
    for (int t = 0; t < k; t++) {
        double *in = ck_room(c, (int64_t)size, sizeof *in);
        for (int64_t j = 0; j < n->width; j++) most = fmax(most, in[bucket(hash[t * n->width + j])] += 1);
        ck_give_back(c, mark);
    }
    const double full = sqrt(most), peak = fmin(sqrt((double)n->width), sqrt(size) * full) * r;
    for (int t = 1; t < k; t++) others *= peak;
    return (ck_bound){ k * full * others, full * r * others };
}

static double reach_of_g(const ck_node *n, double x) { return fmin(1, x / n->k[0]) / n->k[1]; }

ck_bound ck_sketch(ck_fields *f, ck_node *n, double x)
{
    const double *hash = n->w[HASH].v, r = reach_of_g(n, x);
    ck_bound all = { 0, 0 };
    for (int i = 0; i < n->w[DEGREES].cols; hash += (int64_t)n->w[DEGREES].v[i++] * n->width) {
        const char key[] = { 'n', 'o', 'r', 'm', '_', (char)('0' + i), 0 };
        const double gain = fabs(n->w[BETA].v[i]) * ck_claim_norm(f, key, n->w[FIRST + i]);
        const ck_bound b = degree_bound(f->c, n, i, hash, r);
        all.lip += gain * b.lip, all.out += gain * b.out;
    }
    return (ck_bound){ all.lip * (1 / n->k[0] / n->k[1]), all.out };
}

/* z = z * c, the convolution round D buckets; most of c are 0. */
static void convolve(double *z, const double *c, double *room, int64_t size)
{
    for (int64_t b = 0; b < size; b++) room[b] = 0;
    for (int64_t j = 0; j < size; j++)
        for (int64_t b = 0; b < size && c[j] != 0; b++) room[b + j < size ? b + j : b + j - size] += z[b] * c[j];
    for (int64_t b = 0; b < size; b++) z[b] = room[b];
}

/* TS of degree number i for every row of g; of what it is off by relatively, the g's own is `each` roundings. */
static ck_mat sketched(ck *c, const ck_node *n, int i, const double *hash, ck_mat g, double r, double each)
{
    const int64_t k = (int64_t)n->w[DEGREES].v[i], size = (int64_t)n->w[SIZES].v[i], d = n->width;
    ck_mat z = ck_new(c, g.rows, size);
    double *in = ck_room(c, 2 * size, sizeof *in);
    if ((double)k * (double)size * fmin((double)size, (double)d) * (double)g.rows > 0x1p34) ck_not_run(c, n, &g);
    for (int64_t row = 0; row < g.rows; row++) {
        double *to = z.v + row * z.ld;
        to[0] = 1;
        for (int64_t t = 0; t < k; t++) {
            for (int64_t b = 0; b < size; b++) in[b] = 0;
            for (int64_t j = 0; j < d; j++) {
                const double h = hash[t * d + j], v = g.v[row * g.ld + j];
                in[bucket(h)] += h < 0 ? -v : v;
            }
            convolve(to, in, in + size, size);
        }
    }
    z.err = ck_gamma((double)k * (each + (double)(d + size) + 4)) * degree_bound(c, n, i, hash, r).out;
    return z;
}

void ck_run_sketch(ck *c, const ck_node *n, ck_mat *x)
{
    const double *hash = n->w[HASH].v, r = reach_of_g(n, ck_longest(*x));
    ck_mat g = *x, y = { 0 };
    for (int64_t i = 0; i < g.rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < g.cols; j++) sum += g.v[i * g.ld + j] * g.v[i * g.ld + j];
        const double by = fmax(sqrt(sum), n->k[0]) * n->k[1];
        for (int64_t j = 0; j < g.cols; j++) g.v[i * g.ld + j] /= by;
    }
    for (int i = 0; i < n->w[DEGREES].cols; hash += (int64_t)n->w[DEGREES].v[i++] * n->width) {
        const ck_mat z = sketched(c, n, i, hash, g, r, (double)g.cols + 8);
        const ck_mat more = ck_affine(c, z, n->w[BETA].v[i], n->w[FIRST + i], none);
        if (!i) y = more;
        for (int64_t at = 0; i && at < y.rows * y.ld; at++) y.v[at] += more.v[at];
        if (i) y.err += more.err + CK_U * ck_longest(y);
    }
    *x = y;
}

bool ck_plash_fits(const ck_node *n)
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

ck_bound ck_plash(ck_fields *f, ck_node *n, double x)
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

void ck_run_plash(ck *c, const ck_node *n, ck_mat *x)
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
    const double own = ck_forward(c, n + 1, &u, INFINITY).off; /* at u as it was computed */
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
