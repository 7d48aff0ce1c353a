/* Measured slopes (measure.json, from taut measure --json): for every layer the slope that was found, the one that is proved, and
 * what the published formulas say; every head; and slopes against the length of the input. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/cells.h"
#include "report/run.h"

enum { LAYERS = 96, HEADS = 64, BOUNDS = 24 };
enum { FOUND, PROVED, RATIO, FORMULAS }; /* rows of the table */

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

/* A row of the table: one number for every layer. */
static double number_of(const cJSON *layer, int row, const char *formula)
{
    const double lower = taut_report_number(layer, "lower"), upper = taut_report_number(layer, "upper");
    switch (row) {
    case FOUND:
        return lower;
    case PROVED:
        return taut_report_raised(upper);
    case RATIO:
        return lower > 0 ? upper / lower : NAN;
    default:
        return published(layer, formula);
    }
}

static void table(taut_page *p, const cJSON *layers, const char *run)
{
    taut_cells c = { 0 };
    const char *row[BOUNDS + FORMULAS] = { "found", "proved", "proved / found" }, *head[LAYERS + 1] = { "slope" };
    char name[96], word[LAYERS][24];
    int rows = FORMULAS, cols = 1;
    const cJSON *layer, *v, *first = cJSON_GetArrayItem(layers, 0);
    const cJSON *one = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(first, "heads"), 0);
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(one, "published")) if (rows < BOUNDS + FORMULAS)
        row[rows++] = v->string;
    cJSON_ArrayForEach(layer, layers) if (cols <= LAYERS)
    {
        snprintf(word[cols - 1], sizeof word[0], "layer %.0f", taut_report_number(layer, "layer"));
        head[cols] = word[cols - 1];
        cols++;
    }
    for (int r = 0; r < rows; r++) {
        int left = cols - 1;
        taut_cells_add(&c, "%s", row[r]);
        cJSON_ArrayForEach(layer, layers) if (left-- > 0)
            taut_cells_number(&c, r < RATIO ? "%.6g" : "%.3g", number_of(layer, r, row[r]));
    }
    snprintf(name, sizeof name, "%.60s-sandwich", run);
    p->text.failed |= c.failed;
    if (!c.failed)
        taut_page_table(
            p, name, "The sandwich around the truth",
            rows > FORMULAS
                ? "The steepest slope of each attention layer at one input lies between what a search found and what "
                  "is "
                  "proved; below, what published formulas say (printed: as it stands in the paper, which is not "
                  "always true; a dash: not finite, or not for this attention)."
                : "The steepest slope of each attention layer at one input lies between what a search found and what "
                  "is "
                  "proved; no published formula is about this attention.",
            &(taut_table){ rows, cols, head, (const char *const *)c.word });
    taut_cells_free(&c);
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
                   "How steep each attention head is at most at one input, proved: the stronger the colour, the "
                   "steeper it may be.",
                   &chart);
}

static void growth(taut_page *p, const cJSON *m, const char *run)
{
    enum { MOST = 4000 };
    static double x[MOST], y[MOST];
    char name[96], law[64], about[300];
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
    const double e = taut_report_number(m, "exponent"), factor = taut_report_number(m, "factor");
    double ends[2] = { INFINITY, 0 }, fit[2];
    for (int i = 0; i < count; i++) ends[0] = fmin(ends[0], x[i]), ends[1] = fmax(ends[1], x[i]);
    for (int i = 0; i < 2; i++) fit[i] = factor * pow(ends[i], e);
    snprintf(law, sizeof law, "%.3g times length to the power %.3f", factor, e);
    const taut_plot plot = { "tokens",
                             "slope found",
                             true,
                             true,
                             { { "one sequence each", x, y, NULL, count, TAUT_DRAW_POINTS },
                               { law, ends, fit, NULL, 2, TAUT_DRAW_DASHED } },
                             isfinite(fit[0]) && isfinite(fit[1]) ? 2 : 1 };
    snprintf(name, sizeof name, "%.60s-growth", run);
    const double low = taut_report_number(m, "exponent_low"), high = taut_report_number(m, "exponent_high");
    const int said = snprintf(
        about, sizeof about,
        "How steep attention is on sequences of growing length: a straight line on these axes is a power "
        "of the length.");
    if (isfinite(low) && isfinite(high))
        snprintf(about + said, sizeof about - (size_t)said,
                 "  Here the power is %.3f, with 95 %% confidence %.3f to %.3f.", e, low, high);
    taut_page_plot(p, name, "Slope against length", about, &plot);
}

void taut_report_measured(taut_page *p, const cJSON *m, const char *run)
{
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(m, "layers");
    if (cJSON_GetArraySize(layers) > 0) {
        table(p, layers, run);
        heat(p, layers, run);
    }
    taut_report_maps(p, cJSON_GetObjectItemCaseSensitive(m, "maps"), run);
    growth(p, m, run);
}
