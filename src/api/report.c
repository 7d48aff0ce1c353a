/* A page about runs, and what a run's folder says of itself. */
#include <math.h>
#include <sys/stat.h>

#include "api/call.h"
#include "bound/ledger.h"
#include "report/run.h"

static taut_status check_folders(const char *const *runs, int count)
{
    struct stat st;
    if (count < 1) return taut_fail(TAUT_BAD_CALL, "a report of %d runs", count);
    for (int i = 0; i < count; i++) {
        if (!runs[i]) return taut_fail(TAUT_BAD_CALL, "run %d is NULL", i);
        if (stat(runs[i], &st) || !S_ISDIR(st.st_mode))
            return taut_fail(TAUT_BAD_FILE, "%s: there is no such folder", runs[i]);
    }
    return TAUT_OK;
}

taut_status taut_report_page(int *figures, const char *file, const char *const *runs, int count,
                             const taut_page_options *options)
{
    taut_page_options o;
    taut_page page;
    NEED(file);
    NEED(runs);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = check_folders(runs, count);
    if (s) return s;
    taut_page_begin(&page, o.title ? o.title : "taut: a report", o.svg);
    taut_report_frontier(&page, count, (char *const *)runs);
    for (int i = 0; i < count && !o.frontier; i++) taut_report_run(&page, runs[i]);
    if (figures) *figures = page.figures;
    return taut_page_end(&page, file);
}

taut_status taut_report_runs(const char *file, const char *title, const char *const *runs, int count, const char *svg)
{
    const taut_page_options o = { .size = sizeof o, .title = title, .svg = svg };
    return taut_report_page(NULL, file, runs, count, &o);
}

taut_status taut_run_json(char **json, const char *run)
{
    bool broken = false, other = false;
    char about[TAUT_ABOUT_ROOM];
    NEED(json);
    *json = NULL;
    NEED(run);
    taut_status s = check_folders(&run, 1);
    if (s) return s;
    cJSON *o = cJSON_CreateObject(), *summary = taut_report_json(run, "summary.json", &broken),
          *cert = taut_report_own(run, "certificate.json", &broken, &other);
    const double lip = taut_report_number(cert, "lip");
    cJSON_AddBoolToObject(o, "finished",
                          summary && !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(summary, "stopped")));
    cJSON_AddItemToObject(o, "summary", summary ? summary : cJSON_CreateNull());
    cJSON_AddItemToObject(o, "lip", isnan(lip) ? cJSON_CreateNull() : up_json((taut_up){ lip }));
    if (cert) cJSON_AddStringToObject(o, "about", taut_report_about(about, cert));
    cJSON_Delete(cert);
    return taut_json_out(json, o, TAUT_OK);
}
