/* The spectral norm of a matrix without negative entries, cheaply and proved: O(rows cols) a step. */
#ifndef TAUT_BOUND_POSITIVE_H
#define TAUT_BOUND_POSITIVE_H
#include <stdint.h>

#include "bound/up.h"

/* rows x cols, row-major.  A negative, infinite or NaN entry, or no memory: +inf. */
taut_up up_norm_positive(const double *w, int64_t rows, int64_t cols);
#endif
