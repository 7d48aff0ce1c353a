/* The bound on the deviation from softmax attention, against the truth in long double: adversarial rows of every
 * kind, a case known to all digits, and that it is tight.  36,000 of them and more that
 * climb, at TAUT_EFFORT=1. */
#include "base/float32.h"
#include "bound/deviation.h"
#include "harness.h"

enum { MOST = 24, WIDE = 6, QUERIES = 3 };

typedef struct {
    int64_t nk, m, dk, dv;
    double q[QUERIES * WIDE], k[MOST * WIDE], v[MOST * WIDE], y[QUERIES * WIDE];
    float fq[QUERIES * WIDE], fk[MOST * WIDE], fv[MOST * WIDE], fy[QUERIES * WIDE];
    int32_t c[MOST];
    double scale;
    bool single; /* the numbers are floats */
} scene;

static double normal(void) { return sqrt(-2 * log(1 - rng_unit())) * cos(6.283185307179586 * rng_unit()); }
static double power(double lo, double hi) { return pow(10, lo + (hi - lo) * rng_unit()); }

/* Exact attention of query i, without the keys whose cluster is negative. */
static void truth(long double *y, const scene *s, int64_t i)
{
    long double logit[MOST], max = -INFINITY, sum = 0;
    for (int64_t d = 0; d < s->dv; d++) y[d] = 0;
    for (int64_t j = 0; j < s->nk; j++) {
        logit[j] = 0;
        for (int64_t d = 0; d < s->dk; d++) logit[j] += (long double)s->q[i * s->dk + d] * s->k[j * s->dk + d];
        logit[j] *= s->scale;
        if (s->c[j] >= 0 && logit[j] > max) max = logit[j];
    }
    for (int64_t j = 0; j < s->nk; j++) {
        const long double a = s->c[j] >= 0 ? expl(logit[j] - max) : 0;
        sum += a;
        for (int64_t d = 0; d < s->dv; d++) y[d] += a * s->v[j * s->dv + d];
    }
    for (int64_t d = 0; d < s->dv; d++) y[d] /= sum;
}

static double off(const long double *y, const double *x, int64_t d)
{
    long double sum = 0;
    for (int64_t i = 0; i < d; i++) sum += (y[i] - x[i]) * (y[i] - x[i]);
    return (double)sqrtl(sum);
}

static taut_deviation ask(const scene *s, taut_deviation_mode mode, bool first)
{
    const size_t e = s->single ? 4 : 8;
    return (taut_deviation){ QUERIES,
                             s->nk,
                             s->dk,
                             s->dv,
                             s->m,
                             s->scale,
                             { s->single ? (const void *)s->fq : s->q, e, s->dk },
                             { s->single ? (const void *)s->fk : s->k, e, s->dk },
                             { s->single ? (const void *)s->fv : s->v, e, s->dv },
                             { s->single ? (const void *)s->fy : s->y, e, s->dv },
                             s->c,
                             mode,
                             first };
}

static void round_all(double *x, float *f, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = taut_float32(x[i]), f[i] = (float)x[i];
}

enum {
    PLAIN,
    DUPLICATE,
    SINGLETONS,
    ONE,
    ZERO_QUERY,
    FLOATS,
    SHARP,
    FAR_OUTPUT,
    PADDED,
    OFFSET,
    PREFIX,
    EXTREME,
    KINDS
};

static scene draw(int kind)
{
    scene s = { .nk = rng_int(1, 20), .m = rng_int(1, MOST), .dk = rng_int(1, WIDE - 1), .dv = rng_int(1, WIDE - 1) };
    const bool extreme = kind == EXTREME; /* products that underflow, logits that do not */
    const double q = extreme ? power(-70, 150) : power(-3, 2.5), k = extreme ? power(-2, 1.5) / q : power(-3, 1);
    const double v = extreme ? power(-150, 70) : power(-2, 2), shift = rng_int(0, 2) || extreme ? 0 : 100;
    s.scale = 1 / sqrt((double)s.dk);
    s.single = kind == FLOATS;
    for (int64_t i = 0; i < QUERIES * s.dk; i++) s.q[i] = q * normal();
    for (int64_t i = 0; i < s.nk * s.dk; i++) s.k[i] = k * normal() + (kind == OFFSET ? power(2, 6) : 0);
    for (int64_t i = 0; i < s.nk * s.dv; i++) s.v[i] = v * normal() + shift + (kind == OFFSET ? 1e6 : 0);
    for (int64_t i = 0; i < s.nk; i++) s.c[i] = (int32_t)rng_int(0, s.m - 1);
    for (int64_t i = 0; i < s.nk; i++) {
        if (kind == DUPLICATE) memcpy(s.k + i * s.dk, s.k, (size_t)s.dk * 8);
        if (kind == SINGLETONS) s.c[i] = (int32_t)(i % s.m);
        if (kind == ONE) s.c[i] = 0;
        if (kind == PADDED && i && rng_int(0, 1)) s.c[i] = -1;
        if (kind == PREFIX && i > s.nk / 2) s.c[i] = -1;
    }
    if (kind == ZERO_QUERY) memset(s.q, 0, (size_t)s.dk * 8);
    if (kind == SHARP) {
        double most = 0;
        for (int64_t i = 0; i < QUERIES; i++)
            for (int64_t j = 0; j < s.nk; j++) most = fmax(most, fabs(dot(s.q + i * s.dk, s.k + j * s.dk, s.dk)));
        for (int64_t i = 0; i < QUERIES * s.dk; i++) s.q[i] *= 1000 / (most * s.scale);
    }
    return s;
}

