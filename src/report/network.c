/* The whole network at many inputs (network.json, from taut measure --network N --json): slopes found there, under the constant
 * that is proved. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ascending.h"
#include "report/run.h"

enum { MOST = 1000 };

void taut_report_network(taut_page *p, const cJSON *m, const char *run)
{
    static double x[MOST], slope[MOST];
    const double proved = taut_report_raised(taut_report_number(m, "proved"));
    const char *said = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "about"));
    char name[96], about[600];
    int count = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(m, "slopes")) if (count < MOST && cJSON_IsNumber(v))
        slope[count++] = v->valuedouble;
    if (!count) return;
    qsort(slope, (size_t)count, sizeof *slope, taut_ascending);
    for (int i = 0; i < count; i++) x[i] = i + 1;
    const double ends[] = { 1, count }, line[] = { proved, proved };
    const taut_plot plot = { "inputs, the flattest first",
                             "slope (l2, over everything)",
                             false,
                             proved > 20 * slope[0],
                             { { "found at an input", x, slope, NULL, count, TAUT_DRAW_POINTS },
                               { "proved", ends, line, NULL, 2, TAUT_DRAW_DASHED } },
                             2 };
    snprintf(name, sizeof name, "%.60s-network", run);
    snprintf(
        about, sizeof about,
        "The steepest direction that a search found at each of some inputs, and the constant that is proved (%s): the "
        "closer the line lies over the points, the less the proof gives away.",
        said ? said : "its region was not told");
    taut_page_plot(p, name, "Found and proved", about, &plot);
}
