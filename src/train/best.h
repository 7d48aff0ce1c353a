/* Early stopping: the weights of the evaluation with the least loss are kept, and after train.patience evaluations that
 * were not better training ends.  What a run leaves as its model is the best of it: so what is evaluated and compared is
 * what a file would hold, and under a target that is not the weights that train but those shrunk to it.  Nothing here
 * does anything without patience. */
#ifndef TAUT_TRAIN_BEST_H
#define TAUT_TRAIN_BEST_H
#include "train/trainer.h"

void taut_best_see(taut_trainer *, double loss); /* one evaluation, of the weights that are in place */
bool taut_best_over(const taut_trainer *);       /* waited long enough */

/* In the place of the weights that train, until taut_best_back: what a file would hold of them, or the best there was
 * (before the first evaluation: themselves).  The gradients are lost. */
taut_status taut_best_try(taut_trainer *) TAUT_MUST_USE;
void taut_best_show(taut_trainer *);
void taut_best_back(taut_trainer *);
#endif
