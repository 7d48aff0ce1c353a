/* Attention maps: whom each token listens to, in double from the float weights.
 *     softmax attention       P_ij = softmax over the keys j that i sees of scale q_i.k_j + alibi
 *     attention by position   q_ij, without the head's constant
 * Rows sum to 1.  Other kinds of attention have no such matrix and are passed over, as are those where queries and keys are
 * different tokens. */
#ifndef TAUT_MEASURE_MAPS_H
#define TAUT_MEASURE_MAPS_H
#include "model/pass.h"

typedef struct {
    int layers;
    int64_t heads, tokens; /* of the first layer that has a map; layers of other sizes are passed over */
    double *weight;        /* (layers, heads, tokens, tokens) */
} taut_maps;

/* Of the first example that the pass has run.  No layer has a map: layers = 0. */
taut_status taut_maps_read(taut_maps *, const taut_pass *) TAUT_MUST_USE;
void taut_maps_free(taut_maps *);
#endif
