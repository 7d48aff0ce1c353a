/* One forecast, for whoever draws it. */
#ifndef TAUT_TRAIN_FORECAST_H
#define TAUT_TRAIN_FORECAST_H
#include <cjson/cJSON.h>

#include "train/batch.h"

/* Adds `window` and `columns` to the object: of the window in the middle of the split, for at most four columns that are
 * forecast, the rows that the model read, those that came, and what it said, standardised; and their name, mean and deviation. */
taut_status taut_forecast_add(cJSON *, taut_pass *, taut_batch *, taut_split) TAUT_MUST_USE;
#endif
