/* Centres for points: an estimate that chooses what is then proved or learned, never a bound itself. */
#ifndef TAUT_BOUND_CENTRES_H
#define TAUT_BOUND_CENTRES_H
#include <stdint.h>

#include "base/status.h"

/* m centres (m, d) for n points (n, d): greedy k-center (the first point, then always the one farthest from all centres so
 * far), then `steps` of Lloyd's iteration.  With fewer points than centres some points serve again. */
taut_status est_centres(double *centre, const double *x, int64_t n, int64_t d, int64_t m, int steps) TAUT_MUST_USE;
#endif
