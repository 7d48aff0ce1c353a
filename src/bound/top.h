/* The smallest mu for which a proof of lam_max(G) <= mu + a little goes through, by trying. */
#ifndef TAUT_BOUND_TOP_H
#define TAUT_BOUND_TOP_H
#include "bound/up.h"

/* A proved bound on lam_max(G) from this mu; +inf where it is too small. */
typedef taut_up up_try_fn(const void *self, double mu);

/* G is n x n, theta at most a little above its lam_max. */
taut_up up_top_search(double theta, int64_t n, up_try_fn *, const void *self);
#endif
