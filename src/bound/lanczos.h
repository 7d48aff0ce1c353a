/* The largest eigenvalue of a symmetric, positive semidefinite operator.  An estimate: no promise. */
#ifndef TAUT_BOUND_LANCZOS_H
#define TAUT_BOUND_LANCZOS_H
#include <stdint.h>

typedef struct {
    void (*apply)(const void *self, double *y, const double *x); /* y = A x, both of length n */
    const void *self;
    int64_t n;
} lanczos_operator;

/* NaN when memory is out. */
double est_top(lanczos_operator a);

/* The same for a stored matrix, of which only the upper triangle (row-major) is read. */
double est_top_symmetric(const double *g, int64_t n);
#endif
