/* What F1 and F2 share: from W to its Gram matrix, and from a bound of that back to W. */
#ifndef TAUT_BOUND_SQUARE_H
#define TAUT_BOUND_SQUARE_H
#include "bound/norm.h"

/* lam_max of the symmetric n x n matrix g from above; only g's upper triangle is set, and it may be spoilt.
 */
typedef taut_up (*up_top_fn)(double *g, int64_t n);

taut_up up_norm_from_gram(const double *w, int64_t rows, int64_t cols, up_top_fn top);
#endif
