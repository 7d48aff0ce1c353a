/* Swaps of tokens on small vocabularies, exhaustively: no swap that is covered, and no two of those that are covered
 * together, changes an answer; counts and shares are those of distances computed another way; the search, when it may try
 * all, finds what there is to find, and a proof that is made too good is contradicted. */
#include "base/float32.h"
#include "build.h"
#include "temp.h"
#include "verdict/swaps.h"

enum { TOKENS = 9, T = 4, MOST = 2, TEXTS = 3 };

#define TEXT "[model]\nwidth = 6\ndepth = 1\nheads = 2\ncontext = 4\nmlp = 6\n"
static const char *const models[] = {
    TEXT "arch = classifier\nclasses = 3\nnorm = none\nattention = position\nactivation = abs\nresidual = convex\n",
    TEXT "arch = classifier\nclasses = 2\nnorm = rmsnorm\nnorm_eps = 0.5\n",
    TEXT "norm = none\nattention = position\nactivation = relu\ntied = false\n",
};
enum { MODELS = sizeof models / sizeof *models };

static int covered_tried, pairs_tried, turned, uncovered;

/* Random weights, and rows of the embedding that lie near one another: some swaps are covered, some are not. */
static void save_model(const char *text, const char *path)
{
    taut_model *m = blank_model(text, TOKENS, false);
    double *w = (double *)m->values, *e = w + m->weight[0].offset;
    static const double spreads[] = { 1e-3, 1e-2, 0.1, 0.6, 3 };
    const double spread = spreads[case_no % 5];
    for (int64_t i = 0; i < m->slab; i++) w[i] = taut_float32(0.5 * rng_pm());
    for (int64_t i = 0; i < TOKENS * 6; i++) e[i] = taut_float32(0.5 * cos((double)(i % 6)) + spread * rng_pm());
    must(taut_model_save(m, path));
    taut_model_free(m);
}

/* By other means: in long double. */
static double distance(const taut_certificate *c, int32_t a, int32_t b)
{
    const double *e = taut_ref_values(&c->model->embed);
    long double sum = 0;
    for (int i = 0; i < 6; i++) {
        const long double d = (long double)e[a * 6 + i] - (long double)e[b * 6 + i];
        sum += d * d;
    }
    return (double)sqrtl(sum);
}

static int32_t answer(taut_pass *pass, const int32_t *ids)
{
    double z[TOKENS * T];
    taut_pass_read(pass, (taut_input){ ids, NULL }, 1);
    const taut_shape y = pass->logits.shape;
    pass->m->k->get(z, pass->logits.data, taut_len(y));
    const double *last = z + (y.t - 1) * y.d;
    int32_t best = 0;
    for (int32_t j = 1; j < y.d; j++)
        if (last[j] > last[best]) best = j;
    return best;
}

/* All swaps of one text, by a forward pass each. */
static void try_all(const taut_swapped *s, const taut_certificate *c, taut_pass *pass, const int32_t *ids)
{
    const int32_t before = answer(pass, ids);
    int32_t now[T];
    int64_t covered = 0;
    bool turns = false;
    double nearest = INFINITY;
    memcpy(now, ids, sizeof now);
    for (int i = 0; i < T; i++)
        for (int32_t to = 0; to < TOKENS; to++) {
            if (to == ids[i]) continue;
            const double apart = distance(c, ids[i], to);
            const bool good = apart * (1 + 1e-14) < s->radius.v;
            now[i] = to;
            const bool same = answer(pass, now) == before;
            now[i] = ids[i];
            covered += good, covered_tried += good, uncovered += !good;
            if (good) CHECK(same, "a covered swap leaves the answer");
            if (!good) turns = turns || !same, nearest = fmin(nearest, apart);
        }
    CHECK(covered == s->safe[0], "all that are covered are counted");
    CHECK((s->held > 0) == (covered > 0), "covered swaps were tried, if there are any");
    CHECK(isinf(nearest) ? s->nearest.place < 0 : fabs(s->nearest.distance - nearest) <= 1e-12 * nearest,
          "the nearest");
    CHECK((s->turned == 1) == turns, "a search that may try all finds one that turns the answer");
    turned += turns;
}

