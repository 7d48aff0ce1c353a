/* Where PLASH's prototypes start: on the keys of a batch. */
#ifndef TAUT_TRAIN_PROTOTYPES_H
#define TAUT_TRAIN_PROTOTYPES_H
#include "model/pass.h"

/* Layer by layer, in the order of the computation: what a layer reads depends on those before it.  `fill` puts the batch
 * through the pass; then every head's prototypes become k-center of its keys, at most 4096 of them, evenly spread, and
 * `steps` of Lloyd. */
taut_status taut_prototypes_settle(taut_pass *, int steps, void (*fill)(taut_pass *, void *arg),
                                   void *arg) TAUT_MUST_USE;
#endif
