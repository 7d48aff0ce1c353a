/* A series from a table of text; series.h says what is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "data/names.h"
#include "data/series.h"
#include "data/table.h"

enum { MOST_COLUMNS = 1 << 16 };

typedef struct {
    taut_series *s;
    const taut_series_spec *spec;
    taut_table table;
    taut_date *when; /* (rows) */
    int64_t date;    /* which cell of a row is its date */
    int64_t *cell;   /* (cols) which cell of a row each column is */
    char mark;       /* between a number's whole part and its fraction: a point or a comma, once one was seen */
    int64_t empty_line;
    const char *empty_name;
} reader;

static taut_status bad_date(const reader *r, const char *text)
{
    return taut_fail(
        TAUT_BAD_DATA,
        "%s: line %lld: '%.40s' is no date (2016-07-01 00:00:00; 7/1/2016 0:00, month first; 01.07.2016 00:00)",
        r->spec->source, (long long)r->table.line, text);
}

/* The first cell of the first row that is a date; in the header there is none. */
static taut_status find_date(reader *r)
{
    const taut_table *t = &r->table;
    taut_date date;
    for (int64_t i = 0; i < t->cells; i++)
        if (taut_date_parse(&date, t->name[i]))
            return taut_fail(TAUT_BAD_DATA, "%s: line 1 is a row, where the names of the columns should be",
                             r->spec->source);
    for (r->date = 0; r->date < t->cells && !taut_date_parse(&date, t->cell[r->date]);) r->date++;
    return r->date < t->cells ? TAUT_OK : bad_date(r, t->cell[0]);
}

/* Which cell has that name; refused where none has, or two have. */
static taut_status find_column(int64_t *cell, const reader *r, const taut_names *all, const char *name)
{
    const int64_t first = taut_names_find(all, name), rest = first + 1;
    const taut_names behind = { all->name + rest, all->count - rest };
    *cell = first;
    if (first < 0)
        return taut_fail(TAUT_BAD_DATA, "%s has no column '%.60s', which data.columns names; its last is '%.60s'",
                         r->spec->source, name, all->name[all->count - 1]);
    const int64_t again = taut_names_find(&behind, name);
    if (again < 0) return TAUT_OK;
    return taut_fail(TAUT_BAD_DATA, "%s: columns %lld and %lld are both called '%.60s'", r->spec->source,
                     (long long)first + 1, (long long)(rest + again) + 1, name);
}

/* The names that are asked for, or all but the date's. */
static taut_status list_wanted(taut_names *wanted, const reader *r, const taut_names *all)
{
    if (r->spec->columns) return taut_names_read(wanted, r->spec->columns, "data.columns");
    *wanted = (taut_names){ taut_calloc((size_t)all->count, sizeof *wanted->name), 0 };
    if (!wanted->name) return taut_no_memory(r->spec->source);
    for (int64_t i = 0; i < all->count; i++) {
        if (i == r->date) continue;
        if (!*all->name[i])
            return taut_fail(TAUT_BAD_DATA, "%s: column %lld has no name (data.columns names those to read)",
                             r->spec->source, (long long)i + 1);
        if (!(wanted->name[wanted->count++] = taut_strdup(all->name[i]))) return taut_no_memory(r->spec->source);
    }
    return TAUT_OK;
}

static taut_status choose(reader *r, const taut_names *all)
{
    taut_names wanted = { 0 };
    taut_status s = list_wanted(&wanted, r, all);
    if (!s && wanted.count < 1)
        s = taut_fail(TAUT_BAD_DATA, "%s: line 1 wants a date and at least one column", r->spec->source);
    if (!s) s = taut_series_alloc(r->s, r->table.rows + 1, wanted.count); /* the first row is read */
    if (!s && !(r->cell = taut_calloc((size_t)wanted.count, sizeof *r->cell))) s = taut_no_memory(r->spec->source);
    for (int64_t c = 0; !s && c < wanted.count; c++) {
        s = find_column(&r->cell[c], r, all, wanted.name[c]);
        if (!s && r->cell[c] == r->date)
            s = taut_fail(TAUT_BAD_DATA, "%s: column '%.60s' has the dates", r->spec->source, wanted.name[c]);
        r->s->name[c] = wanted.name[c];
        wanted.name[c] = NULL;
    }
    taut_names_free(&wanted);
    return s;
}

/* The names as UTF-8, and which of them are read. */
static taut_status choose_columns(reader *r)
{
    const taut_table *t = &r->table;
    taut_names all = { taut_calloc((size_t)t->cells, sizeof *all.name), 0 };
    taut_status s = all.name ? TAUT_OK : taut_no_memory(t->path);
    for (int64_t i = 0; !s && i < t->cells; i++)
        if (!(all.name[all.count++] = taut_name_copy(t->name[i]))) s = taut_no_memory(t->path);
    if (!s) s = choose(r, &all);
    taut_names_free(&all);
    return s;
}

/* A number; an empty cell is NaN, and counted. */
static taut_status read_number(reader *r, double *out, char *cell, const char *name)
{
    const char *path = r->spec->source;
    const long long line = (long long)r->table.line;
    char *comma = r->table.separator == ';' ? strchr(cell, ',') : NULL;
    const char mark = comma ? ',' : strchr(cell, '.') ? '.' : r->mark;
    *out = NAN;
    if (!*cell) {
        if (!r->s->empty++) r->empty_line = line, r->empty_name = name;
        return TAUT_OK;
    }
    if (r->mark && mark != r->mark)
        return taut_fail(TAUT_BAD_DATA, "%s: line %lld: '%.40s' for %s has a '%c', where numbers before have a '%c'",
                         path, line, cell, name, mark, r->mark);
    r->mark = mark;
    if (comma) *comma = '.';
    if (taut_number_real(out, cell) && !strchr(cell, '/')) return TAUT_OK;
    if (comma) *comma = ',';
    return taut_fail(TAUT_BAD_DATA, "%s: line %lld: '%.40s' is no number for %s%s", path, line, cell, name,
                     r->spec->columns ? "" : " (data.columns names the columns to read)");
}

