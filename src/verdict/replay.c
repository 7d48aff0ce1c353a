/* A saved contradiction looked at again: the certificate is proved anew, both inputs go through the ref kernels. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "verdict/siege.h"

/* On the example that the siege holds now. */
static taut_status look(taut_siege *s, const taut_reproducer *r, cJSON **json)
{
    const int64_t classes = s->target.classes;
    double *before = taut_malloc((size_t)classes * sizeof *before),
           *after = taut_malloc((size_t)classes * sizeof *after);
    cJSON *o = cJSON_CreateObject();
    const double radius = s->radius ? s->radius[0] : 0;
    taut_alarm alarm = TAUT_ALARM_QUIET;
    taut_status status = before && after && o ? TAUT_OK : taut_no_memory("logits");
    if (!status && s->radius)
        status = taut_alarm_check(&alarm, &s->ref, r->x, r->adv, s->predicted[0], radius, taut_siege_slack(s));
    if (!status) {
        taut_target *judge = s->radius ? &s->ref : &s->target;
        taut_target_logits(judge, before, r->x, NULL, NULL, 1);
        taut_target_logits(judge, after, r->adv, NULL, NULL, 1);
        cJSON_AddStringToObject(o, "attack", r->attack);
        cJSON_AddNumberToObject(o, "example", (double)r->example);
        cJSON_AddNumberToObject(o, "predicted", taut_argmax(before, classes));
        cJSON_AddNumberToObject(o, "attacked", taut_argmax(after, classes));
        cJSON_AddNumberToObject(o, "distance", taut_alarm_distance(r->x, r->adv, r->dim));
        cJSON_AddNumberToObject(o, "radius", radius);
        cJSON_AddBoolToObject(o, "contradiction", alarm == TAUT_ALARM_RINGS);
    }
    free(before);
    free(after);
    if (status)
        cJSON_Delete(o);
    else
        *json = o;
    return status;
}

taut_status taut_siege_replay(taut_siege *s, const char *file, cJSON **json)
{
    taut_reproducer r;
    taut_status status = taut_reproducer_load(&r, file);
    if (status) return status;
    if (strcmp(r.model, s->sha) != 0)
        status = taut_fail(TAUT_BAD_FILE, "%s is about another model", file);
    else if (r.dim != s->target.dim)
        status = taut_fail(TAUT_BAD_FILE, "%s has inputs of %lld numbers, the model reads %lld", file, (long long)r.dim,
                           (long long)s->target.dim);
    if (!status) { /* one example in the place of the data */
        s->n = 1;
        memcpy(s->x, r.x, (size_t)r.dim * sizeof *s->x);
        status = taut_siege_certify(s, r.distance * (1 + 1e-6), &(taut_siege_way){ .join = NULL });
    }
    if (!status) status = look(s, &r, json);
    taut_reproducer_free(&r);
    return status;
}
