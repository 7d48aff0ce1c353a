/* What F1 and F2 share: from W to its Gram matrix, and from a bound of that back to W. */
#ifndef TAUT_BOUND_SQUARE_H
#define TAUT_BOUND_SQUARE_H
#include "bound/norm.h"

/* lam_max of G = fl(W^T W), on the smaller side of W, from above; entries of W are within range (range.h). */
typedef taut_up up_top_fn(const double *w, int64_t rows, int64_t cols);
taut_up up_norm_from_top(const double *w, int64_t rows, int64_t cols, up_top_fn *);

/* The same of the symmetric n x n matrix g, of which the upper triangle is set, and may be spoilt; and that of W by it. */
typedef taut_up up_top_symmetric_fn(double *g, int64_t n);
taut_up up_top_of_gram(const double *w, int64_t rows, int64_t cols, up_top_symmetric_fn *);
#endif
