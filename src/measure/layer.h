/* The sandwich around one attention layer at one input: a lower bound with its witness, a proved upper bound, and what
 * papers print.  Which map is meant (bare heads, with output projection, with residual, with norm) is part of every answer. */
#ifndef TAUT_MEASURE_LAYER_H
#define TAUT_MEASURE_LAYER_H
#include "bound/local.h"
#include "measure/published.h"
#include "measure/slope.h"
#include "model/capture.h"

typedef struct {
    taut_slope_options slope;
    bool heads;     /* each head by itself, too */
    bool published; /* and the published bounds for each head */
    bool exact;     /* and its norm proved from its Jacobian, where up_attention_exact can */
    double ball;    /* both sides on this radius around every token, as well as at the input */
} taut_layer_options;

typedef struct {
    double lower, upper, exact;               /* of the bare head; exact: proved, +inf where not asked for; lower: NaN
                                               * where it is not searched (ALiBi) */
    taut_published published[TAUT_PUBLISHED]; /* if asked for; NaN where a formula does not apply */
} taut_head_measure;

typedef struct {
    int layer;
    taut_map map;
    int64_t tokens;
    double radius, longest; /* of the tokens that attention reads: root mean square, largest */
    taut_slope slope;       /* as the model's kernels found it */
    double lower;           /* the slope along that direction in double: witnessed */
    double probable;        /* PROBABILISTIC: below this but for 1 in 10^9 */
    taut_local_bound parts; /* of the attention inside (bare: without W_O) */
    taut_up upper, ball;    /* proved for the map, at the input and on the ball; +inf: none */
    double ball_lower;      /* the steepest pair found in the ball, in double, or lower, which the ball has too */
    int64_t heads;
    taut_head_measure *head; /* NULL unless asked for */
} taut_layer_measure;

/* The first example that the capture has run; `map` is a map of capture.h. */
taut_status taut_layer_measure_at(taut_layer_measure *, const taut_capture *, int layer, taut_map,
                                  const taut_layer_options *) TAUT_MUST_USE;
void taut_layer_measure_free(taut_layer_measure *);
#endif