static double tightest, tightest_own; /* the second: where the output is the clusters' own, so that B is all there is */
static int64_t rows, decided;

/* y_q, by the definition: softmax in which a key has the logit of its cluster's mean. */
static void own(double *y, const scene *s, int64_t i)
{
    double mean[MOST][WIDE] = { { 0 } }, count[MOST] = { 0 }, logit[MOST], max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < s->nk; j++) {
        if (s->c[j] < 0) continue;
        count[s->c[j]]++;
        for (int64_t d = 0; d < s->dk; d++) mean[s->c[j]][d] += s->k[j * s->dk + d];
    }
    for (int64_t j = 0; j < s->nk; j++)
        if (s->c[j] >= 0) {
            logit[j] = s->scale * dot(s->q + i * s->dk, mean[s->c[j]], s->dk) / count[s->c[j]];
            max = fmax(max, logit[j]);
        }
    memset(y, 0, (size_t)s->dv * 8);
    for (int64_t j = 0; j < s->nk; j++) {
        if (s->c[j] < 0) continue;
        const double a = exp(logit[j] - max);
        sum += a;
        for (int64_t d = 0; d < s->dv; d++) y[d] += a * s->v[j * s->dv + d];
    }
    for (int64_t d = 0; d < s->dv; d++) y[d] /= sum;
}

static void check(const scene *s, const taut_deviation *c, const long double truths[QUERIES][WIDE], double *tight)
{
    double e[QUERIES];
    taut_deviation_sum sum;
    CHECK(up_deviation(c, e, NULL, &sum) == TAUT_OK, "memory");
    double all = 0;
    for (int64_t i = 0; i < QUERIES; i++) {
        const double far = off(truths[i], s->y + i * s->dv, s->dv);
        CHECK_LE(far, e[i], c->first ? "first order" : c->mode == TAUT_DEVIATION_AUDIT ? "audit" : "fast");
        all += far * far;
        rows++;
        decided += isfinite(e[i]);
        if (far > 0) *tight = fmax(*tight, far / e[i]);
    }
    CHECK_LE(sqrt(all), sum.all.v * (1 + 1e-15), "all queries together");
    CHECK_LE(sum.all.v, sum.hull.v, "no worse than trivial");
}

static void adversary(int kind)
{
    scene s = draw(kind);
    if (s.single)
        round_all(s.q, s.fq, QUERIES * s.dk), round_all(s.k, s.fk, s.nk * s.dk), round_all(s.v, s.fv, s.nk * s.dv);
    long double y[QUERIES][WIDE];
    const double noise = kind == FAR_OUTPUT ? 1e8 : rng_int(0, 2) ? 0 : 1e-3;
    for (int64_t i = 0; i < QUERIES; i++) {
        truth(y[i], &s, i);
        for (int64_t d = 0; d < s.dv; d++) s.y[i * s.dv + d] = (double)y[i][d] + noise * normal();
    }
    if (rng_int(0, 1)) round_all(s.y, s.fy, QUERIES * s.dv); /* an output kept as floats */
    if (s.single) round_all(s.y, s.fy, QUERIES * s.dv);
    const int kind_of = (int)rng_int(0, 3);
    const taut_deviation_mode mode = kind_of > 1 ? TAUT_DEVIATION_AUDIT : (taut_deviation_mode)kind_of;
    const taut_deviation c = ask(&s, mode, kind_of > 2);
    check(&s, &c, (const long double(*)[WIDE])y, &tightest);
    if (s.single) return;
    for (int64_t i = 0; i < QUERIES; i++) own(s.y + i * s.dv, &s, i);
    const taut_deviation itself = ask(&s, mode, false);
    check(&s, &itself, (const long double(*)[WIDE])y, &tightest_own);
}

