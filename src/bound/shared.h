/* Norms that the ranks of one proof share out.  A norm is a function of its matrix, so it does not matter who computes it: the
 * proof is gone through once to see which matrices there are, each rank proving its own and taking a coarse bound for the
 * others'; all tell each other; and the proof itself, gone through again, finds every norm there. */
#ifndef TAUT_BOUND_SHARED_H
#define TAUT_BOUND_SHARED_H
#include "base/ranks.h"
#include "bound/up.h"

/* From here on until told: coarse for others' matrices.  A matrix is known again by two hashes under keys that are drawn here:
 * any two of the same shape with n numbers are taken for each other with probability (1.1 n / 2^61)^2 at most. */
taut_status taut_norms_scout(const taut_ranks *) TAUT_MUST_USE;
taut_status taut_norms_tell(const taut_ranks *) TAUT_MUST_USE; /* all ranks together */
void taut_norms_forget(void);

/* The norm of w by `prove`, or as it was found before. */
taut_up up_norm_shared(const double *w, int64_t rows, int64_t cols, taut_up (*prove)(const double *, int64_t, int64_t));
#endif
