/* Attacks beside certificates (attack.json, from taut attack --json): accuracy on clean, attacked and certified inputs. */
#include <stdio.h>

#include "report/run.h"

enum { RADII = 64 };

void taut_report_attacked(taut_page *p, const cJSON *a, const char *run)
{
    double eps[RADII + 1] = { 0 }, robust[RADII + 1], certified[RADII + 1];
    char name[96], about[400];
    int count = 1;
    const cJSON *at;
    const char *norm = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(a, "norm"));
    robust[0] = certified[0] = 100 * taut_report_number(a, "clean_acc");
    cJSON_ArrayForEach(at, cJSON_GetObjectItemCaseSensitive(a, "radii")) if (count <= RADII)
    {
        eps[count] = taut_report_lowered(taut_report_number(at, "eps_value"));
        robust[count] = 100 * taut_report_number(at, "robust_acc");
        certified[count++] = 100 * taut_report_number(at, "certified_acc");
    }
    const taut_plot plot = { "how far an input is moved",
                             "accuracy, %",
                             false,
                             false,
                             { { "kept under attack", eps, robust, NULL, count, TAUT_DRAW_LINE },
                               { "proved to be kept", eps, certified, NULL, count, TAUT_DRAW_DASHED } },
                             2 };
    snprintf(name, sizeof name, "%.60s-attacked", run);
    snprintf(
        about, sizeof about,
        "How many right answers survive when inputs are moved: those that the attacks could not turn, and those that "
        "are "
        "proved not to turn; the truth lies between the two lines.  %.0f examples, moved in %.8s; attacks that beat a "
        "certificate: %.0f.",
        taut_report_number(a, "n_ex"), norm ? norm : "?", taut_report_number(a, "contradictions"));
    taut_page_plot(p, name, "Attacked and certified", about, &plot);
    taut_report_gallery(p, cJSON_GetObjectItemCaseSensitive(a, "gallery"), run);
}
