/* The proved rescale: a matrix of floats whose certified norm is at most a limit. */
#ifndef TAUT_TRAIN_CONSTRAIN_RESCALE_H
#define TAUT_TRAIN_CONSTRAIN_RESCALE_H
#include "base/float32.h"
#include "bound/norm.h"

/* w (floats held as doubles) is multiplied by some c <= 1 and rounded to floats until up_norm(w) <= limit, in
 * l2. Returns that norm; +inf, and w is not changed, when w is not finite.  A limit in the range where floats
 * lose their precision (below 2^-99 sqrt(rows cols)) makes w zero. */
taut_up up_rescale(double *w, int64_t rows, int64_t cols, double limit);
#endif
