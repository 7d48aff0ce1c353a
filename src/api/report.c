/* A page about runs. */
#include <sys/stat.h>

#include "api/call.h"
#include "report/run.h"

taut_status taut_report_runs(const char *file, const char *title, const char *const *runs, int count, const char *svg)
{
    taut_page page;
    struct stat st;
    NEED(file);
    NEED(runs);
    if (count < 1) return taut_fail(TAUT_BAD_CALL, "a report of %d runs", count);
    for (int i = 0; i < count; i++) {
        NEED(runs[i]);
        if (stat(runs[i], &st) || !S_ISDIR(st.st_mode))
            return taut_fail(TAUT_BAD_FILE, "%s: there is no such folder", runs[i]);
    }
    taut_page_begin(&page, title ? title : "taut: a report", svg);
    taut_report_frontier(&page, count, (char *const *)runs);
    for (int i = 0; i < count; i++) taut_report_run(&page, runs[i]);
    return taut_page_end(&page, file);
}
