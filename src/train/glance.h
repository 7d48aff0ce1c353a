/* A glance at a model in training: what its bound is about, as it shows on some validation examples.  Estimates from below. */
#ifndef TAUT_TRAIN_GLANCE_H
#define TAUT_TRAIN_GLANCE_H
#include "train/batch.h"
#include "train/constrain/spec.h"

typedef struct {
    double activation; /* the largest |entry| that any part of the network reads or answers */
    double slope;      /* the largest |f(x) - f(y)| / |x - y| over pairs of examples, in the recipe's norm and units */
} taut_glance;

/* Runs at most eight examples, spread over the split, through the pass. */
taut_status taut_glance_at(taut_glance *, taut_pass *, taut_batch *, taut_split,
                           const taut_constrain_spec *) TAUT_MUST_USE;
#endif