/* All pairs of swaps at two places; returns the share that is covered. */
static double try_pairs(const taut_swapped *s, const taut_certificate *c, taut_pass *pass, const int32_t *ids)
{
    const int32_t before = answer(pass, ids);
    int32_t now[T];
    double covered = 0, all = 0;
    memcpy(now, ids, sizeof now);
    for (int k = 0; k < T * T * TOKENS * TOKENS; k++) {
        const int i = k % T, j = k / T % T;
        const int32_t a = k / (T * T) % TOKENS, b = k / (T * T * TOKENS);
        if (i >= j || a == ids[i] || b == ids[j]) continue;
        const double x = distance(c, ids[i], a), y = distance(c, ids[j], b);
        const double move = c->norm == TAUT_NORM_FLAT ? sqrt(x * x + y * y) : fmax(x, y);
        all++;
        if (!(move * (1 + 1e-14) < s->radius.v)) continue;
        covered++, pairs_tried++;
        now[i] = a, now[j] = b;
        CHECK(answer(pass, now) == before, "two covered swaps leave the answer");
        now[i] = ids[i], now[j] = ids[j];
    }
    return covered / all;
}

static void check_texts(const taut_certificate *c, const int32_t *ids)
{
    const int32_t labels[TEXTS] = { 0, 1, 0 };
    taut_examples from = { .ids = ids, .labels = labels, .n = TEXTS, .t = T };
    const taut_swaps_way way = { .most = MOST, .tries = T * TOKENS };
    taut_swaps s;
    taut_pass *pass = NULL;
    must(taut_examples_settle(&from, c->model));
    must(taut_swaps_make(&s, c, &from, &way));
    must(taut_pass_create(&pass, c->model, 1, T, false));
    CHECK(s.count == TEXTS && s.all == T * (TOKENS - 1), "all swaps of all texts");
    CHECK(taut_swaps_beaten(&s) == 0, "nothing is contradicted");
    for (int i = 0; i < TEXTS; i++) {
        const taut_swapped *x = &s.of[i];
        try_all(x, c, pass, ids + i * T);
        const double share = try_pairs(x, c, pass, ids + i * T);
        CHECK_LE(x->share[1], share, "no more pairs are claimed than are covered");
        CHECK_LE(x->safe[1], (double)x->safe[0], "fewer together than alone");
        CHECK_NEAR(x->share[0], (double)x->safe[0] / (double)s.all, 1e-12, "one swap: the share is the count");
        if (c->norm == TAUT_NORM_TOKENS) CHECK_NEAR(x->share[1], share, 1e-12, "in norm tokens exactly those");
    }
    taut_swaps_free(&s);
    taut_pass_free(pass);
}

/* The same with a constant that is a thousandth of the proved one: swaps that turn the answer are then called covered. */
static int64_t bent(taut_certificate *c, const int32_t *ids)
{
    const int32_t labels[TEXTS] = { 0, 1, 0 };
    taut_examples from = { .ids = ids, .labels = labels, .n = TEXTS, .t = T };
    const taut_swaps_way way = { .most = 1, .tries = T * TOKENS };
    taut_swaps s;
    c->body.v *= 1e-3;
    must(taut_examples_settle(&from, c->model));
    must(taut_swaps_make(&s, c, &from, &way));
    const int64_t beaten = taut_swaps_beaten(&s);
    taut_swaps_free(&s);
    return beaten;
}

int main(void)
{
    int64_t beaten = 0;
    test_begin();
    temp_begin();
    const char *path = strdup(temp_path("model.safetensors"));
    const int cases = effort(60) < 20 ? 20 : effort(60); /* of fewer, some see nothing of a kind */
    for (case_no = 0; case_no < cases; case_no++) {
        taut_certificate c;
        int32_t ids[TEXTS * T];
        save_model(models[case_no % MODELS], path);
        for (int i = 0; i < TEXTS * T; i++) ids[i] = (int32_t)rng_int(0, TOKENS - 1);
        must(taut_certify(&c, path, case_no % 2 ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS, 0));
        check_texts(&c, ids);
        beaten += bent(&c, ids);
        taut_certificate_free(&c);
    }
    CHECK(covered_tried > 0 && uncovered > 0 && pairs_tried > 0 && turned > 0, "something of each kind was seen");
    CHECK(beaten > 0, "a constant that is too small is contradicted");
    free((void *)(uintptr_t)path);
    return test_end("swaps", "%d covered swaps and %d pairs, none turns; %d texts turned by others; bent: %lld found",
                    covered_tried, pairs_tried, turned, (long long)beaten);
}
