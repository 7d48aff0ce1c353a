/* Are the ranks of a training really the same training? */
#ifndef TAUT_TRAIN_TOGETHER_H
#define TAUT_TRAIN_TOGETHER_H
#include "train/trainer.h"

/* After open: program, recipe and data of every rank are those of rank 0.  Data are compared by their vocabulary
 * and every example of the training split and the validation split. */
taut_status taut_together_check(const taut_ranks *, const taut_trainer *) TAUT_MUST_USE;
/* Once rank 0 has the folder: do the others see the same one? */
taut_status taut_together_folder(const taut_ranks *, const char *folder) TAUT_MUST_USE;
/* At the start and with every checkpoint: so are the weights, bit by bit. */
taut_status taut_together_weights(const taut_ranks *, const taut_model *) TAUT_MUST_USE;
#endif
