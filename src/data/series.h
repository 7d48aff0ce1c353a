/* A multivariate time series: a table of numbers with dates, standardised, in three parts, and as a source of windows.
 *
 * A window is what a forecaster reads and is asked:  `seq` rows for the encoder; `label` rows that the decoder knows and
 * `ahead` rows of zeros that it is to fill; and the `ahead` rows themselves.  Every row comes with its time features. */
#ifndef TAUT_DATA_SERIES_H
#define TAUT_DATA_SERIES_H
#include <stdbool.h>

#include "data/source.h"

enum { TAUT_MARKS = 5 }; /* time features, at most */

typedef struct {
    int64_t rows, cols, marks;
    char **name;              /* of each column */
    double *value;            /* (rows, cols), standardised by the training rows' means and standard deviations */
    double *mark;             /* (rows, marks) in [-1/2, 1/2]: hour, weekday, day, day of the year; minute if finer */
    double *mean, *std;       /* of each column */
    int64_t begin[3], end[3]; /* rows of each split, without what windows may look back at */
    int64_t whole; /* validation and test have as many windows as make whole batches of this size, if they make one */
} taut_series;

/* informer2020: the ETT files cut into 12, 4 and 4 months, other files 7 : 1 : 2; the windows that do not fill a batch of 32
 * are left out of validation and test.  full: 7 : 1 : 2 of any file, all windows. */
typedef struct {
    const char *source; /* "waves" is built in; else a CSV file found as data, .gz or not */
    int64_t length;     /* rows of waves */
    uint64_t seed;
    const char *target; /* that column alone (Informer's mode S); NULL: all of them (mode M) */
    bool full;          /* not informer2020 */
} taut_series_spec;

taut_status taut_series_open(taut_series **out, const taut_series_spec *) TAUT_MUST_USE;
void taut_series_free(taut_series *);

/* series_csv.c: a strict reader.  The first line names the columns, the first of them is the date (2016-07-01 00:00:00 or
 * 7/1/2016 0:00, month first; seconds or not), dates rise, every row has every column and every cell a finite number; else one
 * line names what is wrong where.  Fills rows, cols, marks, name, value and mark. */
taut_status taut_series_parse(taut_series *, char *text, const char *path) TAUT_MUST_USE;
taut_status taut_series_alloc(taut_series *, int64_t rows, int64_t cols, int64_t marks) TAUT_MUST_USE;
void taut_series_mark(double *mark, int64_t marks, int64_t seconds); /* since 1970, as a calendar shows them */

/* source_series.c: token i of an example is a row and its time features; first the decoder's label + ahead rows, then the
 * encoder's seq rows.  Owns the series from the call on, even if it fails. */
taut_status taut_source_series(taut_source **out, taut_series *, int64_t seq, int64_t label,
                               int64_t ahead) TAUT_MUST_USE;
#endif
