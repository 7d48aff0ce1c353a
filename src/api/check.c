/* The check of a certificate by the independent checker. */
#include "check/check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/call.h"
#include "api/net.h"
#include "base/about.h"
#include "base/sha256.h"
#include "bound/ledger.h"

static taut_status check(taut_checked *r, const char *cert, const char *model)
{
    char *path = taut_model_path(model);
    const taut_status s = path ? taut_check_files(r, cert, path) : taut_no_memory("a path");
    free(path);
    return s;
}

taut_status taut_check_certificate(taut_check_facts *out, const char *cert, const char *model)
{
    taut_checked r;
    NEED(out);
    NEED(cert);
    NEED(model);
    const taut_status s = check(&r, cert, model);
    if (s) return s;
    *out = (taut_check_facts){ .verdict = r.foreign   ? TAUT_CANNOT_SAY
                                          : !r.holds  ? TAUT_REFUTED
                                          : r.unknown ? TAUT_CANNOT_SAY
                                                      : TAUT_CONFIRMED,
                               .lip = r.lip,
                               .numbers = r.numbers,
                               .examples = r.examples,
                               .certified = r.certified,
                               .unknown = r.unknown };
    if (r.foreign || !r.holds) memcpy(out->why, r.why, sizeof out->why);
    return TAUT_OK;
}

/* As in the certificate. */
static cJSON *region_json(const taut_checked *r)
{
    cJSON *o = cJSON_CreateObject();
    if (r->pixels) cJSON_AddItemToObject(o, "box", cJSON_CreateIntArray((const int[]){ 0, 1 }, 2));
    if (r->series) cJSON_AddItemToObject(o, "rows", up_json((taut_up){ r->rows }));
    cJSON_AddItemToObject(o, "room", up_json((taut_up){ r->room }));
    if (!r->pixels) cJSON_AddItemToObject(o, "reach", up_json((taut_up){ r->reach }));
    return o;
}

static void add_about(cJSON *o, const taut_checked *r)
{
    char text[TAUT_ABOUT_ROOM];
    const taut_about about = { .reads = r->pixels   ? TAUT_ABOUT_PIXELS
                                        : r->series ? TAUT_ABOUT_ROWS
                                                    : TAUT_ABOUT_TOKENS,
                               .tokens = r->tokens,
                               .room = r->room,
                               .reach = r->reach,
                               .rows = r->rows,
                               .defect = r->defect };
    cJSON_AddStringToObject(o, "about", taut_about_text(text, &about));
}

/* Who checked what, and when: a report says "checked" only of these bytes. */
static void add_when(cJSON *o, const char *cert)
{
    char hex[65], date[32];
    uint64_t bytes;
    struct tm day;
    const time_t now = time(NULL);
    if (!taut_sha256_file(hex, &bytes, cert)) cJSON_AddStringToObject(o, "certificate", hex);
    cJSON_AddStringToObject(o, "checker", "taut check " TAUT_VERSION);
    if (gmtime_r(&now, &day) && strftime(date, sizeof date, "%Y-%m-%d", &day)) cJSON_AddStringToObject(o, "date", date);
}

taut_status taut_check_json(char **json, const char *cert, const char *model)
{
    taut_checked r;
    NEED(json);
    *json = NULL;
    NEED(cert);
    NEED(model);
    const taut_status s = check(&r, cert, model);
    if (s) return s;
    cJSON *o = cJSON_CreateObject();
    add_when(o, cert);
    cJSON_AddItemToObject(o, "holds", r.foreign ? cJSON_CreateNull() : cJSON_CreateBool(r.holds));
    if (!r.holds) {
        cJSON_AddStringToObject(o, "why", r.why);
        return taut_json_out(json, o, TAUT_OK);
    }
    cJSON_AddStringToObject(o, "norm", r.flat ? "flat" : "tokens");
    cJSON_AddItemToObject(o, "lip", up_json((taut_up){ r.lip }));
    cJSON_AddNumberToObject(o, "tokens", (double)r.tokens);
    cJSON_AddItemToObject(o, "region", region_json(&r));
    add_about(o, &r);
    cJSON_AddNumberToObject(o, "numbers", (double)r.numbers);
    cJSON_AddNumberToObject(o, "examples", (double)r.examples);
    cJSON_AddNumberToObject(o, "certified", (double)r.certified);
    cJSON_AddNumberToObject(o, "unknown", (double)r.unknown);
    if (r.tolerance > 0 || *r.table) cJSON_AddNumberToObject(o, "tolerance", r.tolerance);
    if (*r.table) cJSON_AddStringToObject(o, "for", r.table);
    cJSON_AddNumberToObject(o, "defect", r.defect);
    return taut_json_out(json, o, TAUT_OK);
}
