/* The largest |f(x) - f(y)| / |x - y| over pairs in a ball: a lower bound of the Lipschitz constant there, with
 * witnesses. */
#ifndef TAUT_MEASURE_PAIRS_H
#define TAUT_MEASURE_PAIRS_H
#include "measure/probe.h"

typedef struct {
    double radius; /* of the ball around each example, l2 over the example */
    int random;    /* pairs tried at random */
    int steps;     /* of gradient ascent from the best of them */
    uint64_t seed;
} taut_pairs_options;

/* out has one entry an example: the largest ratio; x and y (or NULL) get the pairs.  The probe stands at the centres
 * and is left there. */
taut_status taut_pairs_find(double *out, double *x, double *y, taut_probe *, const double *centre,
                            const taut_pairs_options *) TAUT_MUST_USE;
#endif
