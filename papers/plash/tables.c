/* PLASH: how tight the bound on the deviation is where the output is the clusters' own attention (plash-deviation), and what
 * the attention costs at the paper's lengths (plash-table2: latency; plash-fig3: memory). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bench/race_plash.h"
#include "bound/deviation.h"
#include "cli/cli.h"
#include "kernels/kernels.h"
#include "papers/paper.h"

typedef struct {
    const char *name;
    int64_t nq, nk, groups;
    double sigma, queries, spread; /* of keys and values; of queries; of the keys around their centres, 0: none */
    bool unit;                     /* keys and prototypes of length 1 */
} setting;
enum { WIDTH = 32 };

static const setting settings[] = {
    { "paper sigma=.08 M=16", 32, 64, 16, .08, .08, 0, false },
    { "paper sigma=.004 M=16", 32, 64, 16, .004, .004, 0, false },
    { "paper sigma=.08 M=64", 32, 64, 64, .08, .08, 0, false },
    { "unit variance M=64", 64, 1024, 64, 1, 1, 0, false },
    { "unit keys M=64", 64, 2048, 64, 1, 1, 0, true },
    { "clusters .3 M=32", 64, 2048, 32, 1, 4, .3, false },
    { "clusters .1 M=32", 64, 2048, 32, 1, 4, .1, false },
};

typedef struct {
    double *q, *k, *v, *p, *c, *kbar, *vbar, *logn, *soft, *own, *lse, *room, *b;
    int32_t *cluster;
} work;

static bool work_new(work *w, const setting *s)
{
    double **const each[] = { &w->q,    &w->k,    &w->v,    &w->p,   &w->c,   &w->kbar,
                              &w->vbar, &w->logn, &w->soft, &w->own, &w->lse, &w->b };
    const int64_t q = s->nq * WIDTH, k = s->nk * WIDTH, g = s->groups * WIDTH;
    const int64_t size[] = { q, k, k, g, s->nk, g, g, s->groups, q, q, s->nq, s->nq };
    int64_t all = 0;
    for (int i = 0; i < 12; i++) all += size[i];
    w->room = taut_malloc((size_t)all * sizeof(double));
    w->cluster = taut_malloc((size_t)s->nk * sizeof *w->cluster);
    double *p = w->room;
    for (int i = 0; p && i < 12; i++) *each[i] = p, p += size[i];
    return w->room && w->cluster;
}

static double length(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static void to_unit(double *x, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++) {
        const double size = length(x + r * WIDTH, WIDTH);
        for (int64_t c = 0; c < WIDTH; c++) x[r * WIDTH + c] /= size;
    }
}

static void fill(double *x, int64_t len, double size, uint64_t key)
{
    for (int64_t i = 0; i < len; i++) x[i] = size * taut_rng_normal(key, (uint64_t)i);
}

/* Random keys and prototypes, or keys around the prototypes with values that go with them. */
static void draw(work *w, const setting *s, uint64_t seed)
{
    const int64_t keys = s->nk * WIDTH, protos = s->groups * WIDTH;
    fill(w->q, s->nq * WIDTH, s->queries, taut_rng_key(seed, 1, 0));
    fill(w->v, keys, s->sigma, taut_rng_key(seed, 1, 1));
    fill(w->k, keys, s->sigma, taut_rng_key(seed, 1, 2));
    fill(w->p, protos, 1 / sqrt(WIDTH), taut_rng_key(seed, 1, 3));
    if (s->unit || s->spread > 0) to_unit(w->p, s->groups);
    if (s->unit) to_unit(w->k, s->nk);
    if (!(s->spread > 0)) return;
    fill(w->vbar, protos, s->sigma, taut_rng_key(seed, 1, 4));
    for (int64_t i = 0; i < s->nk; i++) {
        const int64_t j = (int64_t)taut_rng_below(taut_rng_key(seed, 1, 5), (uint64_t)i, (uint64_t)s->groups);
        for (int64_t c = 0; c < WIDTH; c++) {
            w->k[i * WIDTH + c] = w->p[j * WIDTH + c] + w->k[i * WIDTH + c] * s->spread / sqrt(WIDTH);
            w->v[i * WIDTH + c] = w->vbar[j * WIDTH + c] + 0.3 * w->v[i * WIDTH + c];
        }
    }
}

static double apart(const double *x, const double *y)
{
    double sum = 0;
    for (int64_t c = 0; c < WIDTH; c++) sum += (x[c] - y[c]) * (x[c] - y[c]);
    return sqrt(sum);
}

enum { TRUTH, PRINTED, PER_QUERY, PLAIN, FAST, NORMS, AUDIT, COLUMNS };

