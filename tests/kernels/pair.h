/* A kernel test compares two tables: every array exists twice, as ref's doubles and, holding the same numbers, where the
 * other table keeps its own.  The other table is cpu in every build, or the one that TAUT_KERNELS names; its memory is
 * reached through put and get alone, so it may be a device's. */
#ifndef PAIR_H
#define PAIR_H
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "kernels/promise.h"
#include "table.h"

/* One rounding, relative, of the table under test. */
#define UNIT promised->unit

typedef struct {
    int64_t len;
    double *d;
    taut_real *f, *room; /* f begins pair_shift elements into its memory */
} pair;

static const taut_kernels *ref, *cpu;
static const taut_promise *promised; /* cpu's */
static double worst;                 /* error / promised */
static int64_t pair_shift;           /* other than 0: arrays begin where wide reads cannot */

/* Every other build of the cpu kernels that this processor runs, and wide, is tested by a process of its own, which goes
 * through all of main with that table.  They are made before any thread is. */
static inline const char *pair_builds(void)
{
    static const char *const builds[] = { "cpu-base", "cpu-v3", "cpu-v4", "wide" };
    for (int i = 0; i < 4; i++) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            const taut_kernels *k = taut_kernels_find(builds[i]);
            if (!k || k == taut_kernels_find("cpu")) _exit(0);
            return builds[i];
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, builds[i]);
    }
    return "cpu";
}

static inline void pair_begin(void)
{
    test_begin();
    const char *name = getenv("TAUT_KERNELS");
    if (!name || !*name) name = pair_builds();
    ref = taut_kernels_find("ref");
    cpu = taut_kernels_find(name);
    if (!cpu && (strncmp(name, "cuda", 4) == 0 || strncmp(name, "cpu-", 4) == 0)) exit(test_skip(taut_last_error()));
    CHECK(ref && cpu, "both tables exist");
    promised = taut_promise_find(cpu->name);
    CHECK(promised && promised->unit == cpu->unit * (cpu->unit < 0x1p-40 ? 4 : 1), "the table promises");
}

static inline taut_real *R(const pair *p) { return (taut_real *)p->d; }

/* What a promise counts where the table lives on the host, and where it lives on a device. */
static inline double by_table(double host, double device) { return cpu->host ? host : device; }

/* Makes the other side follow the doubles, which are rounded first. */
static inline void pair_sync(pair *p)
{
    cpu->put(p->f, p->d, p->len);
    cpu->get(p->d, p->f, p->len);
}

static inline pair pair_room(int64_t len)
{
    taut_real *room = taut_reals(cpu, len + pair_shift);
    return (pair){ len, doubles(len), taut_at(cpu, room, pair_shift), room };
}

static inline pair pair_new(int64_t len, double size)
{
    pair p = pair_room(len);
    for (int64_t i = 0; i < len; i++) p.d[i] = size * rng_pm();
    pair_sync(&p);
    return p;
}

static inline pair pair_copy(const pair *from)
{
    pair p = pair_room(from->len);
    memcpy(p.d, from->d, (size_t)p.len * sizeof(double));
    pair_sync(&p);
    return p;
}

static inline void pair_free(pair *p)
{
    free(p->d);
    cpu->release(p->room);
}

/* One number against another: both NaN, the same infinity, or near. */
static inline void near(double got, double want, double tol, const char *what)
{
    if (isnan(want) || isinf(want)) {
        CHECK(isnan(want) ? isnan(got) : got == want, what);
        return;
    }
    const double error = fabs(got - want);
    CHECK_LE(error, tol, what);
    if (error > 0 && error / tol > worst) worst = error / tol;
}

/* cpu against ref; tol[i] may grow with the entry: a promise is absolute[i] + relative |want|. */
static inline void pair_near(const pair *p, const double *absolute, double flat, double relative, const char *what)
{
    double *got = doubles(p->len);
    cpu->get(got, p->f, p->len);
    for (int64_t i = 0; i < p->len; i++)
        near(got[i], p->d[i], (absolute ? absolute[i] : 0) + flat + relative * fabs(p->d[i]), what);
    free(got);
}

static inline void pair_same(const pair *a, const pair *b, const char *what)
{
    double *x = doubles(a->len), *y = doubles(a->len);
    cpu->get(x, a->f, a->len);
    cpu->get(y, b->f, a->len);
    const size_t size = (size_t)a->len * sizeof(double);
    CHECK(size == 0 || (memcmp(a->d, b->d, size) == 0 && memcmp(x, y, size) == 0), what);
    free(x);
    free(y);
}

/* Runs `call` (which must set `out` from scratch) with 1, 2 and 3 threads; the bits of out must not move. */
#define SAME_BITS(out, call)                                                  \
    do {                                                                      \
        pair first_ = { 0 };                                                  \
        for (int threads_ = 1; threads_ <= 3; threads_++) {                   \
            taut_threads_set(threads_);                                       \
            call;                                                             \
            if (threads_ == 1)                                                \
                first_ = pair_bits(&(out));                                   \
            else                                                              \
                pair_same(&(out), &first_, "same bits for any thread count"); \
        }                                                                     \
        taut_threads_set(0);                                                  \
        pair_free(&first_);                                                   \
    } while (0)

/* Both sides as they were in `from`, which need not agree. */
static inline void pair_restore(pair *p, const pair *from)
{
    double *x = doubles(p->len);
    cpu->get(x, from->f, p->len);
    cpu->put(p->f, x, p->len);
    if (p->len > 0) memcpy(p->d, from->d, (size_t)p->len * sizeof(double));
    free(x);
}

/* An exact copy of both sides. */
static inline pair pair_bits(const pair *from)
{
    pair p = pair_room(from->len);
    pair_restore(&p, from);
    return p;
}
#endif
