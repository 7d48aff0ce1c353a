/* A certificate as pictures: which layer spends the budget, and what it buys. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "report/run.h"
#include "report/waterfall.h"

enum { LAYERS = 200 };

typedef struct {
    double radius;
    bool right;
} verdict;

static int by_radius(const void *a, const void *b)
{
    const double x = ((const verdict *)a)->radius, y = ((const verdict *)b)->radius;
    return (x > y) - (x < y);
}

/* Of how many examples this is: those without an answer are not listed, and count as wrong. */
static int asked(const cJSON *c, int listed)
{
    const double all = taut_report_number(c, "n_ex");
    return all >= listed && all <= 1e9 ? (int)all : listed;
}

/* certify.json, from taut certify --json: the share of examples that are right and cannot change, against the radius. */
void taut_report_certified(taut_page *p, const cJSON *c, const char *run)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(c, "examples"), *one;
    const int listed = cJSON_GetArraySize(list), all = asked(c, listed);
    verdict *v = taut_calloc((size_t)listed + 1, sizeof *v);
    double *radius = taut_calloc(4 * (size_t)listed + 2, sizeof *radius),
           *share = radius ? radius + 2 * listed + 1 : NULL;
    char name[96];
    int count = 0, left = 0, points = 0;
    p->text.failed |= !v || !radius;
    if (!p->text.failed) cJSON_ArrayForEach(one, list)
        {
            v[count] = (verdict){ taut_report_lowered(taut_report_number(one, "radius")),
                                  taut_report_number(one, "target") == taut_report_number(one, "predicted") };
            if (v[count].radius >= 0) left += v[count].right, count++;
        }
    if (count) qsort(v, (size_t)count, sizeof *v, by_radius);
    if (all && taut_report_predicts(c) && !(count && v[count - 1].radius > 0))
        taut_page_say(p, "Of %d examples no answer is certified: the constant allows more than they can take.", all);
    if (count && v[count - 1].radius > 0) {
        share[points++] = 100.0 * left / all; /* nothing moved */
        for (int i = 0; i < count; i++) {
            const double now = 100.0 * left / all;
            if (i == 0 || v[i].radius > v[i - 1].radius) { /* in steps: a slanted line would promise too much */
                if (i && now < share[points - 1]) radius[points] = v[i - 1].radius, share[points++] = now;
                radius[points] = v[i].radius, share[points++] = now;
            }
            left -= v[i].right;
        }
        const char *norm = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c, "norm"));
        const taut_plot plot = { norm && strcmp(norm, "flat") == 0 ? "how far an input is moved (l2)"
                                                                   : "how far the token that moves most is moved (l2)",
                                 "certified accuracy, %",
                                 false,
                                 false,
                                 { { "certified", radius, share, NULL, points, TAUT_DRAW_LINE } },
                                 1 };
        snprintf(name, sizeof name, "%.60s-certified", run);
        taut_page_plot(
            p, name, "Certified accuracy",
            "The share of examples whose answer is right and provably stays so, however they are moved by less than so "
            "much; at 0 it is the plain accuracy.",
            &plot);
    }
    free(v);
    free(radius);
}

const char *taut_report_about(char text[TAUT_ABOUT_ROOM], const cJSON *cert)
{
    const cJSON *region = cJSON_GetObjectItemCaseSensitive(cert, "region");
    const double defect = taut_report_number(cert, "defect");
    const taut_about about = { .reads = cJSON_HasObjectItem(region, "rows")  ? TAUT_ABOUT_ROWS
                                        : cJSON_HasObjectItem(region, "box") ? TAUT_ABOUT_PIXELS
                                                                             : TAUT_ABOUT_TOKENS,
                               .tokens = (int64_t)taut_report_number(cert, "tokens"),
                               .room = taut_report_number(region, "room"),
                               .reach = taut_report_number(region, "reach"),
                               .rows = taut_report_number(region, "rows"),
                               .defect = defect };
    return taut_about_text(text, &about);
}

static void said(taut_page *p, const cJSON *cert, bool flat)
{
    char word[32], about[TAUT_ABOUT_ROOM];
    const double lip = taut_report_number(cert, "lip");
    if (isfinite(lip))
        taut_page_say(p,
                      "Proved from the stored weights: when an input moves by d, the answer moves by at most %s d (l2, "
                      "%s), %s.  The proof is in certificate.json; taut check verifies it.",
                      taut_number_up(word, lip), flat ? "over everything" : "by the largest token",
                      taut_report_about(about, cert));
    else
        taut_page_say(p,
                      "No finite Lipschitz constant is proved of this model: the layers below say where it is lost.");
}

void taut_report_certificate(taut_page *p, const cJSON *cert, const char *run)
{
    static taut_fall fall[LAYERS];
    const char *row[LAYERS], *norm = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(cert, "norm"));
    double at[LAYERS], lip[LAYERS], out[LAYERS], so_far[LAYERS], product = 1;
    char name[96];
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
    said(p, cert, norm && strcmp(norm, "flat") == 0);
    if (count) {
        const taut_bars bars = { "layer", "Lipschitz constant", true, count, row, lip };
        snprintf(name, sizeof name, "%.60s-waterfall", run);
        taut_page_bars(p, name, "Where the budget goes",
                       "What each layer can multiply a change by, proved, from the input down: the product of all is, "
                       "but for rounding, "
                       "the constant of "
                       "the whole network.",
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
                       "Behind each layer: how long a token can be at most, and how much a change has been multiplied "
                       "by up to there.",
                       &sizes);
    }
}
