/* What was measured, as JSON and as a table (CSV). */
#ifndef TAUT_MEASURE_SHEET_H
#define TAUT_MEASURE_SHEET_H
#include <cjson/cJSON.h>

#include "measure/fit.h"
#include "measure/layer.h"
#include "measure/scatter.h"

/* What stands at its head. */
typedef struct {
    const char *model, *source;
    taut_map map;
    double ball;      /* 0: none */
    double tolerance; /* of the search */
} taut_sheet;

cJSON *taut_sheet_layers(const taut_sheet *, const taut_layer_measure *, int count);
taut_status taut_sheet_layers_csv(const char *path, const taut_sheet *, const taut_layer_measure *,
                                  int count) TAUT_MUST_USE;

/* Slopes against the length of the input. */
typedef struct {
    const taut_scatter_point *point;
    int64_t count;
    taut_growth growth;
    int layer;
    bool adversarial;
    double gap; /* adversarial: at radius 1 */
    int64_t head;
} taut_lengths;
cJSON *taut_sheet_lengths(const taut_sheet *, const taut_lengths *);
taut_status taut_sheet_lengths_csv(const char *path, const taut_sheet *, const taut_lengths *) TAUT_MUST_USE;
#endif
