/* Slopes of one layer against the length of the sequence: on text, and on inputs made to be steep. */
#ifndef TAUT_MEASURE_SCATTER_H
#define TAUT_MEASURE_SCATTER_H
#include "measure/slope.h"
#include "model/capture.h"

typedef struct {
    int64_t n;
    double value, radius; /* radius: root mean square of the tokens that attention reads */
} taut_scatter_point;

typedef struct {
    int64_t first, last, step; /* lengths */
    int64_t samples;           /* sequences of each length, none of which overlap */
    int layer;
    taut_map map; /* adversarial: bare or attention */
    taut_slope_options slope;
    int (*tell)(double done, void *arg); /* or NULL; not 0: stop, which is TAUT_BAD_CALL */
    void *arg;
} taut_scatter_options;

int64_t taut_scatter_count(const taut_scatter_options *, bool adversarial); /* how many points there will be */

/* Refused: lengths that are none, beyond the model's context, or (adversarial, which needs no positions) beyond 16384. */
taut_status taut_scatter_check(const taut_model *, const taut_scatter_options *, bool adversarial) TAUT_MUST_USE;

/* Refused: what the check refuses, a text too short for that many sequences. */
taut_status taut_scatter_text(taut_scatter_point *out, taut_model *, const int32_t *ids, int64_t len,
                              const taut_scatter_options *) TAUT_MUST_USE;

/* Two clusters for one head's logits (adversarial.h), one point a length.  radius > 0: tokens no longer than that; 0: the
 * radius for each n at which the large cluster gives half its weight to the lone token.  castin: the published
 * construction. */
typedef struct {
    int64_t head;
    double radius;
    bool castin;
    uint64_t seed;
} taut_scatter_attack;
taut_status taut_scatter_adversarial(taut_scatter_point *out, double *gap, taut_model *, const taut_scatter_attack *,
                                     const taut_scatter_options *) TAUT_MUST_USE;
#endif
