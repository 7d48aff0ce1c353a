/* A page about runs, and what a run's folder says of itself. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/call.h"
#include "base/alloc.h"
#include "base/file.h"
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

/* The runs that are meant: each folder, or all runs inside it where it is no run itself, in the order of their names. */
typedef struct {
    char **name;
    int count;
} folders;

static taut_status add_folder(folders *f, const char *parent, const char *child)
{
    char **more = taut_realloc(f->name, ((size_t)f->count + 1) * sizeof *more);
    if (more) f->name = more;
    const size_t room = strlen(parent) + strlen(child) + 2;
    char *name = more ? taut_malloc(room) : NULL;
    if (!name) return taut_no_memory("the names of runs");
    snprintf(name, room, "%s%s%s", parent, *child ? "/" : "", child);
    f->name[f->count++] = name;
    return TAUT_OK;
}

static bool is_run(const char *folder)
{
    static const char *const files[] = { "recipe.ini",   "summary.json",     "log.jsonl",     "model.safetensors",
                                         "certify.json", "certificate.json", "attack.json",   "network.json",
                                         "measure.json", "growth.json",      "forecast.json", "attention.json" };
    char path[4096];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (snprintf(path, sizeof path, "%s/%s", folder, files[i]) < (int)sizeof path && taut_file_exists(path))
            return true;
    return false;
}

static taut_status add_runs(folders *f, const char *folder)
{
    struct dirent **list = NULL;
    char path[4096];
    if (is_run(folder)) return add_folder(f, folder, "");
    taut_status s = TAUT_OK;
    const int before = f->count, found = scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        const bool whole = snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name) < (int)sizeof path;
        if (!s && list[i]->d_name[0] != '.' && whole && is_run(path)) s = add_folder(f, folder, list[i]->d_name);
        free(list[i]);
    }
    free(list);
    if (s || f->count > before) return s;
    return taut_fail(TAUT_BAD_FILE, "%s: no run is in it, nor in the folders in it", folder);
}

static void free_folders(folders *f)
{
    for (int i = 0; i < f->count; i++) free(f->name[i]);
    free(f->name);
}

taut_status taut_report_page(int *figures, const char *file, const char *const *runs, int count,
                             const taut_page_options *options)
{
    taut_page_options o;
    taut_page page;
    folders f = { NULL, 0 };
    NEED(file);
    NEED(runs);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s && !(o.radius >= 0 && o.radius <= 1e9)) s = taut_fail(TAUT_BAD_CALL, "radius must be in [0, 1e9]");
    if (!s) s = check_folders(runs, count);
    for (int i = 0; !s && i < count; i++) s = add_runs(&f, runs[i]);
    if (!s) {
        taut_page_begin(&page, o.title ? o.title : "taut: a report", o.svg);
        taut_report_frontier(&page, f.count, f.name);
        for (int i = 0; i < f.count && !o.frontier; i++) taut_report_run(&page, f.name[i], o.radius);
        if (figures) *figures = page.figures;
        s = taut_page_end(&page, file);
    }
    free_folders(&f);
    return s;
}

taut_status taut_report_runs(const char *file, const char *title, const char *const *runs, int count, const char *svg)
{
    const taut_page_options o = { .size = sizeof o, .title = title, .svg = svg };
    return taut_report_page(NULL, file, runs, count, &o);
}

/* The constant of a run under a target, in the norm and units of that. */
static void add_target(cJSON *o, const cJSON *summary)
{
    const char *about = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(summary, "about"));
    cJSON_AddNumberToObject(o, "target", taut_report_number(summary, "target"));
    cJSON_AddItemToObject(o, "bound", up_json((taut_up){ taut_report_number(summary, "bound") }));
    cJSON_AddStringToObject(o, "measure", taut_report_measure(summary));
    cJSON_AddStringToObject(o, "about", about ? about : "");
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
          *cert = taut_report_own(run, "certificate.json", &broken, &other),
          *now = taut_report_own(run, "summary.json", &broken, &other);
    const double lip = taut_report_number(cert, "lip");
    cJSON_AddBoolToObject(o, "finished", now && !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(now, "stopped")));
    cJSON_AddItemToObject(o, "summary", summary ? summary : cJSON_CreateNull());
    cJSON_AddItemToObject(o, "lip", isnan(lip) ? cJSON_CreateNull() : up_json((taut_up){ lip }));
    if (cert) cJSON_AddStringToObject(o, "measure", taut_report_measure(cert));
    if (cert) cJSON_AddStringToObject(o, "about", taut_report_about(about, cert));
    if (taut_report_number(now, "target") > 0) add_target(cJSON_AddObjectToObject(o, "target"), now);
    cJSON_Delete(now);
    cJSON_Delete(cert);
    return taut_json_out(json, o, TAUT_OK);
}
