/* Time between rows: the stride, gaps in it, what stands in empty cells, and time features.
 *
 * The stride is months where every two neighbours are whole months apart, else the median of the seconds between neighbours, so
 * that a few gaps do not change it.  Days may be 23 or 25 hours long where the clock of the place is changed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/series.h"

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static taut_status find_stride(taut_stride *stride, const taut_date *when, int64_t rows)
{
    int64_t *apart = taut_malloc((size_t)rows * sizeof *apart);
    if (!apart) return taut_no_memory("dates");
    for (int unit = TAUT_MONTH_ENDS; unit >= TAUT_SECONDS; unit--) {
        bool whole = true;
        for (int64_t i = 0; whole && i < rows - 1; i++)
            whole = (apart[i] = taut_date_apart(when[i], when[i + 1], (taut_time_unit)unit)) > 0;
        if (!whole) continue;
        qsort(apart, (size_t)(rows - 1), sizeof *apart, compare);
        *stride = (taut_stride){ (taut_time_unit)unit, apart[(rows - 2) / 2] };
        break;
    }
    free(apart);
    return TAUT_OK;
}

/* How many strides are between two neighbours; 0: no whole number of them. */
static int64_t strides(taut_stride s, taut_date a, taut_date b)
{
    const int64_t apart = taut_date_apart(a, b, s.unit), shown = b.seconds - a.seconds;
    const bool days = s.unit == TAUT_SECONDS && s.count % 86400 == 0;
    return apart > 0 && apart % s.count == 0           ? apart / s.count
           : days && shown > 0 && shown % s.count == 0 ? shown / s.count
                                                       : 0;
}

/* Rows of empty cells where times are missing. */
static taut_status fill_gaps(taut_series *s, taut_date **when, const char *path)
{
    int64_t rows = 1, to = 0;
    for (int64_t i = 0; i + 1 < s->rows; i++) {
        const int64_t count = strides(s->stride, (*when)[i], (*when)[i + 1]);
        rows += count;
        if (count == 0)
            return taut_fail(TAUT_BAD_DATA,
                             "%s: lines %lld and %lld are no whole number of steps apart: no rows fill that gap", path,
                             (long long)s->line[i], (long long)s->line[i + 1]);
        if (rows > 2 * s->rows + 1000)
            return taut_fail(TAUT_BAD_DATA, "%s: more rows are missing than there are", path);
    }
    double *value = taut_malloc((size_t)(rows * s->cols + 1) * sizeof *value);
    taut_date *date = taut_malloc((size_t)rows * sizeof *date);
    if (!value || !date) {
        free(value);
        free(date);
        return taut_no_memory(path);
    }
    for (int64_t i = 0; i < s->rows; i++) {
        const int64_t count = i + 1 < s->rows ? strides(s->stride, (*when)[i], (*when)[i + 1]) : 1;
        for (int64_t k = 0; k < count; k++, to++) {
            date[to] = taut_date_later((*when)[i], s->stride, k);
            for (int64_t c = 0; c < s->cols; c++) value[to * s->cols + c] = k ? NAN : s->value[i * s->cols + c];
        }
    }
    free(s->value);
    free(*when);
    s->filled = rows - s->rows;
    s->value = value, s->rows = rows;
    *when = date;
    return TAUT_OK;
}

static taut_status treat_gaps(taut_series *s, taut_date **when, const taut_series_spec *spec)
{
    int64_t gaps = 0, first = 0;
    char apart[TAUT_DATE_ROOM], most[TAUT_DATE_ROOM];
    for (int64_t i = 0; i + 1 < s->rows; i++)
        if (strides(s->stride, (*when)[i], (*when)[i + 1]) != 1 && !gaps++) first = i;
    s->gaps = gaps;
    if (!gaps || spec->gaps == TAUT_GAPS_JOIN) return TAUT_OK;
    if (spec->gaps == TAUT_GAPS_FILL && spec->missing) return fill_gaps(s, when, spec->source);
    if (spec->gaps == TAUT_GAPS_FILL)
        return taut_fail(TAUT_BAD_CONFIG,
                         "data.gaps = fill wants data.missing = hold or interpolate, which say with what");
    const taut_stride seen = { s->stride.unit, taut_date_apart((*when)[first], (*when)[first + 1], s->stride.unit) };
    return taut_fail(
        TAUT_BAD_DATA, "%s: %lld gap%s lines %lld and %lld are %s apart, where most are %s (data.gaps = join or fill)",
        spec->source, (long long)gaps, gaps == 1 ? " in time:" : "s in time, first:", (long long)s->line[first],
        (long long)s->line[first + 1], taut_stride_print(apart, seen), taut_stride_print(most, s->stride));
}

