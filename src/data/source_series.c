/* Windows of a series as examples.  A split's windows have all the rows they ask about inside it, and may look back before it
 * by `seq` rows: stride 1, so rows - ahead + 1 of them (training: rows - seq - ahead + 1), in validation and test down to whole
 * batches where the protocol says so. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/series.h"

typedef struct {
    taut_source base;
    taut_series *series;
    int64_t seq, label, ahead;
} source;

/* The first row that the first window of a split reads. */
static int64_t first_row(const source *s, taut_split split)
{
    return split == TAUT_TRAIN ? s->series->begin[split] : s->series->begin[split] - s->seq;
}

static int64_t series_count(const taut_source *base, taut_split split)
{
    const source *s = (const source *)base;
    const int64_t from = first_row(s, split), count = s->series->end[split] - from - s->seq - s->ahead + 1;
    const int64_t whole = split == TAUT_TRAIN || count < s->series->whole ? 1 : s->series->whole;
    return from < 0 || count < 0 ? 0 : count - count % whole;
}

static void put_row(const taut_series *s, double *to, int64_t row, bool known)
{
    for (int64_t c = 0; c < s->cols; c++) to[c] = known ? s->value[row * s->cols + c] : 0;
    memcpy(to + s->cols, s->mark + row * s->marks, (size_t)s->marks * sizeof *to);
}

static void series_get(const taut_source *base, taut_slot to, taut_split split, int64_t index)
{
    const source *s = (const source *)base;
    const taut_series *x = s->series;
    const int64_t from = first_row(s, split) + index, now = from + s->seq, d = x->cols + x->marks;
    double *at = to.reals;
    for (int64_t i = 0; i < s->label + s->ahead; i++, at += d) put_row(x, at, now - s->label + i, i < s->label);
    for (int64_t i = 0; i < s->seq; i++, at += d) put_row(x, at, from + i, true);
    for (int64_t i = 0; i < s->ahead * x->targets; i++)
        to.wanted[i] = x->value[(now + i / x->targets) * x->cols + x->target[i % x->targets]];
}

static void series_draw(const taut_source *base, taut_slot to, uint64_t seed, int64_t number)
{
    const int64_t all = series_count(base, TAUT_TRAIN);
    const uint64_t key = taut_rng_key(seed, TAUT_RNG_BATCH, (uint64_t)(number / all)); /* another order every epoch */
    series_get(base, to, TAUT_TRAIN, (int64_t)taut_rng_place(key, (uint64_t)(number % all), (uint64_t)all));
}

static void series_free(taut_source *base)
{
    taut_series_free(((source *)base)->series);
    free(base);
}

static const taut_source_ops series_ops = { series_count, series_get, series_draw, series_free };

taut_status taut_source_series(taut_source **out, taut_series *series, int64_t seq, int64_t label, int64_t ahead)
{
    source *s = taut_calloc(1, sizeof *s);
    const int64_t least = seq + ahead;
    taut_status status = s ? TAUT_OK : taut_no_memory("a series");
    if (!status && label > seq)
        status = taut_fail(TAUT_BAD_CONFIG, "model.label = %lld is more than the model.seq = %lld rows before it",
                           (long long)label, (long long)seq);
    for (int i = 0; !status && i < 3; i++)
        if (series->end[i] - series->begin[i] < (i ? ahead : least))
            status = taut_fail(TAUT_BAD_DATA,
                               "the series is shorter than a window: %lld rows for %s, where %lld are wanted",
                               (long long)(series->end[i] - series->begin[i]),
                               i == 0   ? "training"
                               : i == 1 ? "validation"
                                        : "testing",
                               (long long)(i ? ahead : least));
    if (status) {
        taut_series_free(series);
        free(s);
        return status;
    }
    const taut_task task = { .t = seq + label + ahead,
                             .d = series->cols + series->marks,
                             .asked = ahead,
                             .answers = 0,
                             .reals = series->targets };
    *s = (source){ { &series_ops, task, NULL }, series, seq, label, ahead };
    *out = &s->base;
    return TAUT_OK;
}

const taut_series *taut_source_series_of(const taut_source *base) { return ((const source *)base)->series; }

void taut_series_window(double *x, const taut_series *s, int64_t seq, int64_t label, int64_t ahead)
{
    const int64_t d = s->cols + s->marks;
    for (int64_t i = 0; i < label; i++, x += d) put_row(s, x, s->rows - label + i, true);
    for (int64_t i = 1; i <= ahead; i++, x += d) {
        memset(x, 0, (size_t)s->cols * sizeof *x);
        taut_date_marks(x + s->cols, s->marks, taut_date_later(s->last, s->stride, i));
    }
    for (int64_t i = 0; i < seq; i++, x += d) put_row(s, x, s->rows - seq + i, true);
}