/* The formulas that need no cluster's statistics but its radius. */
static void simple(double *all, const work *w, const setting *s)
{
    double rho_k = 0, rho_v = 0, most_v = 0, most_q = 0, centre[WIDTH] = { 0 }, spread = 0;
    for (int64_t i = 0; i < s->nk; i++)
        for (int64_t c = 0; c < WIDTH; c++) centre[c] += w->v[i * WIDTH + c] / (double)s->nk;
    for (int64_t i = 0; i < s->nk; i++) {
        rho_k = fmax(rho_k, apart(w->k + i * WIDTH, w->kbar + w->cluster[i] * WIDTH));
        rho_v = fmax(rho_v, apart(w->v + i * WIDTH, w->vbar + w->cluster[i] * WIDTH));
        most_v = fmax(most_v, length(w->v + i * WIDTH, WIDTH));
        spread = fmax(spread, apart(w->v + i * WIDTH, centre));
    }
    for (int64_t i = 0; i < s->nq; i++) most_q = fmax(most_q, length(w->q + i * WIDTH, WIDTH));
    double per = 0, plain = 0, truth = 0;
    for (int64_t i = 0; i < s->nq; i++) {
        const double q = length(w->q + i * WIDTH, WIDTH) / sqrt(WIDTH), one = q * rho_k * most_v + rho_v;
        const double b1 = 2 * tanh(q * rho_k / 2) * spread, far = apart(w->soft + i * WIDTH, w->own + i * WIDTH);
        per += one * one, plain += b1 * b1, truth += far * far;
    }
    all[TRUTH] += sqrt(truth), all[PER_QUERY] += sqrt(per), all[PLAIN] += sqrt(plain);
    all[PRINTED] += sqrt((double)s->nq) * (most_q / sqrt(WIDTH) * rho_k * most_v + rho_v);
}

static taut_status measure(double *all, work *w, const setting *s, uint64_t seed)
{
    const taut_kernels *k = taut_kernels_find("ref");
    const double scale = 1 / sqrt(WIDTH);
    const taut_attn exact = { .n = 1, .heads = 1, .tq = s->nq, .tk = s->nk, .dh = WIDTH, .scale = scale };
    const taut_group g = { 1, 1, s->nq, s->nk, s->groups, WIDTH, scale };
    draw(w, s, seed);
    for (int64_t i = 0; i < s->nk; i++) {
        double best = -INFINITY;
        for (int64_t j = 0; j < s->groups; j++) {
            double dot = 0;
            for (int64_t c = 0; c < WIDTH; c++) dot += w->k[i * WIDTH + c] * w->p[j * WIDTH + c];
            if (dot > best) best = dot, w->cluster[i] = (int32_t)j;
        }
        w->c[i] = w->cluster[i];
    }
#define REAL(x) ((taut_real *)w->x)
    k->attention(REAL(soft), REAL(lse), REAL(q), REAL(k), REAL(v), &exact);
    k->cluster_means(REAL(kbar), REAL(vbar), REAL(logn), NULL, REAL(c), REAL(k), REAL(v), &g);
    k->clustered(REAL(own), REAL(q), REAL(kbar), REAL(vbar), REAL(logn), NULL, &g);
    simple(all, w, s);
    taut_status status = TAUT_OK;
    for (int mode = 0; !status && mode < 3; mode++) {
        const taut_deviation c = { s->nq,
                                   s->nk,
                                   WIDTH,
                                   WIDTH,
                                   s->groups,
                                   scale,
                                   { w->q, 8, WIDTH },
                                   { w->k, 8, WIDTH },
                                   { w->v, 8, WIDTH },
                                   { w->own, 8, WIDTH },
                                   w->cluster,
                                   (taut_deviation_mode)mode,
                                   false };
        taut_deviation_sum sum;
        status = up_deviation(&c, NULL, w->b, &sum);
        all[FAST + mode] += sum.all.v;
    }
    return status;
}

cJSON *paper_plash_deviation(const paper_options *o)
{
    static const char *const names[] = {
        "setting", "true", "printed(62)", "per_query", "B1", "fast", "norms", "audit"
    };
    cJSON *out = paper_table(
        "|Y_soft - Y_q| and bounds on it, Frobenius, means over seeds", names, 8,
        (paper_words){
            .published = "no values; printed(62) and per_query are its formula eps_I on our draws.",
            .ours = "B1, fast, norms and audit, rounding included; seeds from 0 (small: 4); clusters by the largest "
                    "k.p.",
            .why = "The formula adds a term for the values that is 0, and multiplies the largest query, radius and "
                   "value of all; ours go query by query and cluster by cluster." });
    const int seeds = o->small ? 4 : 10;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        double all[COLUMNS] = { 0 };
        work w = { 0 };
        taut_status status = work_new(&w, &settings[i]) ? TAUT_OK : taut_no_memory("the table");
        for (int seed = 0; !status && seed < seeds; seed++) status = measure(all, &w, &settings[i], (uint64_t)seed);
        free(w.room);
        free(w.cluster);
        if (status) {
            cJSON_Delete(out);
            return NULL;
        }
        for (int c = 0; c < COLUMNS; c++) all[c] /= seeds;
        paper_row(out, settings[i].name, all, COLUMNS);
    }
    return out;
}

