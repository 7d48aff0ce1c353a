/* Forecasts as pictures. */
#ifndef TAUT_CLI_PLOT_FORECAST_H
#define TAUT_CLI_PLOT_FORECAST_H
#include "train/batch.h"

/* An HTML page, and an .svg beside it for each column (at most four): what the model read, what came and what it said, for
 * the window in the middle of the split. */
taut_status plot_forecast(const char *path, taut_pass *, taut_batch *, taut_split) TAUT_MUST_USE;
#endif
