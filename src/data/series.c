/* Series: where they come from, how they are cut and how they are scaled.
 *
 * As Informer 2020 cuts them: of an ETT file (name begins with ETTh or ETTm) 12 months of 30 days for training, 4 for
 * validation and 4 for testing, the rest unused; of any other the first 7/10, the last 2/10 and what is between.  Scales are
 * those that the spec gives, or the training rows' means and population standard deviations.  Its loaders leave out the last
 * windows where they do not fill a batch of 32: so does data.protocol = informer2020 for files, in validation and test. */
#include "data/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/rng.h"
#include "data/find.h"
#include "data/gzip.h"
#include "data/names.h"

/* Hourly from 2020 on: a day's wave, a week's, both and a trend; with a little noise. */
static taut_status make_waves(taut_series *s, const taut_names *wanted, const taut_series_spec *spec)
{
    static char day_name[] = "day", week_name[] = "week", both_name[] = "both";
    char *names[] = { day_name, week_name, both_name };
    const taut_names all = { names, 3 };
    const uint64_t key = taut_rng_key(spec->seed, TAUT_RNG_DATA, 77);
    const int64_t rows = spec->length;
    taut_status status = taut_series_alloc(s, rows, wanted->count);
    taut_date *when = status ? NULL : taut_malloc((size_t)rows * sizeof *when);
    if (!status && !when) status = taut_no_memory("waves");
    for (int64_t w = 0; !status && w < wanted->count; w++) {
        const int64_t c = taut_names_find(&all, wanted->name[w]);
        if (c < 0)
            status = taut_fail(TAUT_BAD_DATA, "waves has no column '%.60s', which data.columns names (day, week, both)",
                               wanted->name[w]);
        else if (!(s->name[w] = taut_strdup(names[c])))
            status = taut_no_memory("waves");
        for (int64_t i = 0; !status && i < rows; i++) {
            const double day = sin(6.283185307179586 * (double)i / 24),
                         week = sin(6.283185307179586 * (double)i / 168 + 1);
            const double y[] = { day, week, day * week + 0.5 * day };
            s->value[i * s->cols + w] = y[c] + 0.1 * taut_rng_normal(key, (uint64_t)(3 * i + c));
        }
    }
    for (int64_t i = 0; !status && i < rows; i++) when[i] = (taut_date){ .seconds = 1577836800 + 3600 * i };
    if (!status) status = taut_series_settle(s, &when, spec);
    free(when);
    return status;
}

static taut_status waves(taut_series *s, const taut_series_spec *spec)
{
    taut_names wanted;
    taut_status status = taut_names_read(&wanted, spec->columns ? spec->columns : "day,week,both", "data.columns");
    if (status) return status;
    status = make_waves(s, &wanted, spec);
    taut_names_free(&wanted);
    return status;
}

/* Series that papers share, by the names they have there, and where they lie among the data. */
static const char *known(const char *source)
{
    static const char *const files[][2] = { { "ETTh1", "ett/ETTh1.csv" }, { "ETTh2", "ett/ETTh2.csv" },
                                            { "ETTm1", "ett/ETTm1.csv" }, { "ETTm2", "ett/ETTm2.csv" },
                                            { "WTH", "weather/WTH.csv" }, { "ECL", "ecl/ECL.csv" } };
    for (int i = 0; i < 6; i++)
        if (strcmp(source, files[i][0]) == 0) return files[i][1];
    return source;
}

