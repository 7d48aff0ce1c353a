/* What the bound on the deviation needs to know of the clusters. */
#ifndef TAUT_BOUND_DEVIATION_STATS_H
#define TAUT_BOUND_DEVIATION_STATS_H
#include "bound/deviation.h"

typedef struct {
    double *room; /* one block; the others are inside it */
    double *count, *kbar, *vbar;
    double *r, *big;         /* upper bounds of max|k - kbar| and max|v - vbar| */
    double *lam, *cop;       /* upper bounds of the largest eigenvalue of the keys' covariance and of ||C|| */
    double *rho;             /* min(lam/r^2, 1) at least */
    double *wrong;           /* audit: |C - computed C| at most */
    double *cov, *cross;     /* audit: (M, dk, dk) second moments about the computed mean, (M, dk, dv) */
    double most_k, most_v;   /* upper bounds of max|k|, max|v| */
    double most_r, most_big; /* the largest r and R */
    double spread;           /* of max|v_i - c|, c the mean of all values */
    double between;          /* of max_j |vbar_j - their mean| */
    int64_t keys;            /* that are there */
    bool finite;
} taut_deviation_stats;

taut_status taut_deviation_stats_make(taut_deviation_stats *, const taut_deviation *) TAUT_MUST_USE;
void taut_deviation_stats_free(taut_deviation_stats *);

/* Row r of a table as doubles. */
void taut_table_row(double *y, const taut_table *t, int64_t r, int64_t d);

/* Row r of `rows`, if there is one, will be wanted soon: rows of a head are not side by side, and a processor that fetches ahead
 * does not guess where the next one is.  Always in its caller: gcc takes it for a function without an effect. */
enum { DEVIATION_AHEAD = 4 }; /* rows, by measurement */
__attribute__((always_inline)) static inline void deviation_fetch(const taut_table *t, int64_t r, int64_t rows,
                                                                  int64_t d)
{
    if (r >= rows) return;
    const char *p = (const char *)t->data + (size_t)(r * t->stride) * t->elem;
    for (size_t i = 0; i < (size_t)d * t->elem; i += 64) __builtin_prefetch(p + i);
}

/* More than products that underflowed in a mean of products or of squares can have lost. */
#define DEVIATION_TINY 1e-300

/* The root of a computed sum of d squares, rounded up; squares that underflow are made up for. */
static inline double deviation_root(double sum, int64_t d)
{
    return sqrt(sum) * (1 + (double)(d + 8) * 0x1p-52) + 1e-150 * (double)d;
}

/* At least |x|. */
double deviation_norm(const double *x, int64_t d);

static inline double deviation_gamma(int64_t n) { return (double)n * 0x1p-53 / (1 - (double)n * 0x1p-53); }
#endif
