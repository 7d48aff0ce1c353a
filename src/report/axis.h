/* An axis: numbers to pixels, and the round numbers worth a tick. */
#ifndef TAUT_REPORT_AXIS_H
#define TAUT_REPORT_AXIS_H
#include <stdbool.h>

typedef struct {
    double lo, hi;   /* what the ends stand for; lo < hi */
    double from, to; /* their pixels */
    bool log;
} taut_axis;

enum { TAUT_TICKS = 12 };

/* Starts an axis that shows nothing; see() widens it, finish() rounds its ends and gives it pixels. */
taut_axis taut_axis_start(bool log);
void taut_axis_see(taut_axis *,
                   double); /* what cannot be shown (NaN, beyond 1e300, < 1e-300 on a log axis) is passed over */
void taut_axis_finish(taut_axis *, double from, double to);
bool taut_axis_shows(const taut_axis *, double);
double taut_axis_pixel(const taut_axis *, double);
int taut_axis_ticks(const taut_axis *, double tick[TAUT_TICKS]);
void taut_axis_word(char word[24], double); /* 0.25, 10, 1e-6, inf */

/* May a word stand around this pixel, behind what is taken (at first -infinity)?  Then it takes its room. */
bool taut_axis_room(double *taken, double at, const char *word);
#endif