static taut_status read_file(taut_series *s, const taut_series_spec *spec)
{
    const char *source = known(spec->source);
    char *path = NULL, gz[4200];
    uint8_t *data = NULL;
    size_t len = 0;
    taut_status status = taut_data_find(&path, source);
    if (status == TAUT_NO_MEMORY) return status;
    if (status) {
        snprintf(gz, sizeof gz, "%.4096s.gz", source); /* ETTm1.csv may be there as ETTm1.csv.gz */
        if (taut_data_find(&path, gz)) return taut_data_find(&path, source);
    }
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const size_t end = strlen(name);
    if (slash) *slash = 0;
    char plain[4096];
    snprintf(plain, sizeof plain, "%.*s", (int)(end > 3 && strcmp(name + end - 3, ".gz") == 0 ? end - 3 : end), name);
    status = taut_gzip_read(&data, &len, slash ? path : ".", plain, (size_t)1 << 30);
    if (!status && memchr(data, 0, len)) status = taut_fail(TAUT_BAD_DATA, "%s: not a text file", source);
    char *text = status ? NULL : taut_realloc(data, len + 1);
    if (!status && !text) status = taut_no_memory(source);
    if (text) text[len] = 0, data = NULL;
    if (!status) status = taut_series_parse(s, text, spec);
    free(text);
    free(data);
    free(path);
    return status;
}

/* The columns that are forecast: those of data.targets, or all. */
static taut_status aim(taut_series *s, const taut_series_spec *spec)
{
    taut_names wanted = { 0 };
    const taut_names own = { s->name, s->cols };
    taut_status status = spec->targets ? taut_names_read(&wanted, spec->targets, "data.targets") : TAUT_OK;
    s->targets = spec->targets ? wanted.count : s->cols;
    if (!status && !(s->target = taut_malloc((size_t)s->targets * sizeof *s->target)))
        status = taut_no_memory("targets");
    for (int64_t i = 0; !status && i < s->targets; i++) {
        s->target[i] = spec->targets ? taut_names_find(&own, wanted.name[i]) : i;
        if (s->target[i] < 0)
            status = taut_fail(TAUT_BAD_DATA,
                               "%s: data.targets names '%.60s', which is none of the columns that are read",
                               spec->source, wanted.name[i]);
    }
    taut_names_free(&wanted);
    return status;
}

static taut_status cut(taut_series *s, const taut_series_spec *spec)
{
    const char *slash = strrchr(spec->source, '/'), *name = slash ? slash + 1 : spec->source;
    const bool hours = strncmp(name, "ETTh", 4) == 0, minutes = strncmp(name, "ETTm", 4) == 0;
    const int64_t month = 30 * 24 * (minutes ? 4 : 1), train = s->rows * 7 / 10, test = s->rows * 2 / 10;
    const bool months = !spec->full && (hours || minutes);
    const int64_t borders[] = { 0, months ? 12 * month : train, months ? 16 * month : s->rows - test,
                                months ? 20 * month : s->rows };
    if (months && s->rows < 20 * month)
        return taut_fail(TAUT_BAD_DATA,
                         "%s has %lld rows, the twenty months of its protocol are %lld (data.protocol = full cuts what "
                         "there is)",
                         spec->source, (long long)s->rows, (long long)(20 * month));
    for (int i = 0; i < 3; i++) s->begin[i] = borders[i], s->end[i] = borders[i + 1];
    s->whole = spec->full || strcmp(spec->source, "waves") == 0 ? 1 : 32;
    return TAUT_OK;
}

/* The row, counted from 1, of the training number of column c that is farthest from 0. */
static int64_t farthest(const taut_series *s, int64_t c)
{
    int64_t at = 0;
    for (int64_t i = 0; i < s->end[0]; i++)
        if (fabs(s->value[i * s->cols + c]) > fabs(s->value[at * s->cols + c])) at = i;
    return at + 1;
}

/* Means and deviations of the training rows; those without one are named. */
static taut_status measure(taut_series *s, const taut_series_spec *spec)
{
    const int64_t n = s->end[0];
    char flat[160] = "";
    int64_t flats = 0;
    for (int64_t c = 0; c < s->cols; c++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n; i++) mean += s->value[i * s->cols + c] / (double)n;
        for (int64_t i = 0; i < n; i++) square += pow(s->value[i * s->cols + c] - mean, 2) / (double)n;
        s->mean[c] = mean;
        s->std[c] = sqrt(square);
        if (!isfinite(s->std[c]))
            return taut_fail(
                TAUT_BAD_DATA, "%s: the numbers of column %s are too large to be standardised: %g in row %lld of them",
                spec->source, s->name[c], s->value[(farthest(s, c) - 1) * s->cols + c], (long long)farthest(s, c));
        if (s->std[c] > 1e-12 * (1 + fabs(mean))) continue;
        s->std[c] = 1;
        const size_t len = strlen(flat);
        snprintf(flat + len, sizeof flat - len, "%s%.40s", flats++ ? ", " : "", s->name[c]);
    }
    if (!flats || spec->keep_constant) return TAUT_OK;
    return taut_fail(TAUT_BAD_DATA,
                     "%s: column%s %s %s constant in the %lld training rows (data.columns names those to read, "
                     "data.constant = keep reads it with deviation 1)",
                     spec->source, flats > 1 ? "s" : "", flat, flats > 1 ? "are" : "is", (long long)n);
}

