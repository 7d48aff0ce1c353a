/* A siege that several processes lay together, through a folder: each certifies and attacks pieces of the examples, and reads
 * in the end what all have found.  What is read is what one process would have computed, piece by piece, in the same order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/join.h"
#include "base/json.h"
#include "verdict/siege.h"

static int64_t batch_of(const taut_siege_way *way) { return way->batch ? way->batch : 16; }

/* The folder DIR/what, and all that decides the results. */
static taut_status name_work(char **folder, char **key, const taut_siege *s, const taut_siege_way *way,
                             const char *what)
{
    const size_t len = strlen(way->join) + strlen(what) + 2;
    cJSON *o = taut_campaign_describe(&s->c, s->about);
    cJSON_AddNumberToObject(o, "batch", (double)batch_of(way));
    *key = taut_json_text(o, false);
    cJSON_Delete(o);
    *folder = taut_malloc(len);
    if (*folder) snprintf(*folder, len, "%s/%s", way->join, what);
    return *folder && *key ? TAUT_OK : taut_no_memory("a shared attack");
}

static cJSON *tell(int64_t first, int64_t count, void *siege)
{
    const taut_siege *s = siege;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "radius", cJSON_CreateDoubleArray(s->radius + first, (int)count));
    cJSON_AddItemToObject(o, "predicted", cJSON_CreateIntArray(s->predicted + first, (int)count));
    return o;
}

static bool hear(const cJSON *o, int64_t first, int64_t count, void *siege)
{
    const taut_siege *s = siege;
    const cJSON *r = cJSON_GetObjectItem(o, "radius"), *p = cJSON_GetObjectItem(o, "predicted");
    r = r ? r->child : NULL, p = p ? p->child : NULL;
    int64_t e = first;
    for (; e < first + count && cJSON_IsNumber(r) && cJSON_IsNumber(p); e++, r = r->next, p = p->next) {
        s->radius[e] = r->valuedouble;
        s->predicted[e] = (int32_t)p->valuedouble;
    }
    return e == first + count && !r && !p;
}

taut_status taut_siege_share(taut_crew_shared *out, taut_siege *s, const taut_siege_way *way)
{
    *out = (taut_crew_shared){ .batch = batch_of(way), .tell = tell, .hear = hear };
    return name_work(&out->folder, &out->key, s, way, "certified");
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static taut_status attack_piece(taut_siege *s, taut_join *j, taut_campaign_part p)
{
    const double start = now();
    s->watch.alarms = s->watch.rounding = 0, s->watch.saved[0] = '\0';
    s->target.forwards = s->target.backwards = 0;
    const taut_status status = taut_campaign_run_part(&s->c, &s->target, s->x, s->z, s->label, p, taut_watch_part,
                                                      &s->watch);
    if (status) return status;
    cJSON *o = cJSON_CreateObject(), *by = cJSON_AddArrayToObject(o, "by");
    for (int64_t e = 0; e < p.count; e++)
        cJSON_AddItemToArray(by, cJSON_CreateNumber(taut_campaign_by(&s->c, p.eps, p.profile)[p.first + e]));
    cJSON_AddItemToObject(
        o, "distance",
        cJSON_CreateDoubleArray(taut_campaign_distance(&s->c, p.eps, p.profile) + p.first, (int)p.count));
    cJSON_AddNumberToObject(o, "alarms", (double)s->watch.alarms);
    cJSON_AddNumberToObject(o, "rounding", (double)s->watch.rounding);
    cJSON_AddStringToObject(o, "saved", s->watch.saved);
    cJSON_AddNumberToObject(o, "forwards", (double)s->target.forwards);
    cJSON_AddNumberToObject(o, "backwards", (double)s->target.backwards);
    cJSON_AddNumberToObject(o, "seconds", now() - start);
    return taut_join_put(j, o);
}

static double number(const cJSON *o, const char *key) { return cJSON_GetNumberValue(cJSON_GetObjectItem(o, key)); }

static taut_status read_piece(taut_siege *s, const taut_join *j, int64_t piece, taut_campaign_part p)
{
    cJSON *o;
    const taut_status status = taut_join_get(j, piece, &o);
    if (status) return status;
    const cJSON *b = cJSON_GetObjectItem(o, "by"), *d = cJSON_GetObjectItem(o, "distance");
    const char *saved = cJSON_GetStringValue(cJSON_GetObjectItem(o, "saved"));
    b = b ? b->child : NULL, d = d ? d->child : NULL;
    int64_t e = p.first;
    for (; e < p.first + p.count && cJSON_IsNumber(b) && cJSON_IsNumber(d); e++, b = b->next, d = d->next) {
        if (b->valuedouble < TAUT_WRONG || b->valuedouble >= TAUT_PROFILE_ATTACKS) break;
        taut_campaign_by(&s->c, p.eps, p.profile)[e] = (int8_t)b->valuedouble;
        taut_campaign_distance(&s->c, p.eps, p.profile)[e] = d->valuedouble;
    }
    const double alarms = number(o, "alarms"), rounding = number(o, "rounding"), forwards = number(o, "forwards"),
                 backwards = number(o, "backwards"), seconds = number(o, "seconds");
    const bool whole = e == p.first + p.count && saved && alarms >= 0 && rounding >= 0 && forwards >= 0 &&
                       backwards >= 0 && seconds >= 0;
    if (whole) {
        s->watch.alarms += (int64_t)alarms, s->watch.rounding += (int64_t)rounding;
        s->target.forwards += (int64_t)forwards, s->target.backwards += (int64_t)backwards;
        s->seconds += seconds;
        if (*saved) snprintf(s->watch.saved, sizeof s->watch.saved, "%s", saved);
    }
    cJSON_Delete(o);
    return whole ? TAUT_OK : taut_join_damaged(j, piece);
}

taut_status taut_siege_join_attack(taut_siege *s, const taut_siege_way *way)
{
    const int64_t batch = batch_of(way), pieces = taut_campaign_parts(&s->c, batch);
    taut_join j = { .folder = NULL };
    char *folder = NULL, *key = NULL;
    int64_t piece = 0;
    taut_status status = name_work(&folder, &key, s, way, "attacked");
    if (!status) status = taut_join_open(&j, folder, key, pieces);
    while (!status) {
        status = taut_join_take(&j, &piece, way->told, way->arg);
        if (status || piece < 0) break;
        status = attack_piece(s, &j, taut_campaign_part_at(&s->c, piece, batch));
        if (!status && way->told && way->told((double)j.next / (double)pieces, way->arg))
            status = taut_fail(TAUT_BAD_CALL, "stopped");
    }
    s->watch.alarms = s->watch.rounding = 0, s->watch.saved[0] = '\0';
    s->target.forwards = s->target.backwards = 0;
    s->seconds = 0;
    for (piece = 0; !status && piece < pieces; piece++)
        status = read_piece(s, &j, piece, taut_campaign_part_at(&s->c, piece, batch));
    taut_join_close(&j);
    free(folder);
    free(key);
    return status;
}