/* Clusters that are ends of a segment, keys chosen by climbing: what makes the bound tight also attacks it. */
static void climb(void)
{
    scene s = draw(PLAIN);
    double best = 0;
    s.m = rng_int(1, 3), s.nk = rng_int(2, 6), s.dk = s.dv = 1;
    for (int64_t i = 0; i < s.nk; i++) s.c[i] = (int32_t)rng_int(0, s.m - 1);
    for (int step = 0; step < 40; step++) {
        const scene keep = s;
        long double y[QUERIES][WIDE];
        double e[QUERIES], b[QUERIES];
        taut_deviation_sum sum;
        for (int64_t i = 0; step && i < s.nk; i++)
            s.k[i] += power(-3, 0.5) * normal(), s.v[i] += power(-3, 0.5) * normal();
        const taut_deviation c = ask(&s, (taut_deviation_mode)(step % 3), false);
        memset(s.y, 0, sizeof s.y);
        CHECK(up_deviation(&c, e, b, &sum) == TAUT_OK, "memory");
        double now = 0;
        for (int64_t i = 0; i < QUERIES; i++) {
            truth(y[i], &s, i);
            CHECK_LE(off(y[i], s.y + i * s.dv, s.dv), e[i], "climbing");
            now = fmax(now, off(y[i], s.y + i * s.dv, s.dv) / e[i]);
            rows++;
        }
        if (now < best) s = keep;
        best = fmax(best, now);
    }
}

static void known(void)
{
    static const double q[] = { 1, 0, .5, -1 }, k[] = { 1, 0, .8, .2, -1, .5, -.9, .7 };
    static const double v[] = { 1, 2, 0, 1, 3, -1, 2, -2 };
    static const double yq[] = { 0.9255939838809317, 0.8616090241786021, 1.0348889508535728, 0.6976665737196407 };
    static const double y1[] = { 0.9496640582389689, 0.8856790985366393, 1.0808302668613703, 0.7436078897274383 };
    static const double b5[] = { .037525165132996835, .07341925677276276 },
                        b7[] = { .003624990528762117, .008764787549477175 };
    static const int32_t c[] = { 0, 0, 1, 1 };
    double e[2], b[2];
    taut_deviation_sum sum;
    taut_deviation a = {
        2, 4, 2, 2, 2, sqrt(0.5), { q, 8, 2 }, { k, 8, 2 }, { v, 8, 2 }, { yq, 8, 2 }, c, TAUT_DEVIATION_AUDIT, false
    };
    CHECK(up_deviation(&a, e, b, &sum) == TAUT_OK, "memory");
    for (int i = 0; i < 2; i++) {
        CHECK_NEAR(b[i], b5[i], 2e-9 * b5[i], "P1: B5");
        CHECK_NEAR(e[i], b[i], 1e-12, "P1: nothing but B where y = y_q");
    }
    a.first = true, a.y.data = y1;
    CHECK(up_deviation(&a, e, b, &sum) == TAUT_OK, "memory");
    for (int i = 0; i < 2; i++)
        CHECK_NEAR(b[i], b7[i], 2e-8 * b7[i], "P1: B7"); /* Z is raised by 1e-9, |F| is ten B7 */
    a.first = false, a.mode = TAUT_DEVIATION_FAST, a.y.data = yq;
    CHECK(up_deviation(&a, e, b, &sum) == TAUT_OK, "memory");
    static const double b6[] = { .07541999890572906, .08437339381423051 };
    for (int i = 0; i < 2; i++) CHECK_NEAR(b[i], b6[i], 2e-9 * b6[i], "P1: B6");
}

static void not_finite(void)
{
    double x[] = { 1, 2 }, bad[] = { NAN, 1 }, e[2];
    const int32_t c[] = { 0, 0 }, none[] = { -1, -1 };
    taut_deviation_sum sum;
    for (int i = 0; i < 6; i++) {
        taut_deviation a = { 2,           2,           1,           1,           1, 1,
                             { x, 8, 1 }, { x, 8, 1 }, { x, 8, 1 }, { x, 8, 1 }, c, (taut_deviation_mode)(i % 3),
                             false };
        taut_table *const table[] = { &a.q, &a.k, &a.v, &a.y };
        if (i < 4)
            table[i]->data = bad;
        else
            a.cluster = none;
        CHECK(up_deviation(&a, e, NULL, &sum) == TAUT_OK && sum.all.v == INFINITY && e[0] == INFINITY,
              "no number, no bound");
    }
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < effort(1000 * KINDS); case_no++) adversary(case_no % KINDS);
    for (case_no = 0; case_no < effort(100); case_no++) climb();
    known();
    not_finite();
    return test_end("deviation", "%lld rows, %lld with a finite bound, largest truth / bound = %.9f, of y_q %.9f",
                    (long long)rows, (long long)decided, tightest, tightest_own);
}