/* Milliseconds on the paper's GPU: softmax attention, and PLASH with D = 256 for M = 64, 128, 256, 512. */
static const struct {
    int64_t tokens;
    double exact, plash[4];
} printed[] = {
    { 2048, 2.43, { 2.59, 2.61, 2.65, 2.34 } },   { 4096, 8.33, { 2.59, 2.54, 2.73, 2.72 } },
    { 8192, 31.84, { 2.65, 2.39, 2.63, 3.60 } },  { 10240, 48.97, { 2.79, 2.61, 2.93, 4.52 } },
    { 11264, 58.95, { 2.63, 2.45, 2.91, 4.89 } }, { 65536, NAN, { NAN, NAN, NAN, NAN } },
};
static const int64_t representatives[] = { 64, 128, 256, 512 };

/* Every length with every M, exact attention once a length; `tell` makes a row of what was measured. */
static cJSON *race_table(cJSON *out, const paper_options *o, int rounds,
                         void (*tell)(cJSON *, int at, int m, const race_result *, const race_result *exact))
{
    const int lengths = (int)paper_pick(o, 1, 5, 6);
    for (int i = 0; i < lengths; i++) {
        race_result first;
        for (int m = 0; m < (o->tiny ? 1 : 4); m++) {
            const int exact = m > 0 ? 0 : printed[i].tokens > 20000 ? 1 : rounds < 5 ? 2 : o->small ? 3 : 5;
            const race_plan plan = { printed[i].tokens, representatives[m], 256, rounds, exact, false };
            race_result r;
            cli_bar((4 * i + m) / (4.0 * lengths), "plash");
            if (!race_plash(&r, taut_kernels_find("cpu"), &plan)) {
                cJSON_Delete(out);
                return NULL;
            }
            if (m == 0) first = r;
            tell(out, i, m, &r, &first);
        }
    }
    return out;
}

static void tell_time(cJSON *out, int at, int m, const race_result *r, const race_result *exact)
{
    paper_row(out, NULL,
              (double[]){ (double)printed[at].tokens, (double)representatives[m], 1e3 * r->plash.median,
                          1e3 * r->plash.low, 1e3 * r->plash.high, 1e3 * exact->exact.median,
                          exact->exact.median / r->plash.median, printed[at].plash[m], printed[at].exact,
                          printed[at].exact / printed[at].plash[m] },
              10);
}

static void tell_memory(cJSON *out, int at, int m, const race_result *r, const race_result *exact)
{
    const double dense = 4.0 * RACE_HEADS * (double)printed[at].tokens * (double)printed[at].tokens / 0x1p20;
    paper_row(out, NULL,
              (double[]){ (double)printed[at].tokens, (double)representatives[m], r->plash_peak / 0x1p20,
                          exact->exact_peak / 0x1p20, dense },
              5);
}

cJSON *paper_plash_table2(const paper_options *o)
{
    static const char *const names[] = { "tokens",   "M",     "ms",           "quartile_1",         "quartile_3",
                                         "exact_ms", "ratio", "published_ms", "published_exact_ms", "published_ratio" };
    return race_table(
        paper_table(
            "PLASH, table 2: latency of a forward pass, D = 256, 4 heads of 128, one example", names, 10,
            (paper_words){
                .published = "the last three columns, on a GPU, softmax attention with its matrix of logits kept.",
                .ours = "medians after a warm-up on this machine's processors (small: 7 rounds, 3 of exact); exact "
                        "attention "
                        "is ours, tiled, on the same inputs in the same run.",
                .why =
                    "A GPU's PLASH is bound by starting kernels and not by its sums, 2.4 ms whatever the length; ours "
                    "takes the time of its sums, and so does our exact attention." }),
        o, (int)paper_pick(o, 1, 7, 51), tell_time);
}

cJSON *paper_plash_fig3(const paper_options *o)
{
    static const char *const names[] = { "tokens", "M", "peak_MiB", "exact_MiB", "dense_MiB" };
    return race_table(
        paper_table(
            "PLASH, figure 3: peak memory beyond q, k, v and the output", names, 5,
            (paper_words){ .published = "curves without numbers; softmax attention's grows with the square.",
                           .ours = "what the system counts at the peak of one call; exact_MiB is our tiled attention.",
                           .why = "What grows in the paper's figure is the matrices of logits that softmax attention "
                                  "keeps where it is not tiled (dense_MiB, computed); neither of ours has them." }),
        o, 1, tell_memory);
}
