/* Series: where they come from, how they are cut and how they are scaled.
 *
 * As Informer 2020 cuts them: of an ETT file (name begins with ETTh or ETTm) 12 months of 30 days for training, 4 for
 * validation and 4 for testing, the rest unused; of any other the first 7/10, the last 2/10 and what is between.  Scales are
 * the training rows' means and population standard deviations.  Its loaders leave out the last windows where they do not fill a
 * batch of 32: so does data.protocol = informer2020 for files, in validation and test. */
#include "data/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/find.h"
#include "data/gzip.h"

/* Three columns, hourly from 2020 on: a day's wave, a week's, both and a trend; with a little noise. */
static taut_status waves(taut_series *s, int64_t rows, uint64_t seed)
{
    static const char *const names[] = { "day", "week", "both" };
    const uint64_t key = taut_rng_key(seed, TAUT_RNG_DATA, 77);
    taut_status status = taut_series_alloc(s, rows, 3, 4);
    for (int c = 0; !status && c < 3; c++)
        if (!(s->name[c] = taut_strdup(names[c]))) status = taut_no_memory("waves");
    for (int64_t i = 0; !status && i < rows; i++) {
        const double day = sin(6.283185307179586 * (double)i / 24), week = sin(6.283185307179586 * (double)i / 168 + 1);
        const double y[] = { day, week, day * week + 0.5 * day };
        for (int c = 0; c < 3; c++) s->value[3 * i + c] = y[c] + 0.1 * taut_rng_normal(key, (uint64_t)(3 * i + c));
        taut_series_mark(s->mark + 4 * i, 4, 1577836800 + 3600 * i);
    }
    return status;
}

static taut_status read_file(taut_series *s, const char *source)
{
    char *path = NULL, gz[4200];
    uint8_t *data = NULL;
    size_t len = 0;
    taut_status status = taut_data_find(&path, source);
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
    if (!status) status = taut_series_parse(s, text, source);
    free(text);
    free(data);
    free(path);
    return status;
}

/* One column alone. */
static taut_status keep(taut_series *s, const char *target, const char *source)
{
    int64_t at = 0;
    while (at < s->cols && strcmp(s->name[at], target) != 0) at++;
    if (at == s->cols)
        return taut_fail(TAUT_BAD_DATA, "%s has no column '%.60s' (data.target); its last is '%.60s'", source, target,
                         s->name[s->cols - 1]);
    for (int64_t i = 0; i < s->rows; i++) s->value[i] = s->value[i * s->cols + at];
    for (int64_t c = 0; c < s->cols; c++)
        if (c != at) free(s->name[c]);
    s->name[0] = s->name[at];
    s->cols = 1;
    return TAUT_OK;
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

static taut_status standardise(taut_series *s, const char *source)
{
    const int64_t n = s->end[0];
    for (int64_t c = 0; c < s->cols; c++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n; i++) mean += s->value[i * s->cols + c] / (double)n;
        for (int64_t i = 0; i < n; i++) square += pow(s->value[i * s->cols + c] - mean, 2) / (double)n;
        s->mean[c] = mean;
        s->std[c] = sqrt(square);
        if (!(s->std[c] > 1e-12 * (1 + fabs(mean))))
            return taut_fail(TAUT_BAD_DATA, "%s: column %s is constant in its %lld training rows", source, s->name[c],
                             (long long)n);
        if (!isfinite(s->std[c]))
            return taut_fail(TAUT_BAD_DATA, "%s: the numbers of column %s are too large to be standardised", source,
                             s->name[c]);
        for (int64_t i = 0; i < s->rows; i++)
            s->value[i * s->cols + c] = (s->value[i * s->cols + c] - mean) / s->std[c];
    }
    return TAUT_OK;
}

taut_status taut_series_open(taut_series **out, const taut_series_spec *spec)
{
    taut_series *s = taut_calloc(1, sizeof *s);
    if (!s) return taut_no_memory("a series");
    taut_status status = strcmp(spec->source, "waves") == 0 ? waves(s, spec->length, spec->seed)
                                                            : read_file(s, spec->source);
    if (!status && spec->target) status = keep(s, spec->target, spec->source);
    if (!status) status = cut(s, spec);
    if (!status) status = standardise(s, spec->source);
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
    free(s->value);
    free(s->mark);
    free(s->mean);
    free(s->std);
    free(s);
}
