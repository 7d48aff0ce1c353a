/* A device for the large products of a proof.  Without one, or where it fails, the host makes them; whoever chose it
 * asks afterwards whether it failed. */
#ifndef TAUT_BOUND_FAR_H
#define TAUT_BOUND_FAR_H
#include "base/far.h"
#include "base/status.h"
#include "bound/up.h"

/* Tries it first: TAUT_DEVICE, and the host goes on alone, if it does not compute as base/far.h says.  NULL: the host alone. */
taut_status taut_far_use(const taut_far *) TAUT_MUST_USE;

/* C (m, n) = op(A) op(B); false: there is no device, it is not worth the way there, or it failed. */
bool taut_far_gemm(double *c, const double *a, bool ta, const double *b, bool tb, int64_t m, int64_t n, int64_t k);

/* lam_max(fl(W^T W)) on the smaller side from above, entries within range (range.h); +inf: as above. */
taut_up up_top_far(const double *w, int64_t rows, int64_t cols);
#endif
