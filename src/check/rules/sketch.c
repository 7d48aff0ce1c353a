/* The sketch inside PLASH; the proofs are in docs/modules/sketch.md.
 *
 * It reads g = x / (max(|x|, floor) tau), |g| <= r.  With d features, the fullest bucket of a degree f^2 and its spectra
 * at most p = min(sqrt(d), sqrt(D) f) r, TS_k is at most f r p^(k-1) long and k f p^(k-1) steep.  Each of its entries is a sum
 * of products of k entries of g; whatever these are off by relatively, and the roundings of the sums, count for each factor. */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

enum { DEGREES, SIZES, HASH, BETA, FIRST, MOST = 16 }; /* then a weight for each degree; the highest degree */

static const ck_mat none;

static bool fits(const ck_node *n)
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

static ck_bound prove(ck_fields *f, ck_node *n, double x)
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

static void run(ck *c, const ck_node *n, ck_mat *x)
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

#define DEGREE                 \
    {                          \
        "degree*.weight", "oS" \
    }
const ck_rule ck_rule_sketch = { .name = "sketch",
                                 .prove = prove,
                                 .run = run,
                                 .fits = fits,
                                 .constants = { "floor", "tau" },
                                 .tensors = { { "=degrees", "k" },
                                              { "=sizes", "k" },
                                              { "=hash", "h" },
                                              { "beta", "k" },
                                              DEGREE,
                                              DEGREE,
                                              DEGREE,
                                              DEGREE } };
