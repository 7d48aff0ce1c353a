/* The spectral norm of a matrix of doubles: a proved bound, a second opinion, and an estimate.
 * Row-major, rows x cols.  An empty matrix has norm 0; NaN, infinity or no memory answer +inf. */
#ifndef TAUT_BOUND_NORM_H
#define TAUT_BOUND_NORM_H
#include <stdint.h>

#include "bound/up.h"

/* Lanczos finds a candidate, a Cholesky factor proves it: about 1e-10 above the truth, norm.c. */
taut_up up_norm(const double *w, int64_t rows, int64_t cols);

/* Gram iteration, gram.c: shares only matrix multiplication with up_norm.  Looser, about 1e-5. */
taut_up up_norm_gram(const double *w, int64_t rows, int64_t cols);

/* lam_max of a symmetric, positive semidefinite matrix of moderate entries (2^-400 .. 2^400), of which the upper triangle is
 * read, row-major.  What up_norm does with W^T W. */
taut_up up_top_symmetric(double *g, int64_t n);

/* sqrt(sum of squares): the Frobenius norm, or a vector's l2 norm, from above and from below. */
taut_up up_norm_frobenius(const double *w, int64_t len);
taut_lo lo_norm_frobenius(const double *w, int64_t len);

/* The largest singular value as Lanczos sees it, from W x and W^T x alone.  No promise: usually right
 * to 1e-9 and below the truth.  NaN when w is not finite or memory is out. */
double est_norm(const double *w, int64_t rows, int64_t cols);
#endif