/* Those that somebody gives: one for each column, and no deviation that is not above 0. */
static taut_status take(taut_series *s, const taut_series_spec *spec)
{
    const int cols = (int)s->cols;
    if (!spec->means || !spec->deviations)
        return taut_fail(TAUT_BAD_CONFIG, "data.means and data.deviations go together");
    if (taut_number_list(s->mean, cols, spec->means) != cols ||
        taut_number_list(s->std, cols, spec->deviations) != cols)
        return taut_fail(TAUT_BAD_CONFIG, "data.means and data.deviations want a number for each of the %d columns",
                         cols);
    for (int c = 0; c < cols; c++)
        if (!(s->std[c] > 0))
            return taut_fail(TAUT_BAD_CONFIG, "data.deviations: %g of column %s is not above 0", s->std[c], s->name[c]);
    return TAUT_OK;
}

static taut_status standardise(taut_series *s, const taut_series_spec *spec)
{
    const taut_status status = (spec->means || spec->deviations ? take : measure)(s, spec);
    if (status) return status;
    for (int64_t i = 0; i < s->rows * s->cols; i++) {
        const int64_t c = i % s->cols;
        const double had = s->value[i];
        s->value[i] = (had - s->mean[c]) / s->std[c];
        if (!isfinite(s->value[i]))
            return taut_fail(TAUT_BAD_DATA, "%s: %g of column %s, in row %lld, is too large for its deviation %g",
                             spec->source, had, s->name[c], (long long)(i / s->cols + 1), s->std[c]);
    }
    return TAUT_OK;
}

/* A model that learned rows of an hour says nothing about rows of a minute. */
static taut_status keep_step(const taut_series *s, const taut_series_spec *spec)
{
    taut_stride wanted;
    char a[TAUT_DATE_ROOM], b[TAUT_DATE_ROOM];
    if (!spec->step) return TAUT_OK;
    if (!taut_stride_parse(&wanted, spec->step))
        return taut_fail(TAUT_BAD_CONFIG, "data.step = %.40s is none (3600 s, 1 month)", spec->step);
    if (wanted.unit == s->stride.unit && wanted.count == s->stride.count) return TAUT_OK;
    return taut_fail(TAUT_BAD_DATA, "%s has a row every %s, the model one every %s (data.step)", spec->source,
                     taut_stride_print(a, s->stride), taut_stride_print(b, wanted));
}

taut_status taut_series_open(taut_series **out, const taut_series_spec *spec)
{
    taut_series *s = taut_calloc(1, sizeof *s);
    if (!s) return taut_no_memory("a series");
    taut_status status = (strcmp(spec->source, "waves") == 0 ? waves : read_file)(s, spec);
    if (!status) status = keep_step(s, spec);
    if (!status) status = aim(s, spec);
    if (!status && !spec->newest) status = cut(s, spec);
    if (!status) status = standardise(s, spec);
    if (status) {
        taut_series_free(s);
        return status;
    }
    *out = s;
    return TAUT_OK;
}

void taut_series_free(taut_series *s)
{
    if (!s) return;
    for (int64_t c = 0; s->name && c < s->cols; c++) free(s->name[c]);
    free(s->name);
    free(s->line);
    free(s->value);
    free(s->mark);
    free(s->mean);
    free(s->std);
    free(s->target);
    free(s);
}
