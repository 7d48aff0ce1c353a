/* The slope of the whole network, inputs (pixels, or the embeddings of a text) to logits, l2 over everything, at many
 * examples of the validation split: its distribution, beside the constant that is proved for all inputs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "bound/print.h"
#include "certify/certify.h"
#include "measure.h"
#include "measure/probe.h"

enum { BATCH = 8, MOST = 1000 /* slopes that are listed */ };
static const double quantiles[] = { 0, 0.05, 0.25, 0.5, 0.75, 0.95, 1 };
static const char *const names[] = { "min", "q05", "q25", "median", "q75", "q95", "max" };
enum { QUANTILES = 7 };

typedef struct {
    taut_slope *slope;
    int64_t n;
    double at[QUANTILES], mean, residual;
    taut_up lip;
    char about[TAUT_ABOUT_ROOM]; /* of which inputs */
} spread;

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

static taut_status find(spread *s, const taut_source *data, const taut_model *m, const taut_slope_options *o)
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
        cli_bar((double)(first + count) / (double)s->n, "measuring");
    }
    cli_bar_end();
    free(x), free(ids);
    return status;
}

static taut_status summarise(spread *s, const char *path)
{
    taut_certificate c;
    double *value = taut_malloc((size_t)s->n * sizeof *value);
    if (!value) return taut_no_memory("slopes");
    for (int64_t e = 0; e < s->n; e++) {
        value[e] = s->slope[e].value;
        s->mean += value[e] / (double)s->n;
        s->residual = fmax(s->residual, s->slope[e].residual);
    }
    for (int i = 0; i < QUANTILES; i++) s->at[i] = cli_quantile(value, (int)s->n, quantiles[i]);
    free(value);
    const taut_status status = taut_certify(&c, path, TAUT_NORM_FLAT, 0);
    if (status) return status;
    const taut_about about = taut_certificate_about(&c);
    taut_about_text(s->about, &about);
    s->lip = c.lip;
    taut_certificate_free(&c);
    return TAUT_OK;
}

static taut_status save(const spread *s, const char *path)
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

static int print(const spread *s, bool json)
{
    char lip[32];
    if (json) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "examples", (double)s->n);
        for (int i = 0; i < QUANTILES; i++) cJSON_AddNumberToObject(o, names[i], s->at[i]);
        cJSON_AddNumberToObject(o, "mean", s->mean);
        cJSON_AddNumberToObject(o, "residual", s->residual);
        cJSON_AddItemToObject(o, "proved", up_json(s->lip));
        cJSON_AddStringToObject(o, "about", s->about);
        cJSON *list = cJSON_AddArrayToObject(o, "slopes");
        for (int64_t e = 0; e < s->n && e < MOST; e++)
            cJSON_AddItemToArray(list, cJSON_CreateNumber(s->slope[e].value));
        return cli_json(o);
    }
    printf("slope of the whole network, l2, at %lld examples (largest relative residual %.2g)\n", (long long)s->n,
           s->residual);
    for (int i = 0; i < QUANTILES; i++) printf("  %-8s %.6g\n", names[i], s->at[i]);
    printf("  %-8s %.6g\n  %-8s %s   %s\n", "mean", s->mean, "proved", up_text(lip, s->lip), s->about);
    return EXIT_DONE;
}

int measure_network(const cli_args *a, taut_net *m, const taut_slope_options *o)
{
    taut_source *data = NULL;
    char *path = cli_path(a->operand[0], "model.safetensors");
    const char *csv = cli_text(a, "--csv", NULL);
    spread s = { .n = cli_int(a, "--network", 100, 1, 1000000) };
    taut_status status = path ? taut_net_source(&data, m, cli_text(a, "--data", NULL)) : taut_no_memory("a path");
    if (!status) {
        const int64_t all = taut_source_count(data, TAUT_VALID) -
                            (data->task.tokens > 0); /* a last one may be partial */
        if (s.n > all) s.n = all;
        if (all < 1) status = taut_fail(TAUT_BAD_DATA, "the validation split has no example");
    }
    if (!status && !(s.slope = taut_calloc((size_t)s.n, sizeof *s.slope))) status = taut_no_memory("slopes");
    if (!status) status = find(&s, data, m->model, o);
    if (!status) status = summarise(&s, path);
    if (!status && csv) status = save(&s, csv);
    int code = status ? cli_fail(a) : print(&s, cli_flag(a, "--json"));
    if (code == EXIT_DONE && s.at[QUANTILES - 1] > 1.001 * s.lip.v) { /* the float kernels' rounding is far below */
        fprintf(stderr, "CONTRADICTION: a slope above the proved constant\n");
        code = EXIT_CONTRADICTION;
    }
    taut_source_free(data);
    free(s.slope), free(path);
    return code;
}
