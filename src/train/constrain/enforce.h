/* Rigorous mode: a copy of the model, in float32 and where proofs are made, that is never above its target. */
#ifndef TAUT_TRAIN_CONSTRAIN_ENFORCE_H
#define TAUT_TRAIN_CONSTRAIN_ENFORCE_H
#include "model/model.h"
#include "train/constrain/spec.h"

typedef struct {
    const taut_constrain_spec *spec;
    taut_model *twin;   /* on ref; its weights are floats held as doubles */
    double *kept;       /* a slab: what the twin's weights are scaled down from */
    double *raise;      /* work of taut_scale_raise; NULL: no layer needs it */
    taut_up proved;     /* the twin's Lipschitz constant in the recipe's norm and units; +inf: not known */
    taut_status failed; /* of the last proof */
    long failures;      /* allocations that had failed before it: base/alloc.h */
} taut_enforcer;

taut_status taut_enforcer_create(taut_enforcer **out, const taut_model *, const taut_constrain_spec *) TAUT_MUST_USE;
void taut_enforcer_free(taut_enforcer *);

/* twin <- the model's weights, rounded to float32 and, where their proved constant is above the target, shrunk until
 * it is not.  The model is not changed; *shrunk says whether the twin differs from it by more than that rounding.
 * TAUT_NOT_FINITE: a weight is not finite; TAUT_BAD_CONFIG: no shrinking helps; TAUT_NO_MEMORY: nobody can say. */
taut_status taut_enforcer_run(taut_enforcer *, const taut_model *, bool *shrunk) TAUT_MUST_USE;

/* fill: multiplies the model's last layer (a matrix of its own, not the token table) by the factor, above or below
 * 1, that brings the proved constant to the target; changes nothing where that constant is 0 or +inf.  What is then
 * written is proved by taut_enforcer_run.  est_enforcer_head: the last layer's norm, the same for any number of
 * threads. */
taut_status taut_enforcer_fill(taut_enforcer *, const taut_model *) TAUT_MUST_USE;
double est_enforcer_head(const taut_enforcer *, const taut_model *);

/* A proved Lipschitz constant of a ref model, embeddings to logits, in the recipe's norm and units. */
taut_status up_model_constant(taut_up *, const taut_model *, const taut_constrain_spec *) TAUT_MUST_USE;
#endif
