/* A saved contradiction looked at again: the certificate is proved anew, both inputs go through the ref kernels. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attack.h"
#include "base/alloc.h"

static void tell(const attack_scene *s, const taut_reproducer *r, double radius, double distance, int32_t before,
                 int32_t after, bool rings)
{
    if (cli_flag(s->args, "--json")) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "attack", r->attack);
        cJSON_AddNumberToObject(o, "example", (double)r->example);
        cJSON_AddNumberToObject(o, "predicted", before);
        cJSON_AddNumberToObject(o, "attacked", after);
        cJSON_AddNumberToObject(o, "distance", distance);
        cJSON_AddNumberToObject(o, "radius", radius);
        cJSON_AddBoolToObject(o, "contradiction", rings);
        cli_json(o);
        return;
    }
    printf("%s on example %lld: class %d, then %d at l2 distance %.17g; certified radius %.17g\n%s\n", r->attack,
           (long long)r->example, (int)before, (int)after, distance, radius,
           rings ? "CONTRADICTION: the certificate does not hold" : "no contradiction");
}

int attack_replay(attack_scene *s, const char *file)
{
    taut_reproducer r;
    taut_status status = taut_reproducer_load(&r, file);
    if (status) return cli_fail(s->args);
    if (strcmp(r.model, s->sha) != 0)
        status = taut_fail(TAUT_BAD_FILE, "%s is about another model", file);
    else if (r.dim != s->target.dim)
        status = taut_fail(TAUT_BAD_FILE, "%s has inputs of %lld numbers, the model reads %lld", file, (long long)r.dim,
                           (long long)s->target.dim);
    if (!status) { /* one example in the place of the data */
        s->n = 1;
        memcpy(s->x, r.x, (size_t)r.dim * sizeof *s->x);
        status = attack_certify(s, r.distance * (1 + 1e-6));
    }
    double *before = taut_malloc((size_t)s->target.classes * sizeof *before),
           *after = taut_malloc((size_t)s->target.classes * sizeof *after);
    if (!status && (!before || !after)) status = taut_no_memory("logits");
    bool rings = false;
    if (!status) {
        taut_target *judge = s->radius ? &s->ref : &s->target;
        const double radius = s->radius ? s->radius[0] : 0;
        taut_target_logits(judge, before, r.x, NULL, NULL, 1);
        taut_target_logits(judge, after, r.adv, NULL, NULL, 1);
        rings = s->radius &&
                taut_alarm_check(&s->ref, r.x, r.adv, s->predicted[0], radius, attack_slack(s)) == TAUT_ALARM_RINGS;
        tell(s, &r, radius, taut_alarm_distance(r.x, r.adv, r.dim), taut_argmax(before, s->target.classes),
             taut_argmax(after, s->target.classes), rings);
    }
    free(before), free(after);
    taut_reproducer_free(&r);
    return status ? cli_fail(s->args) : rings ? EXIT_CONTRADICTION : EXIT_DONE;
}
