/* PLASH attention (M = 64 representatives, degrees 1 and 2 with 256 buckets, one mixer) beside our own exact
 * attention at 2048 to 65536 tokens of 512 features and 4 heads, on the same queries, keys and values in turns:
 * the three stages alone, without the projections both would share.  exponent is the slope of ln time over ln n;
 * peak_bytes is what PLASH uses beyond q, k, v, its output and one number a query and head; certificate is the fast
 * bound on the deviation, clusters included.  rivals: those of linear time with M features, landmarks or tokens of a
 * window, and M/4 global tokens (bench/rivals.c). */
#include <math.h>

#include "bench/bench.h"
#include "bench/race_plash.h"
#include "bench/rivals.h"
#include "kernels/kernels.h"

static const race_plan sizes[] = {
    { 2048, 64, 256, 9, 3, true },  { 4096, 64, 256, 9, 2, true },  { 8192, 64, 256, 9, 2, true },
    { 10240, 64, 256, 9, 2, true }, { 11264, 64, 256, 9, 2, true }, { 65536, 64, 256, 5, 1, true },
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void add_time(cJSON *o, const char *name, race_time t)
{
    cJSON *list = cJSON_AddArrayToObject(o, name);
    cJSON_AddItemToArray(list, cJSON_CreateNumber(t.low));
    cJSON_AddItemToArray(list, cJSON_CreateNumber(t.median));
    cJSON_AddItemToArray(list, cJSON_CreateNumber(t.high));
}

static double slope(const double *x, const double *y, int n)
{
    double mx = 0, my = 0, xy = 0, xx = 0;
    for (int i = 0; i < n; i++) mx += x[i] / n, my += y[i] / n;
    for (int i = 0; i < n; i++) xy += (x[i] - mx) * (y[i] - my), xx += (x[i] - mx) * (x[i] - mx);
    return xy / xx;
}

cJSON *bench_plash(void)
{
    cJSON *out = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(out, "sizes");
    double x[SIZES], y[SIZES];
    cJSON_AddNumberToObject(out, "threads", taut_threads());
    cJSON_AddNumberToObject(out, "heads", RACE_HEADS);
    cJSON_AddNumberToObject(out, "width", RACE_WIDTH);
    for (int i = 0; i < SIZES; i++) {
        race_result r;
        cJSON *o = cJSON_CreateObject();
        cJSON_AddItemToArray(list, o);
        cJSON_AddNumberToObject(o, "n", (double)sizes[i].n);
        if (!race_rivals(cJSON_AddArrayToObject(o, "rivals"), taut_kernels_find("cpu"), sizes[i].n, sizes[i].groups,
                         5) ||
            !race_plash(&r, taut_kernels_find("cpu"), &sizes[i])) {
            cJSON_Delete(out);
            return NULL;
        }
        const double ratio = r.exact.median / r.plash.median;
        add_time(o, "plash_s", r.plash);
        add_time(o, "exact_s", r.exact);
        add_time(o, "certificate_s", r.certificate);
        cJSON_AddNumberToObject(o, "ratio", ratio);
        cJSON_AddNumberToObject(o, "certificate_ratio", r.certificate.median / r.plash.median);
        cJSON_AddNumberToObject(o, "peak_bytes", r.plash_peak);
        cJSON_AddNumberToObject(o, "deviation", r.deviation);
        if (sizes[i].n == 11264) cJSON_AddNumberToObject(out, "ratio_11264", ratio);
        if (sizes[i].n == 65536) cJSON_AddNumberToObject(out, "ratio_65536", ratio);
        x[i] = log((double)sizes[i].n), y[i] = log(r.plash.median);
    }
    cJSON_AddNumberToObject(out, "exponent", slope(x, y, SIZES));
    return out;
}
