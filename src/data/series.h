/* A multivariate time series: a table of numbers with dates, standardised, in three parts, and as a source of windows.
 *
 * A window is what a forecaster reads and is asked:  `seq` rows for the encoder; `label` rows that the decoder knows and
 * `ahead` rows of zeros that it is to fill; and the `ahead` rows themselves.  Every row comes with its time features. */
#ifndef TAUT_DATA_SERIES_H
#define TAUT_DATA_SERIES_H
#include <stdbool.h>

#include "data/date.h"
#include "data/series_spec.h"
#include "data/source.h"

enum { TAUT_MARKS = 5 }; /* time features, at most: one fewer without minutes */

typedef struct {
    int64_t rows, cols, marks;
    char **name;              /* of each column */
    double *value;            /* (rows, cols), standardised */
    double *mark;             /* (rows, marks): date.h; the minute is one where rows are less than an hour apart */
    double *mean, *std;       /* of each column: the training rows', or those that were given */
    int64_t targets, *target; /* the columns that are forecast */
    taut_stride stride;       /* from a row to the next */
    taut_date last;           /* of the last row */
    int64_t *line;            /* (rows) where each stands in its file; NULL: of no file, or settled */
    int64_t empty, gaps, filled, repeated; /* cells without a value; gaps in time, rows put there; rows left out */
    int64_t begin[3], end[3];              /* rows of each split, without what windows may look back at */
    int64_t whole; /* validation and test have as many windows as make whole batches of this size, if they make one */
} taut_series;

/* informer2020: the ETT files cut into 12, 4 and 4 months, other files 7 : 1 : 2; the windows that do not fill a batch of 32
 * are left out of validation and test. */
taut_status taut_series_open(taut_series **out, const taut_series_spec *) TAUT_MUST_USE;
void taut_series_free(taut_series *);
enum { TAUT_SERIES_NOTE = 256 };
/* What was done to the rows by the spec's rules, in one line; "": nothing. */
const char *taut_series_note(char text[TAUT_SERIES_NOTE], const taut_series *, const taut_series_spec *);

/* series_csv.c: a strict reader of a table (table.h).  The first column whose first cell is a date has the dates (date.h), which
 * rise (rows of the same time by the spec's rule); every cell of the columns that are read is a finite number, with a decimal
 * comma where semicolons are between the cells and no number has a point; else one line names what is wrong where.  Fills all
 * but mean, std, target and the splits. */
taut_status taut_series_parse(taut_series *, char *text, const taut_series_spec *) TAUT_MUST_USE;
taut_status taut_series_alloc(taut_series *, int64_t rows, int64_t cols) TAUT_MUST_USE;
/* series_time.c: finds the stride of the dates `when` (rows), treats gaps and empty cells (NaN) as the spec says, and makes the
 * marks; *when may be another array then, of the caller's as before. */
taut_status taut_series_settle(taut_series *, taut_date **when, const taut_series_spec *) TAUT_MUST_USE;

/* source_series.c: token i of an example is a row and its time features; first the decoder's label + ahead rows, then the
 * encoder's seq rows.  Owns the series from the call on, even if it fails. */
taut_status taut_source_series(taut_source **out, taut_series *, int64_t seq, int64_t label,
                               int64_t ahead) TAUT_MUST_USE;
const taut_series *taut_source_series_of(const taut_source *); /* of one that the call above made */
/* The window that asks about the rows behind the last one: x (label + ahead + seq, cols + marks), as an example above.  The
 * series has at least seq rows. */
void taut_series_window(double *x, const taut_series *, int64_t seq, int64_t label, int64_t ahead);
#endif
