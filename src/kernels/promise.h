/* WHAT THE TABLES PROMISE: how far the slots that proofs about the program that runs (module/strays.h) speak of may be
 * from their definitions.  The kernels' tests hold the tables to these same functions.  A promise counts the roundings
 * that could all go one way; what tests see is below it, of attention eight times.  All are relative to the sum of
 * the sizes of what is added up, entry by entry, or to the result, as their lines say.  Beside that, PROMISE_LEAST a
 * number that is added stands for what underflows. */
#ifndef TAUT_KERNELS_PROMISE_H
#define TAUT_KERNELS_PROMISE_H
#include "kernels/kernels.h"

typedef struct {
    const char *table;
    double unit; /* an element is rounded by at most this, relative to it */
    double sums; /* so is a partial sum of a product of matrices; smaller than unit: its result is rounded once more */
    bool device; /* sums are cut for tensor cores, and exponentials are the chip's own */
} taut_promise;

/* Of a table by its name, which need not be on this machine; a table of doubles is judged by ref, whose roundings are as large
 * as its own: four count as one.  NULL: no such table. */
const taut_promise *taut_promise_find(const char *table);

#define PROMISE_LEAST 0x1p-126

/* k roundings, relative: k u / (1 - k u), from above; +inf where that is not below 1. */
static inline double promise_roundings(double unit, double k)
{
    const double ku = k * unit * (1 + 0x1p-50);
    return ku < 0.5 ? ku / (1 - ku) * (1 + 0x1p-50) : (double)INFINITY;
}

/* gemm and affine: of |alpha| |op A| |op B| + |beta C| + |b|, sums of k products; and of the result beside it */
static inline double promise_product(const taut_promise *p, int64_t k)
{
    return promise_roundings(p->sums, (double)k + 8);
}
static inline double promise_product_result(const taut_promise *p)
{
    return p->sums < p->unit ? promise_roundings(p->unit, 2) : 0;
}

/* over t keys.  distance_softmax: of p;  distance_mix: of sum |p| |v| */
static inline double promise_distance_softmax(const taut_promise *p, int64_t t)
{
    return promise_roundings(p->unit, p->unit < 0x1p-40 ? 8 + (double)t / 512 : 2);
}
static inline double promise_distance_mix(const taut_promise *p, int64_t t)
{
    return promise_roundings(p->sums, (double)t + (p->device ? 32 : 8)) + promise_product_result(p);
}

/* axpby: of |a x| + |b y|; a copy, a = 1 and b = 0, is exact */
static inline double promise_axpby(const taut_promise *p) { return promise_roundings(p->unit, 3); }

/* blend: of the sum of |a x| over its terms */
static inline double promise_blend(const taut_promise *p, int terms) { return promise_roundings(p->unit, terms + 1); }

/* add_rows, mul_rows: of the result;  pixels: of |scale x| + |shift| */
static inline double promise_rows(const taut_promise *p) { return promise_roundings(p->unit, 2); }

/* mean_tokens: of the mean of |x|;  lengths: of the length; over t tokens, added up in double */
static inline double promise_tokens(const taut_promise *p, int64_t t)
{
    return promise_rows(p) + promise_roundings(0x1p-51, (double)t + 4);
}

/* normalise: of the result, and promise_normalise_sums of max |x| rstd (1 + |z|) beside it; centre_rows: of the result, and
 * promise_normalise_sums of max |x| */
static inline double promise_normalise(const taut_promise *p) { return promise_rows(p); }
static inline double promise_normalise_sums(int64_t d) { return promise_roundings(0x1p-52, (double)d + 4); }

/* pointwise: of |f(x)| */
static inline double promise_curve(const taut_promise *p, taut_curve f, double x)
{
    const double w = 1.6 * fabs(x + 0.044715 * x * x * x);
    switch (f) {
    case TAUT_GELU:
        return promise_roundings(p->unit, (p->device ? 12 : 10) + fmin(0.5 * x * x, 100));
    case TAUT_GELU_TANH:
        return promise_roundings(p->unit, 8 + 6 * fmin(w, 100));
    case TAUT_RELU:
    case TAUT_ABS:
        return 0;
    case TAUT_SILU:
        return promise_roundings(p->unit, p->device ? 8 : 6);
    case TAUT_TANH:
        return promise_roundings(p->unit, 5);
    case TAUT_ELU:
        return promise_roundings(p->unit, 10);
    }
    return (double)INFINITY;
}

/* dominance: of r, where n rows have |l| at most l;  lift: the last entry of k', of |q|^2 / 2 */
static inline double promise_dominance(const taut_promise *p, int64_t n, double l)
{
    return promise_rows(p) + promise_roundings(0x1p-52, (double)n + 8 + 2 * l);
}
static inline double promise_lift(const taut_promise *p, int64_t d)
{
    return promise_roundings(p->unit, (double)d + 1);
}

/* rope: of |x_i| + |its twin|, at position t at most */
static inline double promise_rope(const taut_promise *p, int64_t t)
{
    return promise_roundings(p->unit, 3) + (double)t * 0x1p-50;
}

/* attention.  A logit: of scale |q| |k|, and of what alibi takes away;  o: 2 times the logits' error and
 * promise_attention_mean, both of the largest |v| of the column (of the head on a device, where |v| is below 2^30) */
static inline double promise_logit(const taut_promise *p, int64_t dh)
{
    return promise_roundings(p->unit, (double)dh + (p->device ? 40 : 4));
}
static inline double promise_alibi(const taut_promise *p) { return promise_roundings(p->unit, p->device ? 4 : 3); }
static inline double promise_attention_mean(const taut_promise *p, int64_t tk)
{
    const double t = (double)tk, host = t + fmin(t, 256) + t / 16 + 2 * log(t + 1) + 32;
    return promise_roundings(p->unit, p->device ? 600 + t / 8 : host);
}
/* Beside the logits' error, lse over tk keys, no larger than l: in absolute numbers */
static inline double promise_lse(const taut_promise *p, int64_t tk, double l)
{
    return p->unit * (300 + (double)tk / 64 + (p->device ? 2 : 1) * l) * (1 + 0x1p-50);
}
#endif
