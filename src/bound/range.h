/* The range of a matrix's entries, and scaling by powers of two so that squares neither overflow nor
 * underflow in a way that matters. */
#ifndef TAUT_BOUND_RANGE_H
#define TAUT_BOUND_RANGE_H
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { RANGE_SHARED = 1 << 17 }; /* from so many numbers on, threads share what is done to each of them */

/* max |w_i|, 0 for nothing, +inf as soon as one entry is NaN or infinite. */
double range_max(const double *w, int64_t len);

/* 0 when the largest entry is within 2^-200 .. 2^200, otherwise the e that brings it to [1/2, 1) as
 * w 2^-e.  Inside that range ||W||^2 >= 2^-400, and what underflow can do to sums of products
 * (2^-1075 each, times at most 2^200 sizes) is far below RANGE_LOST of it. */
static inline int range_shift(double most)
{
    int e = 0;
    if (most >= 0x1p-200 && most <= 0x1p200) return 0;
    (void)frexp(most, &e);
    return e;
}
#define RANGE_LOST 0x1p-800

/* w 2^-e, each entry right to 2^-1075.  NULL when memory is out. */
static inline double *range_copy(const double *w, int64_t len, int e)
{
    double *c = taut_malloc((size_t)len * sizeof *c);
    for (int64_t i = 0; c && i < len; i++) c[i] = ldexp(w[i], -e);
    return c;
}
#endif