/* A row of the time of the one before: which of the two remains?  *row: where this one goes, if that is it. */
static taut_status repeat(reader *r, int64_t *row, const char *text)
{
    if (!r->spec->repeats)
        return taut_fail(
            TAUT_BAD_DATA,
            "%s: line %lld: %s is the time of the line before, too (data.repeats = first or last keeps one "
            "of them)",
            r->spec->source, (long long)r->table.line, text);
    r->s->repeated++;
    if (r->spec->repeats == TAUT_REPEATS_FIRST) return TAUT_OK;
    --*row;
    r->when[*row] = r->when[*row + 1];
    for (int64_t c = 0; c < r->s->cols; c++) r->s->empty -= isnan(r->s->value[*row * r->s->cols + c]) != 0;
    return TAUT_OK;
}

/* One row: its date, later than the one before, and a number in every column.  *row becomes that of the next. */
static taut_status read_row(reader *r, int64_t *next)
{
    int64_t row = *next;
    const char *text = r->table.cell[r->date], *path = r->spec->source;
    const long long line = (long long)r->table.line;
    taut_date *now = &r->when[row];
    taut_status s = taut_date_parse(now, text) ? TAUT_OK : bad_date(r, text);
    if (!s && row > 0 && now->zoned != now[-1].zoned)
        s = taut_fail(TAUT_BAD_DATA, "%s: line %lld: %s has %s zone, unlike the line before", path, line, text,
                      now->zoned ? "a" : "no");
    if (!s && row > 0 && taut_date_instant(*now) < taut_date_instant(now[-1]))
        s = taut_fail(TAUT_BAD_DATA, "%s: line %lld: %s is earlier than the line before", path, line, text);
    if (!s && row > 0 && taut_date_instant(*now) == taut_date_instant(now[-1])) {
        s = repeat(r, &row, text);
        if (s || row == *next) return s; /* the first remains */
    }
    r->s->line[row] = r->table.line;
    *next = row + 1;
    for (int64_t c = 0; !s && c < r->s->cols; c++)
        s = read_number(r, &r->s->value[row * r->s->cols + c], r->table.cell[r->cell[c]], r->s->name[c]);
    return s;
}

/* Leaves out all but the newest rows, where only they are asked for. */
static void skip_old(reader *r)
{
    const int64_t newest = r->spec->repeats ? 2 * r->spec->newest : r->spec->newest; /* some may be left out */
    if (newest > 0 && r->table.rows > newest) taut_table_skip(&r->table, r->table.rows - newest);
}

static taut_status read_rows(reader *r)
{
    skip_old(r);
    taut_status s = taut_table_next(&r->table);
    if (!s) s = find_date(r);
    if (!s) s = choose_columns(r);
    const size_t rows = s ? 0 : (size_t)r->s->rows;
    if (!s && !(r->when = taut_malloc(rows * sizeof *r->when))) s = taut_no_memory(r->spec->source);
    if (!s && !(r->s->line = taut_malloc(rows * sizeof *r->s->line))) s = taut_no_memory(r->spec->source);
    int64_t row = 0;
    if (!s) s = read_row(r, &row);
    while (!s && r->table.rows > 0) {
        s = taut_table_next(&r->table);
        if (!s) s = read_row(r, &row);
    }
    if (!s) r->s->rows = row;
    if (!s && row < 2) s = taut_fail(TAUT_BAD_DATA, "%s: a series wants at least two times", r->spec->source);
    if (s || !r->s->empty || r->spec->missing) return s;
    return taut_fail(
        TAUT_BAD_DATA,
        "%s: line %lld: no value for %s, and %lld empty cell%s in all (data.missing = hold or interpolate)",
        r->spec->source, (long long)r->empty_line, r->empty_name, (long long)r->s->empty, r->s->empty == 1 ? "" : "s");
}

taut_status taut_series_alloc(taut_series *s, int64_t rows, int64_t cols)
{
    s->rows = rows, s->cols = cols;
    s->name = taut_calloc((size_t)cols, sizeof *s->name);
    s->value = taut_malloc((size_t)(rows * cols + 1) * sizeof *s->value);
    s->mean = taut_malloc((size_t)cols * sizeof *s->mean);
    s->std = taut_malloc((size_t)cols * sizeof *s->std);
    return s->name && s->value && s->mean && s->std ? TAUT_OK : taut_no_memory("a series");
}

taut_status taut_series_parse(taut_series *s, char *text, const taut_series_spec *spec)
{
    reader r = { .s = s, .spec = spec };
    taut_status status = taut_table_open(&r.table, text, spec->source);
    if (status) return *text ? status : taut_fail(TAUT_BAD_DATA, "%s is empty", spec->source);
    if (r.table.rows < 2)
        status = taut_fail(TAUT_BAD_DATA, "%s: a series wants a header and at least two rows", spec->source);
    else if (r.table.cells > MOST_COLUMNS)
        status = taut_fail(TAUT_BAD_DATA, "%s: more than %d columns", spec->source, MOST_COLUMNS);
    if (!status) status = read_rows(&r);
    if (!status) status = taut_series_settle(s, &r.when, spec);
    taut_table_free(&r.table);
    free(r.cell);
    free(r.when);
    return status;
}
