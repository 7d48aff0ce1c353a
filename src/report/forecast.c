/* A forecast as pictures (forecast.json, from taut eval --json): what was read, what came, what was said, and how far that can
 * move when what was read moves. */
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "report/run.h"

enum { ROWS = 2000 };

/* In the column's own units where it says them: standardised numbers times its deviation, plus its mean. */
static int take(double to[ROWS], const cJSON *one, const char *key)
{
    const double mean = taut_report_number(one, "mean"), deviation = taut_report_number(one, "deviation");
    int count = 0;
    const cJSON *v, *list = cJSON_GetObjectItemCaseSensitive(one, key);
    cJSON_ArrayForEach(v, list)
    {
        const double x = cJSON_IsNumber(v) ? v->valuedouble : NAN;
        if (count < ROWS) to[count++] = isfinite(mean) && isfinite(deviation) ? mean + deviation * x : x;
    }
    return count;
}

/* The forecast plus and minus `moves`, around; a little wider, since six digits of it are shown. */
static int band(double x[2 * ROWS], double y[2 * ROWS], const double *at, const double *said, int count, double moves)
{
    for (int i = 0; i < count; i++) {
        x[i] = x[2 * count - 1 - i] = at[i];
        const double wide = moves + 1e-5 * (fabs(said[i]) + moves);
        y[i] = said[i] + wide;
        y[2 * count - 1 - i] = said[i] - wide;
    }
    return 2 * count;
}

static void column(taut_page *p, const cJSON *one, int index, const cJSON *all, const char *run)
{
    static double x[2 * ROWS], past[ROWS], came[ROWS], said[ROWS], bx[2 * ROWS], by[2 * ROWS];
    const int seq = take(past, one, "read"), ahead = take(came, one, "came"), told = take(said, one, "said");
    const char *called = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "name"));
    const double deviation = called ? taut_report_number(one, "deviation") : 1;
    const double moves = taut_report_number(all, "moves"), noise = taut_report_number(all, "noise");
    char name[96], title[64], known[96], least[32], most[32], region[TAUT_ABOUT_ROOM], about[800];
    for (int i = 0; i < seq + ahead; i++) x[i] = i - seq;
    taut_plot plot = { .x_name = "rows from now", .y_name = called ? "value" : "value, standardised", .count = 3 };
    plot.series[0] = (taut_series){ "read", x, past, NULL, seq, TAUT_DRAW_LINE };
    plot.series[1] = (taut_series){ "came", x + seq, came, NULL, ahead, TAUT_DRAW_LINE };
    plot.series[2] = (taut_series){ "forecast", x + seq, said, NULL, told < ahead ? told : ahead, TAUT_DRAW_DASHED };
    snprintf(about, sizeof about, "What the model read, what really came, and what it said would come.");
    if (isfinite(moves)) {
        snprintf(known, sizeof known, "forecast can be, proved");
        const taut_about rows = { .reads = TAUT_ABOUT_ROWS, .rows = taut_report_number(all, "rows"), .room = noise };
        snprintf(
            about, sizeof about,
            "What the model read, what really came, and what it said would come; the band is proved: if no row it read "
            "had been off by more than %s, no row of the forecast would have moved by more than %s (both "
            "standardised), %s.",
            taut_number_down(least, noise), taut_number_up(most, moves), taut_about_text(region, &rows));
        plot.series[plot.count++] = (taut_series){
            known, bx, by, NULL, band(bx, by, x + seq, said, plot.series[2].count, moves * deviation), TAUT_DRAW_BAND
        };
    }
    snprintf(name, sizeof name, "%.60s-column-%d", run, index);
    if (called)
        snprintf(title, sizeof title, "Forecast of %.40s", called);
    else
        snprintf(title, sizeof title, "Forecast of column %d", index);
    taut_page_plot(p, name, title, about, &plot);
}

void taut_report_forecast(taut_page *p, const cJSON *f, const char *run)
{
    const cJSON *one;
    int index = 0;
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(f, "columns")) column(p, one, index++, f, run);
}
