/* Keeps a convex potential layer 1-Lipschitz: s >= ||W||^2 (module/potential.c), the projection after a step. */
#ifndef TAUT_TRAIN_CONSTRAIN_POTENTIAL_H
#define TAUT_TRAIN_CONSTRAIN_POTENTIAL_H
#include "model/model.h"

int64_t taut_scale_work(const taut_model *); /* doubles; 0: no layer of this model needs it */

/* Every s below ||W||^2 is raised to it and 2^-20 more: by an estimate of the norm, or by a proved one, after which the
 * layer's bound is exactly 1.  A matrix that is not finite is left alone. */
void taut_scale_raise(taut_model *, double *work, bool proved);
#endif
