/* Dates of a series' rows: read, continued at the series' step, printed, and as time features. */
#ifndef TAUT_DATA_DATE_H
#define TAUT_DATA_DATE_H
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t seconds; /* since 1970, as calendar and clock of the place show them */
    int64_t zone;    /* seconds ahead of UTC; 0 where nobody said */
    bool zoned;      /* somebody said */
} taut_date;

typedef enum { TAUT_SECONDS, TAUT_MONTHS, TAUT_MONTH_ENDS } taut_time_unit;

/* From one row to the next: so many seconds, or months on the same day of each, or months from last day to last day. */
typedef struct {
    taut_time_unit unit;
    int64_t count;
} taut_stride;

enum { TAUT_DATE_ROOM = 48 };

/* 2016-07-01, 7/1/2016 (month first) or 1.7.2016 (day first); alone, or behind a blank or a T with hour and minute, or with
 * seconds too (a fraction of them may be all zeros); behind the time Z or a zone, +01:00, +0100 or +01.  All of the text, and a
 * day that the calendar has. */
bool taut_date_parse(taut_date *, const char *text);
const char *taut_date_print(char dst[TAUT_DATE_ROOM],
                            taut_date); /* 2016-07-01 00:00:00, and +01:00 where it has a zone */
int64_t taut_date_instant(taut_date);   /* UTC */

/* How many units the second date is behind the first; 0: not that unit, or not later. */
int64_t taut_date_apart(taut_date, taut_date, taut_time_unit);
taut_date taut_date_later(taut_date, taut_stride, int64_t count);     /* in the same zone */
const char *taut_stride_print(char dst[TAUT_DATE_ROOM], taut_stride); /* "3600 s", "1 month", "3 month ends" */
bool taut_stride_parse(taut_stride *, const char *text);              /* as printed */

/* Time features in [-1/2, 1/2]: hour, weekday, day, day of the year; where marks > 4 the minute. */
void taut_date_marks(double *mark, int64_t marks, taut_date);
#endif
