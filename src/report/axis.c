#include "report/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

taut_axis taut_axis_start(bool log) { return (taut_axis){ .lo = INFINITY, .hi = -INFINITY, .log = log }; }

/* Within these ends no difference of two numbers overflows, and no round number beyond them does. */
bool taut_axis_shows(const taut_axis *a, double v) { return fabs(v) <= 1e300 && (!a->log || v >= 1e-300); }

void taut_axis_see(taut_axis *a, double v)
{
    if (!taut_axis_shows(a, v)) return;
    a->lo = fmin(a->lo, v);
    a->hi = fmax(a->hi, v);
}

/* 1, 2 or 5 times a power of ten, so that about five steps fit in `span`. */
static double step_for(double span)
{
    const double raw = span / 5, ten = pow(10, floor(log10(raw))), lead = raw / ten;
    return ten * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

void taut_axis_finish(taut_axis *a, double from, double to)
{
    a->from = from;
    a->to = to;
    if (!(a->lo <= a->hi)) { /* nothing was seen */
        a->lo = a->log ? 1 : 0;
        a->hi = a->log ? 10 : 1;
    }
    if (a->log) {
        const double few = a->hi / a->lo < 1.0001 ? 2 : 1;
        a->lo /= few;
        a->hi *= few;
        if (a->hi / a->lo < 20) { /* too little for whole decades: a narrow margin instead */
            a->lo *= 0.95;
            a->hi *= 1.05;
            return;
        }
        a->lo = pow(10, floor(log10(a->lo) + 1e-9));
        a->hi = pow(10, ceil(log10(a->hi) - 1e-9));
        return;
    }
    if (a->hi - a->lo <= 1e-12 * fmax(fabs(a->hi), fabs(a->lo))) {
        const double half = a->hi == 0 ? 1 : fabs(a->hi) / 2;
        a->lo -= half;
        a->hi += half;
    }
    const double step = step_for(a->hi - a->lo);
    a->lo = floor(a->lo / step + 1e-9) * step;
    a->hi = ceil(a->hi / step - 1e-9) * step;
}

double taut_axis_pixel(const taut_axis *a, double v)
{
    const double part = a->log ? (log(v) - log(a->lo)) / (log(a->hi) - log(a->lo)) : (v - a->lo) / (a->hi - a->lo);
    return a->from + part * (a->to - a->from);
}

static int log_ticks(const taut_axis *a, double tick[TAUT_TICKS])
{
    const double first = ceil(log10(a->lo) - 1e-9), last = floor(log10(a->hi) + 1e-9);
    int count = 0;
    const double every = ceil((last - first) / 8); /* 1e3, 1e6, ... and not 1e4, 1e7, ... */
    for (double e = every * ceil(first / every); e <= last && count < TAUT_TICKS; e += every)
        tick[count++] = pow(10, e);
    return count;
}

int taut_axis_ticks(const taut_axis *a, double tick[TAUT_TICKS])
{
    if (a->log && a->hi / a->lo > 50) return log_ticks(a, tick); /* whole decades; a narrower one has plain steps */
    const double step = step_for(a->hi - a->lo);
    int count = 0;
    for (double i = ceil(a->lo / step - 1e-9); i * step <= a->hi + 1e-9 * step && count < TAUT_TICKS; i++)
        tick[count++] = i == 0 ? 0 : i * step; /* no -0 */
    return count;
}

void taut_axis_word(char word[24], double v)
{
    snprintf(word, 24, "%.4g", v);
    char *e = strchr(word, 'e');
    if (!e) return;
    char *to = e + 1 + (e[1] == '-');
    const char *digits = e + 2 + (e[2] == '0'); /* 1e+08 as 1e8, 1e-06 as 1e-6 */
    memmove(to, digits, strlen(digits) + 1);
}

bool taut_axis_room(double *taken, double at, const char *word)
{
    const double half = 3.7 * (double)strlen(word); /* of a letter's usual width */
    if (at - half < *taken) return false;
    *taken = at + half + 4;
    return true;
}
