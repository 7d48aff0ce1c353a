/* Early stopping: the weights of the evaluation with the least loss are kept, and after train.patience evaluations that
 * were not better training ends.  What a run leaves as its model is the best of it. */
#ifndef TAUT_TRAIN_BEST_H
#define TAUT_TRAIN_BEST_H
#include "train/trainer.h"

void taut_best_see(taut_trainer *, double loss); /* one evaluation; nothing without patience */
bool taut_best_over(const taut_trainer *);       /* waited long enough */

/* The best weights in the place of those that train; with `back` these again.  Between the two the gradients are lost. */
void taut_best_show(taut_trainer *, bool back);
#endif
