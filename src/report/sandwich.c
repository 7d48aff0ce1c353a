/* Measured slopes (measure.json, from taut measure --json): for every layer the slope that was found, the one that is proved, and
 * what the published formulas say; every head; and slopes against the length of the input. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/run.h"

enum { LAYERS = 96, HEADS = 64, BOUNDS = 24, WORD = 24 };

typedef struct {
    char cell[LAYERS * (BOUNDS + 4)][WORD];
    const char *list[LAYERS * (BOUNDS + 4)];
    int count;
} cells;

static void put(cells *c, const char *format, double v)
{
    if (isnan(v))
        snprintf(c->cell[c->count], WORD, "-");
    else
        snprintf(c->cell[c->count], WORD, format, v);
    c->list[c->count] = c->cell[c->count];
    c->count++;
}

/* A layer's value of a published bound: heads stand side by side, so their squares add up; those of lower bounds do not, as each
 * head has its own steep input, and the largest counts. */
static double published(const cJSON *layer, const char *name)
{
    const bool lower = strstr(name, "_lower") != NULL;
    double sum = 0;
    const cJSON *head;
    cJSON_ArrayForEach(head, cJSON_GetObjectItemCaseSensitive(layer, "heads"))
    {
        const double v = taut_report_number(cJSON_GetObjectItemCaseSensitive(head, "published"), name);
        sum = !lower ? sum + v * v : v * v > sum ? v * v : sum;
    }
    return sqrt(sum);
}

static void table(taut_page *p, const cJSON *layers, const char *run)
{
    static cells c;
    const char *head[BOUNDS + 4] = { "layer", "found", "proved", "ratio" };
    char name[96];
    int cols = 4;
    const cJSON *layer, *v, *first = cJSON_GetArrayItem(layers, 0);
    const cJSON *one = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(first, "heads"), 0);
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(one, "published")) if (cols < BOUNDS + 4)
        head[cols++] = v->string;
    c.count = 0;
    cJSON_ArrayForEach(layer, layers)
    {
        if (c.count + cols > LAYERS * (BOUNDS + 4)) break;
        const double lower = taut_report_number(layer, "lower"), upper = taut_report_number(layer, "upper");
        put(&c, "%.0f", taut_report_number(layer, "layer"));
        put(&c, "%.6g", lower);
        put(&c, "%.6g", taut_report_raised(upper));
        put(&c, "%.3g", lower > 0 ? upper / lower : NAN);
        for (int i = 4; i < cols; i++) put(&c, "%.3g", published(layer, head[i]));
    }
    snprintf(name, sizeof name, "%.60s-sandwich", run);
    taut_page_table(
        p, name, "The sandwich around the truth",
        "The local Lipschitz constant of each attention layer at an input lies between what was found and what is "
        "proved.  Beside it, published formulas (printed: as they stand in the paper, not always true; a dash: not "
        "finite).",
        c.count / cols, cols, head, c.list);
}

static void heat(taut_page *p, const cJSON *layers, const char *run)
{
    static double value[LAYERS * HEADS];
    char name[96];
    const int rows = cJSON_GetArraySize(layers);
    const int cols = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(layers, 0), "heads"));
    if (rows < 1 || rows > LAYERS || cols < 1 || cols > HEADS) return;
    for (int r = 0; r < rows; r++) {
        const cJSON *heads = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(layers, r), "heads");
        for (int h = 0; h < cols; h++)
            value[r * cols + h] = taut_report_raised(taut_report_number(cJSON_GetArrayItem(heads, h), "upper"));
    }
    const taut_heat chart = { "layer", "head", "proved slope at the input", rows, cols, value };
    snprintf(name, sizeof name, "%.60s-heads", run);
    taut_page_heat(p, name, "Every head",
                   "Proved slope of each head at the input: the stronger the colour, the steeper.", &chart);
}

static void growth(taut_page *p, const cJSON *m, const char *run)
{
    enum { MOST = 4000 };
    static double x[MOST], y[MOST];
    char name[96];
    int count = 0;
    const cJSON *point;
    cJSON_ArrayForEach(point, cJSON_GetObjectItemCaseSensitive(m, "points")) if (count < MOST)
    {
        const cJSON *n = cJSON_GetArrayItem(point, 0), *slope = cJSON_GetArrayItem(point, 1);
        if (!cJSON_IsNumber(n) || !cJSON_IsNumber(slope)) continue;
        x[count] = n->valuedouble;
        y[count++] = slope->valuedouble;
    }
    if (!count) return;
    const taut_plot plot = { "tokens", "slope found", true, true, { { "slope", x, y, NULL, count, TAUT_DRAW_POINTS } },
                             1 };
    const double e = taut_report_number(m, "exponent");
    snprintf(name, sizeof name, "%.60s-growth", run);
    taut_page_plot(p, name, "Slope against length",
                   "One point a sequence: the slope of the attention layer found there.", &plot);
    if (!isnan(e)) taut_page_say(p, "The slope grows like the length to the power %.3f.", e);
}

void taut_report_measured(taut_page *p, const cJSON *m, const char *run)
{
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(m, "layers");
    if (cJSON_GetArraySize(layers) > 0) {
        table(p, layers, run);
        heat(p, layers, run);
    }
    growth(p, m, run);
}
