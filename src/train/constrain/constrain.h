/* The cheap constraint of a recipe, applied to a whole model after a step. */
#ifndef TAUT_TRAIN_CONSTRAIN_CONSTRAIN_H
#define TAUT_TRAIN_CONSTRAIN_CONSTRAIN_H
#include "train/owned.h"
#include "train/recipe.h"

typedef struct {
    taut_model *m;
    const taut_constrain_spec *spec;
    const taut_train_spec *train;
    taut_owned owned;        /* what taut_constrainer_apply holds: all, until a rank is one of several */
    double *share;           /* of the learning rate, one a weight */
    taut_real *start, *work; /* of power iterations; for the largest matrix */
    int64_t room;
    double *raise;     /* work of taut_scale_raise; NULL: no layer needs it */
    taut_real *before; /* cayley: all weights before a step, and work for the largest matrix; else NULL */
    double *turn;
} taut_constrainer;

int64_t taut_constrainer_len(const taut_model *, const taut_constrain_spec *); /* elements it will own */
taut_status taut_constrainer_create(taut_constrainer **out, taut_model *, const taut_recipe *) TAUT_MUST_USE;
void taut_constrainer_free(taut_constrainer *);

/* Before a step: cayley looks back at these weights. */
void taut_constrainer_mark(const taut_constrainer *);
/* After step number `step` (0, 1, ...), which had learning rate `lr` times each weight's share: the weights that are owned. */
void taut_constrainer_apply(const taut_constrainer *, int64_t step, double lr);
/* After that, when all weights are those of the step: scales that hang on more than one of them. */
void taut_constrainer_raise(const taut_constrainer *);
/* Weights that no step has led to, a mean of others: back to what polar and unit rows keep.  Other constraints act as after a
 * step of length 0. */
void taut_constrainer_settle(const taut_constrainer *);
#endif
