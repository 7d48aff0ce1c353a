#include "train/forecast.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "data/series.h"

enum { COLUMNS = 4 };

/* count numbers, every `step`-th from `from` on, to six digits behind the point. */
static cJSON *numbers(const double *from, int64_t step, int64_t count)
{
    cJSON *list = cJSON_CreateArray();
    for (int64_t i = 0; i < count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(round(1e6 * from[i * step]) / 1e6));
    return list;
}

taut_status taut_forecast_add(cJSON *o, taut_pass *p, taut_batch *b, taut_split split)
{
    const taut_model_spec *m = &p->m->spec;
    const taut_series *x = taut_source_series_of(b->source);
    const int64_t index = taut_source_count(b->source, split) / 2, len = m->ahead * m->classes,
                  d = m->columns + m->marks;
    double *said = taut_malloc((size_t)len * sizeof *said);
    if (!said) return taut_no_memory("a forecast");
    taut_batch_windows(b, split, &index, 1);
    taut_batch_forward(b, p);
    p->m->k->get(said, p->logits.data, len);
    const taut_status s = p->m->k->read(NULL, NULL, 0);
    if (s) {
        free(said);
        return s;
    }
    cJSON_AddNumberToObject(o, "window", (double)index);
    cJSON *list = cJSON_AddArrayToObject(o, "columns");
    for (int64_t c = 0; c < m->classes && c < COLUMNS; c++) { /* the decoder's rows stand before the encoder's */
        const int64_t at = x->target[c];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", x->name[at]);
        cJSON_AddNumberToObject(one, "mean", x->mean[at]);
        cJSON_AddNumberToObject(one, "deviation", x->std[at]);
        cJSON_AddItemToObject(one, "read", numbers(b->reals + (m->label + m->ahead) * d + at, d, m->seq));
        cJSON_AddItemToObject(one, "came", numbers(b->wanted + c, m->classes, m->ahead));
        cJSON_AddItemToObject(one, "said", numbers(said + c, m->classes, m->ahead));
        cJSON_AddItemToArray(list, one);
    }
    free(said);
    return TAUT_OK;
}
