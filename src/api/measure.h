/* A measurement that was asked for, its options looked at. */
#ifndef TAUT_API_MEASURE_H
#define TAUT_API_MEASURE_H
#include <cjson/cJSON.h>

#include "api/net.h"
#include "measure/sheet.h"

typedef struct {
    const taut_measure_options *o;
    const char *model, *source; /* as they were named */
    taut_net *net;
    taut_map map;
    taut_slope_options slope;
} taut_measuring;

/* A whole number of the options, which must be from lo to hi. */
taut_status taut_measure_range(const char *name, int64_t value, int64_t lo, int64_t hi) TAUT_MUST_USE;
taut_status taut_measure_told(const taut_measuring *, double done) TAUT_MUST_USE; /* TAUT_BAD_CALL: stop */

/* measure_layers.c, measure_lengths.c */
taut_status taut_measure_layers(cJSON **, const taut_measuring *) TAUT_MUST_USE;
taut_status taut_measure_lengths(cJSON **, const taut_measuring *) TAUT_MUST_USE;
#endif
