/* The largest eigenvalue of a symmetric, positive semidefinite matrix, of which only the upper triangle (row-major) is
 * read.  An estimate: no promise; NaN when memory is out. */
#ifndef TAUT_BOUND_LANCZOS_H
#define TAUT_BOUND_LANCZOS_H
#include <stdint.h>

double est_top_symmetric(const double *g, int64_t n);
#endif
