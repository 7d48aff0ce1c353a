/* How far the attention in linear time of a model is from softmax attention, at examples of the validation split: the truth,
 * what is proved of it without forming it, the trivial bound, and the PLASH paper's certificate mended and as printed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "bound/print.h"
#include "certify/stray.h"
#include "measure.h"
#include "train/batch.h"

static const double eta = 0.5; /* what the paper leaves open; its figure 4 is drawn with it too */

typedef struct {
    taut_stray *row;
    int rows;
    int64_t examples, beaten;
} table;

/* Every layer and head, all examples as one. */
static taut_status read_all(table *t, const cli_args *a, taut_net *m, const taut_source *data)
{
    const int64_t all = taut_source_count(data, TAUT_VALID) - (data->task.tokens > 0); /* a last one may be partial */
    taut_pass *pass = NULL;
    taut_batch b = { 0 };
    t->examples = cli_int(a, "--samples", 4, 1, 1000000);
    if (t->examples > all) t->examples = all;
    if (all < 1) return taut_fail(TAUT_BAD_DATA, "the validation split has no example");
    taut_status s = taut_pass_create(&pass, m->model, 1, m->model->in.t, false);
    if (!s) s = taut_batch_create(&b, data, 0, 1);
    for (int64_t i = 0; !s && i < t->examples; i++) {
        const int64_t index = i * all / t->examples;
        taut_stray *more = NULL;
        int count = 0;
        (void)taut_batch_windows(&b, TAUT_VALID, &index, 1);
        taut_batch_forward(&b, pass);
        s = taut_strays_read(&more, &count, pass, eta);
        if (!s && count == 0)
            s = taut_fail(TAUT_BAD_CONFIG, "%s has no attention in linear time: --deviation is for plash and clustered",
                          a->operand[0]);
        for (int r = 0; t->row && r < count; r++) taut_stray_join(&t->row[r], &more[r]);
        if (t->row)
            free(more);
        else
            t->row = more, t->rows = count;
        cli_bar((double)(i + 1) / (double)t->examples, "comparing with softmax");
    }
    cli_bar_end();
    for (int r = 0; !s && r < t->rows; r++) t->beaten += t->row[r].beaten;
    taut_batch_free(&b);
    taut_pass_free(pass);
    return s;
}

/* The paper's as a whole; NaN: there is none. */
static double whole(const taut_stray *r, double second)
{
    return r->papers ? r->paper.stage1 + r->paper.reference + second : NAN;
}

enum { COLUMNS = 12 };
static const char *const names[COLUMNS] = { "head", "queries", "keys",    "groups",    "soft",  "deviation",
                                            "fast", "audit",   "trivial", "corrected", "delta", "printed" };

static void cells(double *c, const taut_stray *r)
{
    const double all[COLUMNS] = { (double)r->head,
                                  (double)r->queries,
                                  (double)r->keys,
                                  (double)r->groups,
                                  r->soft,
                                  r->truth,
                                  r->fast.v,
                                  r->audit.v,
                                  r->hull.v,
                                  whole(r, r->paper.mended),
                                  r->papers ? r->paper.delta : NAN,
                                  whole(r, r->paper.printed) };
    for (int i = 0; i < COLUMNS; i++) c[i] = all[i];
}

static int print_json(const table *t, const cli_args *a)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "model", a->operand[0]);
    cJSON_AddNumberToObject(o, "examples", (double)t->examples);
    cJSON_AddNumberToObject(o, "beaten", (double)t->beaten);
    cJSON *list = cJSON_AddArrayToObject(o, "heads");
    for (int r = 0; r < t->rows; r++) {
        double c[COLUMNS];
        cJSON *one = cJSON_CreateObject();
        cells(c, &t->row[r]);
        cJSON_AddStringToObject(one, "layer", t->row[r].path);
        cJSON_AddStringToObject(one, "attention", t->row[r].plash ? "plash" : "clustered");
        for (int i = 0; i < COLUMNS; i++) /* +inf is an answer, NaN is none */
            if (isnan(c[i]))
                cJSON_AddNullToObject(one, names[i]);
            else
                cJSON_AddItemToObject(one, names[i], up_json((taut_up){ c[i] }));
        cJSON_AddItemToArray(list, one);
    }
    return cli_json(o);
}

static taut_status save(const table *t, const char *path)
{
    char *text = taut_malloc((size_t)(t->rows + 1) * 480), *end = text;
    if (!text) return taut_no_memory(path);
    end += sprintf(end, "layer");
    for (int i = 0; i < COLUMNS; i++) end += sprintf(end, ",%s", names[i]);
    for (int r = 0; r < t->rows; r++) {
        double c[COLUMNS];
        cells(c, &t->row[r]);
        end += sprintf(end, "\n%s", t->row[r].path);
        for (int i = 0; i < COLUMNS; i++) end += isnan(c[i]) ? sprintf(end, ",") : sprintf(end, ",%.17g", c[i]);
    }
    end += sprintf(end, "\n");
    const taut_status s = taut_file_write(path, text, (size_t)(end - text));
    free(text);
    return s;
}

static void print(const table *t)
{
    char text[3][32];
    bool plash = false, none = false;
    printf("distance from softmax attention on the same queries, keys and values, over %lld examples (Frobenius)\n",
           (long long)t->examples);
    printf("%-24s %4s %9s %10s %12s %12s %12s %9s   %11s %11s %11s %11s\n", "layer", "head", "keys/M", "|Y_soft|",
           "deviation", "fast", "audit", "over", "trivial", "corrected", "delta", "printed");
    for (int r = 0; r < t->rows; r++) {
        const taut_stray *s = &t->row[r];
        char size[32];
        snprintf(size, sizeof size, "%lld/%lld", (long long)s->keys, (long long)s->groups);
        printf("%-24s %4lld %9s %10.4g %12.6g %12s %12s %9.3g %% %11s", s->path, (long long)s->head, size, s->soft,
               s->truth, up_text(text[0], s->fast), up_text(text[1], s->audit), 100 * (s->audit.v / s->truth - 1),
               up_text(text[2], s->hull));
        if (s->papers)
            printf(" %11s %11s %11.4g", taut_number_up(text[0], whole(s, s->paper.mended)),
                   taut_number_up(text[1], s->paper.delta), whole(s, s->paper.printed));
        printf("\n");
        plash = plash || s->papers;
        none = none || (s->plash && !s->papers);
    }
    printf(
        "fast and audit are proved for every query, as is the trivial bound; deviation is computed in long double\n");
    if (plash)
        printf("corrected: the PLASH paper's certificate with every constant right, eta = %g, which fails with "
               "probability delta; printed is no bound\n",
               eta);
    if (none)
        printf("no paper's certificate: model.plash_sizes below what the sketch reads leave no deterministic "
               "reference, or the mixer is too large\n");
}

int measure_deviation(const cli_args *a, taut_net *m)
{
    taut_source *data = NULL;
    table t = { 0 };
    const char *csv = cli_text(a, "--csv", NULL);
    taut_status s = taut_net_source(&data, m, cli_text(a, "--data", NULL));
    if (!s) s = read_all(&t, a, m, data);
    if (!s && csv) s = save(&t, csv);
    int code = EXIT_DONE;
    if (s)
        code = cli_fail(a);
    else if (cli_flag(a, "--json"))
        code = print_json(&t, a);
    else
        print(&t);
    if (!s && t.beaten) {
        fprintf(stderr, "CONTRADICTION: a deviation above its proved bound\n");
        code = EXIT_CONTRADICTION;
    }
    taut_source_free(data);
    free(t.row);
    return code;
}
