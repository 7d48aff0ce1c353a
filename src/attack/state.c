/* A campaign's results as JSON, so that an interrupted one goes on where it was.  The key is a sentence of everything that
 * decides the results; a state with another key is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attack/campaign.h"
#include "base/file.h"
#include "base/json.h"

cJSON *taut_campaign_describe(const taut_campaign *c, const char *about)
{
    cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "attacks");
    cJSON_AddStringToObject(o, "about", about);
    cJSON_AddStringToObject(o, "norm", taut_ball_name(c->kind));
    cJSON_AddNumberToObject(o, "seed", (double)c->seed);
    cJSON_AddNumberToObject(o, "n", (double)c->n);
    cJSON_AddItemToObject(o, "eps", cJSON_CreateDoubleArray(c->eps.value, c->eps.count));
    for (int p = 0; p < c->profiles; p++)
        for (int i = 0; i < c->profile[p].attacks; i++) {
            const taut_attack *a = &c->profile[p].attack[i];
            const double figures[] = { (double)a->kind,
                                       (double)a->loss,
                                       (double)a->steps,
                                       (double)a->restarts,
                                       (double)a->targets,
                                       (double)a->draws,
                                       a->step,
                                       a->fixed_start,
                                       a->shrink,
                                       a->rescale,
                                       p };
            cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(figures, sizeof figures / sizeof *figures));
        }
    return o;
}

static int64_t cells(const taut_campaign *c) { return (int64_t)c->eps.count * c->profiles * c->n; }

taut_status taut_campaign_save(const taut_campaign *c, const char *about, int64_t alarms, const char *path)
{
    cJSON *o = cJSON_CreateObject(), *by = cJSON_AddArrayToObject(o, "by");
    cJSON_AddStringToObject(o, "format", "taut-attack-state");
    cJSON_AddItemToObject(o, "key", taut_campaign_describe(c, about));
    cJSON_AddNumberToObject(o, "alarms", (double)alarms);
    for (int64_t i = 0; i < cells(c); i++) cJSON_AddItemToArray(by, cJSON_CreateNumber(c->by[i]));
    cJSON_AddItemToObject(o, "distance", cJSON_CreateDoubleArray(c->distance, (int)cells(c)));
    char *text = taut_json_text(o, false);
    const taut_status s = text ? taut_file_write(path, text, strlen(text)) : taut_no_memory("the state");
    free(text);
    cJSON_Delete(o);
    return s;
}

static taut_status read_cells(taut_campaign *c, const cJSON *by, const cJSON *distance, const char *path)
{
    const cJSON *b = by ? by->child : NULL, *d = distance ? distance->child : NULL;
    for (int64_t i = 0; i < cells(c); i++) {
        if (!cJSON_IsNumber(b) || !cJSON_IsNumber(d) || b->valuedouble < TAUT_WRONG ||
            b->valuedouble >= TAUT_PROFILE_ATTACKS || b->valuedouble != (double)(int)b->valuedouble)
            return taut_fail(TAUT_BAD_FILE, "%s: a damaged state of an attack", path);
        c->by[i] = (int8_t)b->valuedouble;
        c->distance[i] = d->valuedouble;
        b = b->next, d = d->next;
    }
    return TAUT_OK;
}

taut_status taut_campaign_load(taut_campaign *c, const char *about, int64_t *alarms, const char *path)
{
    char *text = NULL;
    size_t len;
    taut_status s = taut_file_read(&text, &len, path);
    if (s) return s;
    cJSON *o = cJSON_Parse(text), *want = taut_campaign_describe(c, about);
    const cJSON *format = cJSON_GetObjectItem(o, "format"), *key = cJSON_GetObjectItem(o, "key"),
                *count = cJSON_GetObjectItem(o, "alarms");
    char *is = key ? taut_json_text(key, false) : NULL, *should = taut_json_text(want, false);
    if (!cJSON_IsString(format) || strcmp(format->valuestring, "taut-attack-state") != 0 || !cJSON_IsNumber(count))
        s = taut_fail(TAUT_BAD_FILE, "%s is no state of an attack", path);
    else if (!is || !should || strcmp(is, should) != 0)
        s = taut_fail(TAUT_BAD_FILE,
                      "%s is the state of another attack (model, data, norm, eps, seed, attack or --no-certify differ)",
                      path);
    else
        s = read_cells(c, cJSON_GetObjectItem(o, "by"), cJSON_GetObjectItem(o, "distance"), path);
    if (!s) *alarms = (int64_t)count->valuedouble;
    free(is), free(should), free(text);
    cJSON_Delete(o), cJSON_Delete(want);
    return s;
}
