/* The largest eigenvalue of a symmetric, positive semidefinite matrix, of which only the upper triangle (row-major) is
 * read.  An estimate: no promise; NaN when memory is out. */
#ifndef TAUT_BOUND_LANCZOS_H
#define TAUT_BOUND_LANCZOS_H
#include <stdint.h>

double est_top_symmetric(const double *g, int64_t n);

enum { LANCZOS_STEPS = 128 };
/* The same from what k <= LANCZOS_STEPS steps left: the top of the tridiagonal matrix; and the vector that they begin with. */
double est_top_tridiagonal(const double *alpha, const double *beta, int k);
void est_start(double *v, int64_t n);
#endif
