/* What every test uses: a repeatable random source, checks that NaN cannot pass and that a release
 * build cannot strip, and one closing line. */
#ifndef HARNESS_H
#define HARNESS_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIP_CODE 77

static uint64_t rng_state = 1, seed = 1;
static int fails, case_no;

/* TAUT_SEED repeats a run; TAUT_EFFORT multiplies the number of cases, of which one is left. */
static inline void test_begin(void)
{
    const char *s = getenv("TAUT_SEED");
    rng_state = seed = s ? strtoull(s, NULL, 10) : 1;
    if (!rng_state) rng_state = 1;
}
static inline int effort(int cases)
{
    const char *s = getenv("TAUT_EFFORT");
    return s ? (int)fmax(1, cases * atof(s)) : cases;
}
static inline uint64_t rng_next(void)
{
    rng_state ^= rng_state >> 12;
    rng_state ^= rng_state << 25;
    rng_state ^= rng_state >> 27;
    return rng_state * 0x2545F4914F6CDD1Dull;
}
static inline double rng_unit(void) { return (double)(rng_next() >> 11) * 0x1p-53; }
static inline int64_t rng_int(int64_t lo, int64_t hi) { return lo + (int64_t)(rng_next() % (uint64_t)(hi - lo + 1)); }
static inline double rng_pm(void) { return 2 * rng_unit() - 1; }
static inline void fill(double *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) p[i] = rng_pm();
}
static inline double dot(const double *a, const double *b, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}
static inline double norm(const double *a, int64_t n) { return sqrt(dot(a, a, n)); }
static inline double *doubles(int64_t n) { return calloc((size_t)(n > 0 ? n : 1), sizeof(double)); }

/* written as !(a <= b) so that NaN fails */
#define CHECK_LE(a, b, what)                                                                                          \
    do {                                                                                                              \
        const double a_ = (a), b_ = (b);                                                                              \
        if (!(a_ <= b_) && fails++ < 20)                                                                              \
            fprintf(stderr, "FAIL %s:%d %s: %.17g > %.17g  (TAUT_SEED=%llu case %d)\n", __FILE__, __LINE__, what, a_, \
                    b_, (unsigned long long)seed, case_no);                                                           \
    } while (0)
#define CHECK_NEAR(a, b, tol, what) CHECK_LE(fabs((a) - (b)), (tol), what)
#define CHECK(cond, what)                                                                                     \
    do {                                                                                                      \
        if (!(cond) && fails++ < 20)                                                                          \
            fprintf(stderr, "FAIL %s:%d %s: %s  (TAUT_SEED=%llu case %d)\n", __FILE__, __LINE__, what, #cond, \
                    (unsigned long long)seed, case_no);                                                       \
    } while (0)

/* return test_end("softmax", "worst error / promised = %.2f", worst); */
#define test_end(name, ...) \
    (printf("%-12s ", name), printf(__VA_ARGS__), printf(fails ? "  %d FAILED\n" : "  ok\n", fails), fails != 0)
#define test_skip(why) (printf("skipped: %s\n", why), SKIP_CODE)
#endif
