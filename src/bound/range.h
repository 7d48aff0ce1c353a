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

static inline double range_max_alone(const double *w, int64_t len)
{
    double most = 0;
    int bad = 0;
    for (int64_t i = 0; i < len; i++) {
        const double a = fabs(w[i]);
        bad |= !(a <= DBL_MAX);
        most = a > most ? a : most;
    }
    return bad ? INFINITY : most;
}

/* max |w_i|, 0 for nothing, +inf as soon as one entry is NaN or infinite.  A parallel region costs a call of the system even
 * if its `if` says no, and most of what comes here is short. */
static inline double range_max(const double *w, int64_t len)
{
    enum { PIECE = RANGE_SHARED / 8 };
    double most = 0;
    if (len < RANGE_SHARED) return range_max_alone(w, len);
#pragma omp parallel for reduction(max : most)
    for (int64_t at = 0; at < len; at += PIECE) {
        const double here = range_max_alone(w + at, len - at < PIECE ? len - at : PIECE);
        most = here > most ? here : most;
    }
    return most;
}

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
