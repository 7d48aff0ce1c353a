/* What a training ends with, as in RUN/summary.json. */
#ifndef TAUT_TRAIN_SUMMARY_H
#define TAUT_TRAIN_SUMMARY_H
#include <cjson/cJSON.h>

#include "train/train.h"

cJSON *taut_summary_json(const taut_train_summary *); /* NULL or incomplete when memory is out */
#endif
