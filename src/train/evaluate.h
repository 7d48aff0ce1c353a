/* Loss and accuracy on a split: on all of it, or on a few of its examples (windows of a text, images) spread evenly
 * over it. */
#ifndef TAUT_TRAIN_EVALUATE_H
#define TAUT_TRAIN_EVALUATE_H
#include "train/batch.h"

typedef struct {
    double loss,
        accuracy; /* means over the targets; NaN when there is none.  Of a forecast: the mean squared error, NaN, */
    double mae;   /* and the mean absolute error; NaN for all others */
    int64_t targets, windows;
} taut_evaluation;

/* At most `windows` windows, 0 for the whole split, `rows` at a time (the pass and the batch hold that many).
 */
taut_status taut_evaluate(taut_evaluation *out, taut_pass *, taut_batch *, taut_split, int64_t windows,
                          int64_t rows) TAUT_MUST_USE;
#endif
