/* SGD, AdamW, Muon: one step over every weight of a model.  State lives in slabs laid out like the weights, of
 * those weights that this rank owns. */
#ifndef TAUT_TRAIN_OPTIMISER_H
#define TAUT_TRAIN_OPTIMISER_H
#include "train/owned.h"
#include "train/recipe.h"

typedef struct {
    taut_model *m;
    const taut_train_spec *spec;
    taut_ranks ranks;
    taut_owned owned;
    taut_real *first, *second; /* momentum; Adam's squares (NULL for SGD); both of what is owned */
    taut_real *best;           /* the weights of the best evaluation (train/best.h); NULL without patience */
    taut_real *work;           /* Muon: updates and their Gram matrices */
    taut_real *average;        /* a running mean of the weights (train/average.h); NULL: none */
    bool polar;                /* matrices are orthogonal: Muon's steps lie in their tangent space and are lr long */
    double head;               /* the norm of head.weight where it fills a target; 0: a matrix like any other */
} taut_optimiser;

int64_t taut_optimiser_len(const taut_model *, const taut_train_spec *); /* elements that one rank will own */
taut_status taut_optimiser_create(taut_optimiser **out, taut_model *, const taut_train_spec *,
                                  const taut_ranks *) TAUT_MUST_USE;
void taut_optimiser_free(taut_optimiser *);

/* Step number `step` (0, 1, ...) of the weights that are owned, from their gradients, learning rates times `factor`. */
void taut_optimiser_step(taut_optimiser *, int64_t step, double factor);
#endif
