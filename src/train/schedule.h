/* The learning rate as a factor of the recipe's, for step = 0, 1, ..., steps-1. */
#ifndef TAUT_TRAIN_SCHEDULE_H
#define TAUT_TRAIN_SCHEDULE_H
#include "train/recipe.h"

double taut_schedule(const taut_train_spec *, int64_t step);
#endif