/* Empty cells of a column between the rows a and b, which have values (a < 0 or b = rows: there is none). */
static void bridge(taut_series *s, const taut_date *when, int64_t c, int64_t a, int64_t b, taut_missing rule)
{
    const double x = s->value[(a >= 0 ? a : b) * s->cols + c];
    const bool line = a >= 0 && b < s->rows && rule == TAUT_MISSING_INTERPOLATE;
    for (int64_t i = a + 1; i < b; i++) {
        double *v = &s->value[i * s->cols + c];
        *v = x;
        if (!line) continue;
        const double part = (double)(taut_date_instant(when[i]) - taut_date_instant(when[a])) /
                            (double)(taut_date_instant(when[b]) - taut_date_instant(when[a]));
        *v = (1 - part) * x + part * s->value[b * s->cols + c];
    }
}

static taut_status fill_cells(taut_series *s, const taut_date *when, const taut_series_spec *spec)
{
    for (int64_t c = 0; c < s->cols; c++) {
        int64_t known = -1;
        for (int64_t i = 0; i < s->rows; i++) {
            if (isnan(s->value[i * s->cols + c])) continue;
            if (i > known + 1) bridge(s, when, c, known, i, spec->missing);
            known = i;
        }
        if (known < 0) return taut_fail(TAUT_BAD_DATA, "%s: column %s has no value", spec->source, s->name[c]);
        if (known + 1 < s->rows) bridge(s, when, c, known, s->rows, spec->missing);
    }
    return TAUT_OK;
}

taut_status taut_series_settle(taut_series *s, taut_date **when, const taut_series_spec *spec)
{
    taut_status status = find_stride(&s->stride, *when, s->rows);
    if (!status) status = treat_gaps(s, when, spec);
    if (!status) status = fill_cells(s, *when, spec);
    free(s->line); /* rows may be others by now */
    s->line = NULL;
    if (status) return status;
    s->marks = s->stride.unit == TAUT_SECONDS && s->stride.count < 3600 ? TAUT_MARKS : TAUT_MARKS - 1;
    s->last = (*when)[s->rows - 1];
    s->mark = taut_malloc((size_t)(s->rows * s->marks) * sizeof *s->mark);
    if (!s->mark) return taut_no_memory("time features");
    for (int64_t i = 0; i < s->rows; i++) taut_date_marks(s->mark + i * s->marks, s->marks, (*when)[i]);
    return TAUT_OK;
}

/* "text, COUNT WHAT" with an s for more than one; nothing for none. */
static void tell(char text[TAUT_SERIES_NOTE], int64_t count, const char *what, const char *then)
{
    const size_t used = strlen(text);
    if (count)
        snprintf(text + used, TAUT_SERIES_NOTE - used, "%s%lld %s%s %s", used ? ", " : "", (long long)count, what,
                 count == 1 ? "" : "s", then);
}

const char *taut_series_note(char text[TAUT_SERIES_NOTE], const taut_series *s, const taut_series_spec *spec)
{
    char rows[64];
    snprintf(rows, sizeof rows, "filled with %lld rows", (long long)s->filled);
    *text = 0;
    tell(text, s->empty, "empty cell", spec->missing == TAUT_MISSING_HOLD ? "held" : "interpolated");
    tell(text, s->gaps, "gap", spec->gaps == TAUT_GAPS_FILL ? rows : "joined");
    tell(text, s->repeated, "row",
         spec->repeats == TAUT_REPEATS_LAST ? "of a time that comes again left out"
                                            : "of a time that was there left out");
    return text;
}
