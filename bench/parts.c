#include "bench/parts.h"

#include <string.h>
#include <time.h>

#include "bench/timing.h"

const char *const bench_part_name[PARTS] = { "products",  "attention", "norms",     "activations", "adds",
                                             "embedding", "loss",      "optimiser", "other" };

static taut_kernels timed;
static const taut_kernels *under;
static bench_part sum[PARTS];

bench_part bench_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (bench_part){ bench_now(), (double)t.tv_sec + 1e-9 * (double)t.tv_nsec };
}

static void add(int part, bench_part since)
{
    const bench_part now = bench_clock();
    sum[part].seconds += now.seconds - since.seconds;
    sum[part].processor += now.processor - since.processor;
}

/* X(part, slot, its parameters, their names) */
#define TIMED_SLOTS(X)                                                                                                 \
    X(PRODUCTS, gemm,                                                                                                  \
      (taut_real * c, const taut_real *a, const taut_real *b, int64_t m, int64_t n, int64_t k, bool ta, bool tb,       \
       double alpha, double beta),                                                                                     \
      (c, a, b, m, n, k, ta, tb, alpha, beta))                                                                         \
    X(PRODUCTS, gemm_by,                                                                                               \
      (taut_real * c, const taut_real *a, const taut_real *b, int64_t m, int64_t n, int64_t k, bool ta, bool tb,       \
       taut_factor alpha, double beta),                                                                                \
      (c, a, b, m, n, k, ta, tb, alpha, beta))                                                                         \
    X(PRODUCTS, gemm_each,                                                                                             \
      (taut_real * c, const taut_real *p, const taut_real *a, const taut_real *b, int64_t count, int64_t m, int64_t n, \
       int64_t k, bool ta, bool tb, double alpha, double beta),                                                        \
      (c, p, a, b, count, m, n, k, ta, tb, alpha, beta))                                                               \
    X(PRODUCTS, affine,                                                                                                \
      (taut_real * y, const taut_real *x, const taut_real *w, const taut_real *b, int64_t rows, int64_t out,           \
       int64_t in, double alpha),                                                                                      \
      (y, x, w, b, rows, out, in, alpha))                                                                              \
    X(ATTENTION, attention,                                                                                            \
      (taut_real * o, taut_real * lse, const taut_real *q, const taut_real *k, const taut_real *v,                     \
       const taut_attn *a),                                                                                            \
      (o, lse, q, k, v, a))                                                                                            \
    X(ATTENTION, attention_vjp,                                                                                        \
      (taut_real * gq, taut_real * gk, taut_real * gv, const taut_real *go, const taut_real *o, const taut_real *lse,  \
       const taut_real *q, const taut_real *k, const taut_real *v, const taut_attn *a),                                \
      (gq, gk, gv, go, o, lse, q, k, v, a))                                                                            \
    X(NORMS, normalise,                                                                                                \
      (taut_real * z, taut_real * rstd, const taut_scaled *also, const taut_real *x, int64_t rows, int64_t d,          \
       bool centre, double eps),                                                                                       \
      (z, rstd, also, x, rows, d, centre, eps))                                                                        \
    X(NORMS, normalise_slope,                                                                                          \
      (taut_real * y, const taut_real *t, const taut_real *gain, const taut_real *z, const taut_real *rstd,            \
       int64_t rows, int64_t d, bool centre),                                                                          \
      (y, t, gain, z, rstd, rows, d, centre))                                                                          \
    X(NORMS, mul_rows, (taut_real * y, const taut_real *x, const taut_real *g, int64_t rows, int64_t cols),            \
      (y, x, g, rows, cols))                                                                                           \
    X(NORMS, dot_rows,                                                                                                 \
      (taut_real * g, taut_real * s, const taut_real *x, const taut_real *y, int64_t rows, int64_t cols),              \
      (g, s, x, y, rows, cols))                                                                                        \
    X(ACTIVATIONS, pointwise, (taut_real * y, const taut_real *x, taut_curve f, int64_t len), (y, x, f, len))          \
    X(ACTIVATIONS, pointwise_slope,                                                                                    \
      (taut_real * y, const taut_real *t, const taut_real *x, taut_curve f, int64_t len), (y, t, x, f, len))           \
    X(ADDS, add_rows,                                                                                                  \
      (taut_real * y, const taut_real *x, const taut_real *p, int64_t rows, int64_t cols, int64_t period),             \
      (y, x, p, rows, cols, period))                                                                                   \
    X(ADDS, sum_rows, (taut_real * p, const taut_real *y, int64_t rows, int64_t cols, int64_t period),                 \
      (p, y, rows, cols, period))                                                                                      \
    X(ADDS, copy_rows,                                                                                                 \
      (taut_real * y, int64_t y_stride, const taut_real *x, int64_t x_stride, int64_t rows, int64_t cols),             \
      (y, y_stride, x, x_stride, rows, cols))                                                                          \
    X(ADDS, axpby, (taut_real * y, double a, const taut_real *x, double b, int64_t len), (y, a, x, b, len))            \
    X(EMBEDDING, gather, (taut_real * y, const taut_real *table, const taut_index *ids, int64_t rows, int64_t d),      \
      (y, table, ids, rows, d))                                                                                        \
    X(EMBEDDING, scatter,                                                                                              \
      (taut_real * table, int64_t entries, const taut_real *y, const taut_index *ids, int64_t rows, int64_t d),        \
      (table, entries, y, ids, rows, d))                                                                               \
    X(LOSS, cross_entropy,                                                                                             \
      (taut_real * g, taut_sum * sums, const taut_real *x, const taut_index *target, int64_t rows, int64_t classes,    \
       double weight),                                                                                                 \
      (g, sums, x, target, rows, classes, weight))                                                                     \
    X(OPTIMISER, dot,                                                                                                  \
      (taut_sum * s, const taut_real *x, int64_t x_stride, const taut_real *y, int64_t y_stride, int64_t n,            \
       int64_t len),                                                                                                   \
      (s, x, x_stride, y, y_stride, n, len))                                                                           \
    X(OPTIMISER, axpby_by,                                                                                             \
      (taut_real * y, int64_t y_stride, taut_factor a, const taut_real *x, int64_t x_stride, taut_factor b, int64_t n, \
       int64_t len),                                                                                                   \
      (y, y_stride, a, x, x_stride, b, n, len))                                                                        \
    X(OPTIMISER, sgd,                                                                                                  \
      (taut_real * w, taut_real * m, const taut_real *g, int64_t len, double lr, double momentum, double decay),       \
      (w, m, g, len, lr, momentum, decay))                                                                             \
    X(OPTIMISER, adamw,                                                                                                \
      (taut_real * w, taut_real * m, taut_real * v, const taut_real *g, int64_t len, const taut_adam *s),              \
      (w, m, v, g, len, s))

#define PASS_ON(part, slot, parameters, names)  \
    static void timed_##slot parameters         \
    {                                           \
        const bench_part since = bench_clock(); \
        under->slot names;                      \
        add(PART_##part, since);                \
    }
TIMED_SLOTS(PASS_ON)

const taut_kernels *bench_parts_over(const taut_kernels *k)
{
    under = k;
    timed = *k;
    memset(sum, 0, sizeof sum);
#define TAKE_OVER(part, slot, parameters, names) timed.slot = timed_##slot;
    TIMED_SLOTS(TAKE_OVER)
    return &timed;
}

void bench_parts_read(bench_part part[PARTS], bench_part whole)
{
    sum[PART_OTHER] = whole;
    for (int i = 0; i < PART_OTHER; i++) {
        sum[PART_OTHER].seconds -= sum[i].seconds;
        sum[PART_OTHER].processor -= sum[i].processor;
    }
    memcpy(part, sum, sizeof sum);
    memset(sum, 0, sizeof sum);
}
