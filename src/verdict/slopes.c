#include "verdict/slopes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/ascending.h"
#include "base/file.h"
#include "bound/ledger.h"
#include "certify/certify.h"

enum { BATCH = 8, MOST = 1000 /* slopes that are listed */ };
static const double quantiles[] = { 0, 0.05, 0.25, 0.5, 0.75, 0.95, 1 };
static const char *const names[] = { "min", "q05", "q25", "median", "q75", "q95", "max" };

/* Example `index` as the root reads it. */
static void read_example(const taut_source *data, const taut_model *m, double *x, int32_t *ids, int64_t index)
{
    const int64_t d = m->in.d, t = m->in.t;
    int32_t *asked = ids + t;
    data->ops->get(data,
                   (taut_slot){ .ids = m->embed.rows ? ids : NULL, .reals = m->embed.rows ? NULL : x, .target = asked },
                   TAUT_VALID, index);
    for (int64_t i = 0; m->embed.rows && i < t; i++) m->k->get(x + i * d, taut_at(m->k, m->embed.value, ids[i] * d), d);
}

static taut_status find(taut_slopes *s, const taut_source *data, const taut_model *m, const taut_slope_options *o,
                        taut_told told, void *arg)
{
    const int64_t len = m->in.t * m->in.d;
    double *x = taut_malloc((size_t)(BATCH * len) * sizeof *x);
    int32_t *ids = taut_malloc((size_t)(m->in.t + data->task.asked) * sizeof *ids);
    taut_status status = x && ids ? TAUT_OK : taut_no_memory("examples");
    for (int64_t first = 0, count; !status && first < s->n; first += count) {
        taut_probe p;
        count = s->n - first < BATCH ? s->n - first : BATCH;
        for (int64_t e = 0; e < count; e++) read_example(data, m, x + e * len, ids, first + e);
        status = taut_probe_create(&p, m->root, m->k, x, (taut_shape){ count, m->in.t, m->in.d });
        if (status) break;
        status = taut_slope_find(s->slope + first, NULL, &p, o);
        taut_probe_free(&p);
        if (!status && told && told((double)(first + count) / (double)s->n, arg))
            status = taut_fail(TAUT_BAD_CALL, "stopped");
    }
    free(x), free(ids);
    return status;
}

static taut_status summarise(taut_slopes *s, const char *path)
{
    taut_certificate c;
    double *value = taut_malloc((size_t)s->n * sizeof *value);
    if (!value) return taut_no_memory("slopes");
    for (int64_t e = 0; e < s->n; e++) {
        value[e] = s->slope[e].value;
        s->mean += value[e] / (double)s->n;
        s->residual = fmax(s->residual, s->slope[e].residual);
    }
    qsort(value, (size_t)s->n, sizeof *value, taut_ascending);
    for (int i = 0; i < TAUT_QUANTILES; i++) s->at[i] = value[(int64_t)(quantiles[i] * (double)(s->n - 1) + 0.5)];
    free(value);
    const taut_status status = taut_certify(&c, path, TAUT_NORM_FLAT, 0);
    if (status) return status;
    const taut_about about = taut_certificate_about(&c);
    taut_about_text(s->about, &about);
    s->lip = c.lip;
    taut_certificate_free(&c);
    return TAUT_OK;
}

taut_status taut_slopes_find(taut_slopes *s, const taut_model *m, const char *path, const taut_source *data,
                             int64_t count, const taut_slope_options *o, taut_told told, void *arg)
{
    const int64_t all = taut_source_whole(data, TAUT_VALID);
    *s = (taut_slopes){ .n = count < all ? count : all };
    if (all < 1) return taut_fail(TAUT_BAD_DATA, "the validation split has no example");
    s->slope = taut_calloc((size_t)s->n, sizeof *s->slope);
    taut_status status = s->slope ? find(s, data, m, o, told, arg) : taut_no_memory("slopes");
    return status ? status : summarise(s, path);
}

void taut_slopes_free(taut_slopes *s) { free(s->slope); }

static bool beaten(const taut_slopes *s)
{
    return s->at[TAUT_QUANTILES - 1] > 1.001 * s->lip.v; /* the float kernels' rounding is far below */
}

cJSON *taut_slopes_json(const taut_slopes *s)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "examples", (double)s->n);
    for (int i = 0; i < TAUT_QUANTILES; i++) cJSON_AddNumberToObject(o, names[i], s->at[i]);
    cJSON_AddNumberToObject(o, "mean", s->mean);
    cJSON_AddNumberToObject(o, "residual", s->residual);
    cJSON_AddItemToObject(o, "proved", up_json(s->lip));
    cJSON_AddStringToObject(o, "about", s->about);
    cJSON *list = cJSON_AddArrayToObject(o, "slopes");
    for (int64_t e = 0; e < s->n && e < MOST; e++) cJSON_AddItemToArray(list, cJSON_CreateNumber(s->slope[e].value));
    cJSON_AddBoolToObject(o, "contradiction", beaten(s));
    return o;
}

taut_status taut_slopes_csv(const taut_slopes *s, const char *path)
{
    char *text = taut_malloc((size_t)(s->n + 1) * 96), *end = text;
    if (!text) return taut_no_memory(path);
    end += sprintf(end, "example,slope,residual,steps\n");
    for (int64_t e = 0; e < s->n; e++)
        end += sprintf(end, "%lld,%.17g,%.3g,%d\n", (long long)e, s->slope[e].value, s->slope[e].residual,
                       s->slope[e].steps);
    const taut_status status = taut_file_write(path, text, (size_t)(end - text));
    free(text);
    return status;
}
