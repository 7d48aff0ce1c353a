/* How something grows: y = c n^b fitted to points, with a confidence interval of b. */
#ifndef TAUT_MEASURE_FIT_H
#define TAUT_MEASURE_FIT_H
#include <stdint.h>

typedef struct {
    double exponent, low, high; /* b, and where it is with probability 0.95 if the residuals of ln y are normal */
    double factor;              /* c */
    int64_t points;             /* used: n > 0, y > 0 and finite */
} taut_growth;

/* All NaN with fewer than two different n; low and high NaN with fewer than three points. */
taut_growth taut_growth_fit(const double *n, const double *y, int64_t count);
#endif
