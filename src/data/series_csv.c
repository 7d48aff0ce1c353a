/* Reading a series from CSV (series.h says what is refused), and calendars. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "data/series.h"

/* Days since 1970 of a date in the Gregorian calendar (the months counted from March). */
static int64_t days_of(int64_t y, int m, int d)
{
    y -= m <= 2;
    const int64_t era = (y >= 0 ? y : y - 399) / 400, yoe = y - era * 400;
    const int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1, doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

static void date_of(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    const int64_t era = (days >= 0 ? days : days - 146096) / 146097, doe = days - era * 146097;
    const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365,
                  doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    const int64_t mp = (5 * doy + 2) / 153;
    *day = (int)(doy - (153 * mp + 2) / 5 + 1);
    *month = (int)(mp < 10 ? mp + 3 : mp - 9);
    *year = yoe + era * 400 + (*month <= 2);
}

/* At least `least` and at most `most` digits at *p. */
static bool digits(int *out, const char **p, int least, int most)
{
    int count = 0;
    *out = 0;
    for (; count < most && **p >= '0' && **p <= '9'; count++, (*p)++) *out = 10 * *out + (**p - '0');
    return count >= least;
}

static bool sign(const char **p, char c) { return **p == c && (*p)++; }

/* 2016-07-01, or as WTH has it 7/1/2016: month, day, year. */
static bool parse_day(int *y, int *m, int *d, const char **p)
{
    const char *back = *p;
    if (digits(y, p, 4, 4) && sign(p, '-')) return digits(m, p, 2, 2) && sign(p, '-') && digits(d, p, 2, 2);
    *p = back;
    return digits(m, p, 1, 2) && sign(p, '/') && digits(d, p, 1, 2) && sign(p, '/') && digits(y, p, 4, 4);
}

/* A day alone, or with its hour and minute (0:00 or 00:00), or with its seconds too; a date that no calendar has is none. */
static bool parse_date(int64_t *seconds, const char *p)
{
    int y, mo, d, h = 0, mi = 0, s = 0;
    if (!parse_day(&y, &mo, &d, &p)) return false;
    if (*p && (!sign(&p, ' ') || !digits(&h, &p, 1, 2) || !sign(&p, ':') || !digits(&mi, &p, 2, 2))) return false;
    if (*p && (!sign(&p, ':') || !digits(&s, &p, 2, 2))) return false;
    if (*p || h > 23 || mi > 59 || s > 59 || mo < 1 || mo > 12 || d < 1) return false;
    const int64_t days = days_of(y, mo, d);
    int64_t year;
    int month, day;
    date_of(days, &year, &month, &day);
    *seconds = days * 86400 + h * 3600 + mi * 60 + s;
    return year == y && month == mo && day == d;
}

void taut_series_mark(double *mark, int64_t marks, int64_t seconds)
{
    const int64_t days = seconds >= 0 ? seconds / 86400 : -((86399 - seconds) / 86400), rest = seconds - days * 86400;
    int64_t year;
    int month, day;
    date_of(days, &year, &month, &day);
    const int64_t weekday = ((days + 3) % 7 + 7) % 7; /* 1970 began on a Thursday; Monday is 0 */
    mark[0] = (double)(rest / 3600) / 23 - 0.5;
    mark[1] = (double)weekday / 6 - 0.5;
    mark[2] = (double)(day - 1) / 30 - 0.5;
    mark[3] = (double)(days - days_of(year, 1, 1)) / 365 - 0.5;
    if (marks > 4) mark[4] = (double)(rest / 60 % 60) / 59 - 0.5;
}

taut_status taut_series_alloc(taut_series *s, int64_t rows, int64_t cols, int64_t marks)
{
    s->rows = rows, s->cols = cols, s->marks = marks;
    s->name = taut_calloc((size_t)cols, sizeof *s->name);
    s->value = taut_malloc((size_t)(rows * cols + 1) * sizeof *s->value);
    s->mark = taut_malloc((size_t)(rows * marks + 1) * sizeof *s->mark);
    s->mean = taut_malloc((size_t)cols * sizeof *s->mean);
    s->std = taut_malloc((size_t)cols * sizeof *s->std);
    return s->name && s->value && s->mark && s->mean && s->std ? TAUT_OK : taut_no_memory("a series");
}

/* Cuts the line off the front of *rest, without its end; NULL: there is none. */
static char *next_line(char **rest)
{
    char *line = *rest;
    if (!line || !*line) return NULL;
    char *end = strchr(line, '\n');
    *rest = end ? end + 1 : NULL;
    if (end) *end = 0;
    const size_t len = strlen(line);
    if (len && line[len - 1] == '\r') line[len - 1] = 0;
    return line;
}

static char *next_cell(char **rest)
{
    char *cell = *rest;
    if (!cell) return NULL;
    char *end = strchr(cell, ',');
    *rest = end ? end + 1 : NULL;
    if (end) *end = 0;
    return cell;
}

static int64_t count_cells(const char *line)
{
    int64_t cells = 1;
    for (; *line; line++) cells += *line == ',';
    return cells;
}

static int64_t count_lines(const char *text)
{
    int64_t lines = 0;
    for (; *text; text++) lines += *text != '\n' && (text[1] == '\n' || !text[1]);
    return lines;
}

/* One row: its date, later than the one before, and a number in every column. */
static taut_status parse_row(taut_series *s, int64_t row, char *line, int64_t *when, const char *path)
{
    const int64_t before = *when, cells = count_cells(line);
    const long long at = (long long)row + 2; /* lines are counted from 1, the first is the header */
    if (cells != s->cols + 1)
        return taut_fail(TAUT_BAD_DATA, "%s: line %lld has %lld columns, the header %lld", path, at, (long long)cells,
                         (long long)s->cols + 1);
    const char *date = next_cell(&line);
    if (!parse_date(when, date)) return taut_fail(TAUT_BAD_DATA, "%s: line %lld: '%.40s' is no date", path, at, date);
    if (row > 0 && *when <= before)
        return taut_fail(TAUT_BAD_DATA, "%s: line %lld: %s is not later than the line before", path, at, date);
    for (int64_t c = 0; c < s->cols; c++) {
        const char *cell = next_cell(&line);
        if (!*cell) return taut_fail(TAUT_BAD_DATA, "%s: line %lld: no value for %s", path, at, s->name[c]);
        if (!taut_number_real(&s->value[row * s->cols + c], cell) || strchr(cell, '/'))
            return taut_fail(TAUT_BAD_DATA, "%s: line %lld: '%.40s' is no number for %s", path, at, cell, s->name[c]);
    }
    return TAUT_OK;
}

taut_status taut_series_parse(taut_series *s, char *text, const char *path)
{
    const int64_t lines = count_lines(text);
    char *rest = text, *head = next_line(&rest);
    if (!head || lines < 3) return taut_fail(TAUT_BAD_DATA, "%s: a series wants a header and at least two rows", path);
    const int64_t cols = count_cells(head) - 1;
    if (cols < 1) return taut_fail(TAUT_BAD_DATA, "%s: line 1 wants a date and at least one column", path);
    taut_status status = taut_series_alloc(s, lines - 1, cols, TAUT_MARKS);
    int64_t *when = status ? NULL : taut_malloc((size_t)s->rows * sizeof *when);
    if (!status && !when) status = taut_no_memory(path);
    const char *first = next_cell(&head);
    if (!status && parse_date(when, first))
        status = taut_fail(TAUT_BAD_DATA, "%s: line 1 is a row, where the names of the columns should be", path);
    for (int64_t c = 0; !status && c < cols; c++)
        if (!(s->name[c] = taut_strdup(next_cell(&head)))) status = taut_no_memory(path);
    for (int64_t row = 0; !status && row < s->rows; row++) {
        char *line = next_line(&rest);
        if (!line || !*line)
            return free(when), taut_fail(TAUT_BAD_DATA, "%s: line %lld is empty", path, (long long)row + 2);
        if (row > 0) when[row] = when[row - 1];
        status = parse_row(s, row, line, &when[row], path);
    }
    if (!status) s->marks = when[1] - when[0] < 3600 ? 5 : 4;
    for (int64_t row = 0; !status && row < s->rows; row++)
        taut_series_mark(s->mark + row * s->marks, s->marks, when[row]);
    free(when);
    return status;
}
