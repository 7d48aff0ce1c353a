#include "verdict/deviation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "bound/ledger.h"
#include "train/batch.h"

static const double eta = 0.5; /* what the paper leaves open; its figure 4 is drawn with it too */

/* One more example; the first makes the rows. */
static taut_status join(taut_deviation *t, const taut_pass *pass)
{
    taut_stray *more = NULL;
    int count = 0;
    const taut_status s = taut_strays_read(&more, &count, pass, eta);
    if (s) return s;
    if (count == 0)
        return taut_fail(
            TAUT_BAD_CONFIG,
            "the model has neither plash nor clustered attention, whose distance from softmax is what is proved");
    for (int r = 0; t->row && r < count; r++) taut_stray_join(&t->row[r], &more[r]);
    if (t->row)
        free(more);
    else
        t->row = more, t->rows = count;
    return TAUT_OK;
}

taut_status taut_deviation_find(taut_deviation *t, taut_model *m, const taut_source *data, int64_t examples,
                                taut_told told, void *arg)
{
    const int64_t all = taut_source_whole(data, TAUT_VALID);
    taut_pass *pass = NULL;
    taut_batch b = { 0 };
    *t = (taut_deviation){ .examples = examples < all ? examples : all };
    if (all < 1) return taut_fail(TAUT_BAD_DATA, "the validation split has no example");
    taut_status s = taut_pass_create(&pass, m, 1, m->in.t, false);
    if (!s) s = taut_batch_create(&b, data, 0, 1);
    for (int64_t i = 0; !s && i < t->examples; i++) {
        const int64_t index = i * all / t->examples;
        (void)taut_batch_windows(&b, TAUT_VALID, &index, 1);
        taut_batch_forward(&b, pass);
        s = join(t, pass);
        if (!s) s = m->k->read(NULL, NULL, 0); /* weights, too, come from a device that may have failed */
        if (!s && told && told((double)(i + 1) / (double)t->examples, arg)) s = taut_fail(TAUT_BAD_CALL, "stopped");
    }
    for (int r = 0; !s && r < t->rows; r++) t->beaten += t->row[r].beaten;
    taut_batch_free(&b);
    taut_pass_free(pass);
    return s;
}

void taut_deviation_free(taut_deviation *t) { free(t->row); }

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

cJSON *taut_deviation_json(const taut_deviation *t, const char *model)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "model", model);
    cJSON_AddNumberToObject(o, "examples", (double)t->examples);
    cJSON_AddNumberToObject(o, "beaten", (double)t->beaten);
    cJSON_AddNumberToObject(o, "eta", eta);
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
    cJSON_AddBoolToObject(o, "contradiction", t->beaten > 0);
    return o;
}

taut_status taut_deviation_csv(const taut_deviation *t, const char *path)
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
