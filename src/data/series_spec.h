/* What a series is read from, and how. */
#ifndef TAUT_DATA_SERIES_SPEC_H
#define TAUT_DATA_SERIES_SPEC_H
#include <stdbool.h>
#include <stdint.h>

typedef enum { TAUT_MISSING_REFUSE, TAUT_MISSING_HOLD, TAUT_MISSING_INTERPOLATE } taut_missing;
typedef enum { TAUT_GAPS_REFUSE, TAUT_GAPS_JOIN, TAUT_GAPS_FILL } taut_gaps;
typedef enum { TAUT_REPEATS_REFUSE, TAUT_REPEATS_FIRST, TAUT_REPEATS_LAST } taut_repeats;

/* The keys of [data] in a recipe.  NULL and 0 are the defaults.  A stored model gives columns,
 * means, deviations and step, so that a table is read as the model learned to read: by name, on the same scale. */
typedef struct {
    const char *source; /* "waves" is built in; a known name; else a CSV file found as data, .gz or not */
    int64_t length;     /* of waves */
    uint64_t seed;
    bool full;          /* 7 : 1 : 2 of any file, all windows; not informer2020 */
    int64_t newest;     /* only so many rows at the end of a file, and no splits; 0: all */
    bool keep_constant; /* a column that is constant in the training rows gets deviation 1, and is not refused */
    taut_missing
        missing;    /* empty cells: refused; the value before (in front: the one behind); a line between the two */
    taut_gaps gaps; /* times that are missing: refused; rows follow each other all the same; rows of empty cells */
    taut_repeats repeats;           /* rows of the same time: refused; the first of them is kept; the last */
    const char *columns;            /* names (names.h) of what is read, in this order; NULL: all */
    const char *targets;            /* names of those that are forecast; NULL: all that are read */
    const char *means, *deviations; /* numbers, one per column; NULL: of the training rows */
    const char *step;               /* as taut_stride_print prints it; another one is refused.  NULL: any */
} taut_series_spec;
#endif
