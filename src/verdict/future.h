/* What a forecaster says of the rows behind the newest ones, in the series' own units, and how far that can be if the rows which
 * it read are off. */
#ifndef TAUT_VERDICT_FUTURE_H
#define TAUT_VERDICT_FUTURE_H
#include "base/about.h"
#include "bound/up.h"
#include "data/series.h"
#include "verdict/account.h"

typedef struct {
    double noise;       /* how far each row may be off, l2 over its standardised numbers; 0: nobody asked */
    int64_t rows, cols; /* of the forecast: rows ahead, columns that are forecast */
    double *said;       /* (rows, cols), in units, computed in double */
    double *low,
        *high;        /* (rows, cols) proved: what taut says of rows that are off by at most `noise` is between them */
    taut_up *moves;   /* (cols) proved, in units: no further from `said`; +inf: nothing is known */
    taut_about about; /* windows that this holds for: this one is among them */
    char why[TAUT_WHY_ROOM]; /* of +inf */
    char model[65];          /* SHA-256 of the file that this is about */
} taut_future;

/* model: a file of a forecaster that reads such a series, which has at least seq rows.  Given f->noise, fills the rest. */
taut_status taut_future_make(taut_future *f, const char *model, const taut_series *) TAUT_MUST_USE;
void taut_future_free(taut_future *);
#endif
