/* A certificate as pictures: which layer spends the budget, and what it buys. */
#include <math.h>
#include <stdio.h>

#include "report/run.h"
#include "report/waterfall.h"

enum { LAYERS = 200 };

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
    static taut_fall fall[LAYERS];
    const char *row[LAYERS], *norm = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(cert, "norm"));
    double at[LAYERS], lip[LAYERS], out[LAYERS], so_far[LAYERS], product = 1;
    char name[96], word[24];
    const int all = taut_waterfall(fall, LAYERS, cJSON_GetObjectItemCaseSensitive(cert, "proof"));
    const int count = all < LAYERS ? all : LAYERS;
    for (int i = 0; i < count; i++) {
        product = nextafter(product * fall[i].lip, INFINITY);
        row[i] = fall[i].path;
        at[i] = i + 1;
        lip[i] = taut_report_raised(fall[i].lip);
        out[i] = taut_report_raised(fall[i].out);
        so_far[i] = taut_report_raised(product);
    }
    taut_report_up(word, taut_report_number(cert, "lip"));
    taut_page_say(
        p, "Proved from the stored weights: the network is %s-Lipschitz from its input to its logits (norm %s, l2).",
        word, norm ? norm : "?");
    if (count) {
        const taut_bars bars = { "layer", "Lipschitz constant", true, count, row, lip };
        snprintf(name, sizeof name, "%.60s-waterfall", run);
        taut_page_bars(p, name, "Where the budget goes",
                       "The proved constant of each layer, from the input down: their product is the whole network's.",
                       &bars);
        const taut_plot sizes = { "layer",
                                  "l2 norm",
                                  false,
                                  true,
                                  { { "largest token, at most", at, out, row, count, TAUT_DRAW_LINE },
                                    { "constant so far", at, so_far, row, count, TAUT_DRAW_DASHED } },
                                  2 };
        snprintf(name, sizeof name, "%.60s-sizes", run);
        taut_page_plot(p, name, "How large it can get",
                       "Behind each layer: the proved largest norm of a token, and the proved constant up to there.",
                       &sizes);
    }
    accuracy(p, cert, run);
}
