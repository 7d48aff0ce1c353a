/* A certificate as pictures: which layer spends the budget, and what it buys. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/run.h"

enum { LAYERS = 200, PATH = 48 };

typedef struct {
    char path[LAYERS][PATH];
    double lip[LAYERS], sofar[LAYERS], out[LAYERS];
    int count;
} layers;

static void take(layers *l, const cJSON *node, const char *path)
{
    if (l->count == LAYERS) return;
    const double before = l->count ? l->sofar[l->count - 1] : 1;
    snprintf(l->path[l->count], PATH, "%s", path);
    l->lip[l->count] = taut_report_number(node, "lip");
    l->sofar[l->count] = before * l->lip[l->count];
    l->out[l->count++] = taut_report_number(node, "out");
}

static void walk(layers *l, const cJSON *node, const char *path);

/* A residual branch has no name of its own: it is called after the last thing in it. */
static void walk_branch(layers *l, const cJSON *node, const char *path)
{
    char inner[PATH] = "";
    const cJSON *of = cJSON_GetObjectItemCaseSensitive(node, "of"), *f = cJSON_GetArrayItem(of, 0), *step;
    cJSON_ArrayForEach(step, cJSON_GetObjectItemCaseSensitive(f, "of"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(step, "name"));
        if (name && strcmp(name, "drop") != 0) snprintf(inner, PATH, "%.30s%s%.15s", path, *path ? "." : "", name);
    }
    take(l, node, *inner ? inner : path);
}

static void walk(layers *l, const cJSON *node, const char *path)
{
    const char *rule = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(node, "rule"));
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(node, "name"));
    char here[PATH];
    snprintf(here, PATH, "%.30s%s%.15s", path, *path && name ? "." : "", name ? name : "");
    if (rule && strcmp(rule, "sequence") == 0) {
        const cJSON *step;
        cJSON_ArrayForEach(step, cJSON_GetObjectItemCaseSensitive(node, "of")) walk(l, step, here);
    } else if (rule && strcmp(rule, "mix") == 0)
        walk_branch(l, node, here);
    else
        take(l, node, *here ? here : rule ? rule : "?");
}

static void accuracy(taut_page *p, const cJSON *cert, const char *run)
{
    double radius[64], share[64];
    char name[96];
    int count = 0;
    const cJSON *at;
    cJSON_ArrayForEach(at, cJSON_GetObjectItemCaseSensitive(cert, "certified_accuracy")) if (count < 64)
    {
        radius[count] = taut_report_number(at, "radius");
        share[count++] = 100 * taut_report_number(at, "accuracy");
    }
    if (!count) return;
    const taut_plot plot = { "radius (l2)",
                             "certified accuracy, %",
                             false,
                             false,
                             { { "certified", radius, share, NULL, count, TAUT_DRAW_LINE } },
                             1 };
    snprintf(name, sizeof name, "%.60s-certified", run);
    taut_page_plot(p, name, "Certified accuracy",
                   "The share of examples whose prediction is right and provably cannot change within the radius.",
                   &plot);
}

void taut_report_certificate(taut_page *p, const cJSON *cert, const char *run)
{
    layers l = { .count = 0 };
    const char *row[LAYERS], *norm = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(cert, "norm"));
    double at[LAYERS];
    char name[96], word[24];
    walk(&l, cJSON_GetObjectItemCaseSensitive(cert, "proof"), "");
    for (int i = 0; i < l.count; i++) {
        row[i] = l.path[i];
        at[i] = i + 1;
    }
    taut_report_up(word, taut_report_number(cert, "lip"));
    taut_page_say(
        p, "Proved from the stored weights: the network is %s-Lipschitz from its input to its logits (norm %s, l2).",
        word, norm ? norm : "?");
    if (l.count) {
        const taut_bars bars = { "layer", "Lipschitz constant", true, l.count, row, l.lip };
        snprintf(name, sizeof name, "%.60s-waterfall", run);
        taut_page_bars(p, name, "Where the budget goes",
                       "The proved constant of each layer, from the input down: their product is the whole network's.",
                       &bars);
        const taut_plot sizes = { "layer",
                                  "l2 norm",
                                  false,
                                  true,
                                  { { "largest token, at most", at, l.out, row, l.count, TAUT_DRAW_LINE },
                                    { "constant so far", at, l.sofar, row, l.count, TAUT_DRAW_DASHED } },
                                  2 };
        snprintf(name, sizeof name, "%.60s-sizes", run);
        taut_page_plot(p, name, "How large it can get",
                       "Behind each layer: the proved largest norm of a token, and the proved constant up to there.",
                       &sizes);
    }
    accuracy(p, cert, run);
}
