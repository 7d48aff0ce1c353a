/* A running mean of the weights, a <- d a + (1 - d) w with d = min(train.average, (1 + step) / (10 + step)): what is
 * evaluated and saved in the place of the weights, once it is back where the constraint keeps them. */
#ifndef TAUT_TRAIN_AVERAGE_H
#define TAUT_TRAIN_AVERAGE_H
#include "train/trainer.h"

void taut_average_step(taut_trainer *); /* after each step */
/* The mean takes the weights' place, until they are put back; the gradients keep them meanwhile. */
void taut_average_show(taut_trainer *);
void taut_average_back(taut_trainer *);
#endif
