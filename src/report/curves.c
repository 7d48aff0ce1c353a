/* Training curves: every number that log.jsonl has beside the step, those of one kind together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "report/run.h"

enum { CURVES = 24, NAME = 32 };

typedef struct {
    char name[NAME];
    double *step, *value;
    int count;
} curve;

static curve *find_curve(curve *list, int *count, const char *name, int lines)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(list[i].name, name) == 0) return &list[i];
    if (*count == CURVES || strlen(name) >= NAME) return NULL;
    curve *c = &list[(*count)++];
    snprintf(c->name, NAME, "%s", name);
    c->count = 0;
    c->step = taut_calloc((size_t)lines, sizeof *c->step);
    c->value = taut_calloc((size_t)lines, sizeof *c->value);
    return c;
}

static void take_line(curve *list, int *count, const cJSON *line, int lines, bool *failed)
{
    const double step = taut_report_number(line, "step");
    const cJSON *v;
    if (isnan(step)) return;
    cJSON_ArrayForEach(v, line)
    {
        if (!cJSON_IsNumber(v) || strcmp(v->string, "step") == 0 || strcmp(v->string, "seconds") == 0) continue;
        curve *c = find_curve(list, count, v->string, lines);
        if (!c) continue;
        if (!c->step || !c->value) {
            *failed = true;
            return;
        }
        c->step[c->count] = step;
        const bool share = strcmp(v->string, "val_acc") == 0, bound = strcmp(v->string, "bound") == 0;
        c->value[c->count++] = share   ? 100 * v->valuedouble
                               : bound ? taut_report_raised(v->valuedouble)
                                       : v->valuedouble;
    }
}

static int read_curves(curve *list, const char *text, bool *failed)
{
    int lines = 1, count = 0;
    for (const char *p = text; *p; p++) lines += *p == '\n';
    for (const char *p = text; *p && !*failed;) {
        const char *end = strchr(p, '\n');
        const size_t len = end ? (size_t)(end - p) : strlen(p);
        cJSON *line = cJSON_ParseWithLength(p, len); /* a torn last line is passed over */
        if (cJSON_IsObject(line)) take_line(list, &count, line, lines, failed);
        cJSON_Delete(line);
        p += len + (end != NULL);
    }
    return count;
}

/* What a curve is called on the page. */
static const char *word_for(const char *name)
{
    static const char *const words[][2] = { { "loss", "training" },
                                            { "val_loss", "validation" },
                                            { "val_acc", "validation" },
                                            { "bound", "proved" },
                                            { "slope", "seen between two" } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i][0]) == 0) return words[i][1];
    return name;
}

static taut_draw draw_of(const char *name)
{
    return strncmp(name, "val", 3) == 0 || strcmp(name, "target") == 0 ? TAUT_DRAW_DASHED : TAUT_DRAW_LINE;
}

static bool any(const curve *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return true;
    return false;
}

/* One figure with every curve whose name is in `names`; nothing if there is none. */
static void draw(taut_page *p, const curve *list, int count, const char *run, const char *title, const char *about,
                 const char *y_name, const char *const *names)
{
    taut_plot plot = { .x_name = "step", .y_name = y_name };
    char name[96];
    for (int n = 0; names[n]; n++)
        for (int i = 0; i < count; i++)
            if (strcmp(list[i].name, names[n]) == 0 && plot.count < TAUT_SERIES)
                plot.series[plot.count++] = (taut_series){ word_for(names[n]), list[i].step,     list[i].value, NULL,
                                                           list[i].count,      draw_of(names[n]) };
    if (!plot.count) return;
    snprintf(name, sizeof name, "%.60s-%s", run, names[0]);
    taut_page_plot(p, name, title, about, &plot);
}

void taut_report_curves(taut_page *p, const char *folder, const char *run)
{
    static const char *const loss[] = { "loss", "val_loss", NULL }, *const accuracy[] = { "val_acc", NULL },
                             *const bound[] = { "bound", "target", "slope", NULL },
                             *const size[] = { "activation", NULL }, *const gradient[] = { "grad_norm", NULL };
    char path[4096], *text = NULL;
    size_t len = 0;
    curve list[CURVES];
    bool failed = false;
    snprintf(path, sizeof path, "%s/log.jsonl", folder);
    if (!taut_file_exists(path)) return;
    if (taut_file_read(&text, &len, path)) {
        taut_page_say(p, "log.jsonl cannot be read.");
        return;
    }
    const int count = read_curves(list, text, &failed);
    p->text.failed |= failed;
    if (!failed) {
        draw(p, list, count, run, "Loss",
             "How wrong the model is as training goes on, lower is better: on the batches it learns from and (dashed) "
             "on "
             "examples it does not see.",
             "loss", loss);
        draw(p, list, count, run, "Accuracy", "The share of right answers on examples it does not learn from.",
             "accuracy, %", accuracy);
        draw(p, list, count, run, "The constant while training",
             any(list, count, "bound")
                 ? "The proved constant of what each checkpoint saved (with patience: of each candidate for the saved "
                   "model), the target it may not exceed, and the largest slope seen between two validation examples."
                 : "The largest slope seen between two validation examples: the constant is at least that.  Without a "
                   "target nothing is proved while training.",
             "Lipschitz constant", bound);
        draw(p, list, count, run, "Activations",
             "The largest number that any layer reads on some validation examples: bounded networks stay calm.",
             "largest entry", size);
        draw(p, list, count, run, "Length of the gradient",
             "How strongly each batch pulls on the weights, before clipping.", "gradient norm", gradient);
    }
    for (int i = 0; i < count; i++) {
        free(list[i].step);
        free(list[i].value);
    }
    free(text);
}
