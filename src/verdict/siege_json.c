/* The results of a siege as JSON: what people, reports and RobustBench read. */
#include <stdio.h>

#include "verdict/siege.h"

static double share(const taut_siege *s, int64_t count) { return (double)count / (double)s->n; }
static double percent(const taut_siege *s, int64_t count) { return 100 * share(s, count); }

static int64_t broken_by(const taut_campaign *c, int eps, int profile, int attack)
{
    const int before = attack ? (int)taut_campaign_left(c, eps, profile, attack - 1) : (int)taut_campaign_clean(c);
    return before - taut_campaign_left(c, eps, profile, attack);
}

/* How far the furthest input that broke one is from its image. */
static double furthest(const taut_campaign *c, int eps)
{
    double most = 0;
    for (int p = 0; p < c->profiles; p++)
        for (int64_t e = 0; e < c->n; e++) {
            const double d = taut_campaign_distance(c, eps, p)[e];
            if (taut_campaign_by(c, eps, p)[e] >= 0 && d > most) most = d;
        }
    return most;
}

static cJSON *radius_json(const taut_siege *s, int eps)
{
    const taut_campaign *c = &s->c;
    cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "attacks");
    cJSON_AddStringToObject(o, "eps", c->eps.text[eps]);
    cJSON_AddNumberToObject(o, "eps_value", c->eps.value[eps]);
    cJSON_AddNumberToObject(o, "robust_acc", share(s, taut_campaign_worst(c, eps)));
    if (s->radius) cJSON_AddNumberToObject(o, "certified_acc", share(s, taut_siege_certified(s, eps)));
    if (s->radius) cJSON_AddNumberToObject(o, "certified_l2", taut_siege_l2(s, eps));
    for (int p = 0; p < c->profiles; p++) {
        const taut_profile *f = &c->profile[p];
        cJSON *one = cJSON_CreateObject(), *parts = cJSON_AddArrayToObject(one, "parts");
        cJSON_AddStringToObject(one, "profile", f->name);
        cJSON_AddNumberToObject(one, "robust_acc", share(s, taut_campaign_left(c, eps, p, f->attacks - 1)));
        for (int i = 0; i < f->attacks; i++) {
            cJSON *part = cJSON_CreateObject();
            cJSON_AddStringToObject(part, "attack", f->attack[i].name);
            cJSON_AddNumberToObject(part, "steps", (double)f->attack[i].steps);
            cJSON_AddNumberToObject(part, "after", share(s, taut_campaign_left(c, eps, p, i)));
            cJSON_AddNumberToObject(part, "broken", (double)broken_by(c, eps, p, i));
            cJSON_AddItemToArray(parts, part);
        }
        cJSON_AddItemToArray(list, one);
    }
    cJSON_AddNumberToObject(o, "largest_perturbation", furthest(c, eps));
    return o;
}

/* The fields of a RobustBench entry; what taut cannot know stays empty. */
static cJSON *robustbench(const taut_siege *s, const char *attacks, int eps)
{
    const taut_campaign *c = &s->c;
    static const char *const empty[] = { "link", "name", "authors", "venue", "reported" };
    cJSON *o = cJSON_CreateObject();
    char text[32], note[160];
    for (int i = 0; i < 5; i++) cJSON_AddStringToObject(o, empty[i], "");
    cJSON_AddBoolToObject(o, "additional_data", false);
    cJSON_AddStringToObject(o, "number_forward_passes", "1");
    cJSON_AddStringToObject(o, "dataset", s->data ? s->data : "");
    cJSON_AddStringToObject(o, "architecture", taut_arch_name(s->model->spec.arch));
    cJSON_AddStringToObject(o, "eps", c->eps.text[eps]);
    snprintf(text, sizeof text, "%.2f", percent(s, taut_campaign_clean(c)));
    cJSON_AddStringToObject(o, "clean_acc", text);
    snprintf(text, sizeof text, "%.2f", percent(s, taut_campaign_worst(c, eps)));
    cJSON_AddStringToObject(o, "autoattack_acc", text);
    snprintf(note, sizeof note, "taut %s, %s, %s, %lld examples, seed %llu", TAUT_VERSION, taut_ball_name(c->kind),
             attacks, (long long)s->n, (unsigned long long)c->seed);
    cJSON_AddStringToObject(o, "footnote", note);
    cJSON_AddBoolToObject(o, "unreliable", s->warnings.serious > 0);
    return o;
}

cJSON *taut_siege_json(const taut_siege *s, const char *attacks)
{
    const taut_campaign *c = &s->c;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "model", s->sha);
    cJSON_AddStringToObject(o, "norm", taut_ball_name(c->kind));
    cJSON_AddNumberToObject(o, "n_ex", (double)s->n);
    cJSON_AddNumberToObject(o, "seed", (double)c->seed);
    cJSON_AddNumberToObject(o, "clean_acc", share(s, taut_campaign_clean(c)));
    cJSON *radii = cJSON_AddArrayToObject(o, "radii"), *bench = cJSON_AddArrayToObject(o, "robustbench");
    for (int i = 0; i < c->eps.count; i++) cJSON_AddItemToArray(radii, radius_json(s, i));
    for (int i = 0; i < c->eps.count; i++) cJSON_AddItemToArray(bench, robustbench(s, attacks, i));
    const cJSON *table = cJSON_GetObjectItem(s->cert.json, "for");
    if (table) cJSON_AddStringToObject(o, "for", table->valuestring);
    if (s->why) cJSON_AddStringToObject(o, "not_certified", s->why);
    cJSON *warnings = cJSON_AddArrayToObject(o, "warnings");
    for (int i = 0; i < s->warnings.count; i++) cJSON_AddItemToArray(warnings, cJSON_CreateString(s->warnings.line[i]));
    cJSON_AddNumberToObject(o, "contradictions", (double)s->watch.alarms);
    cJSON_AddNumberToObject(o, "float_only", (double)s->watch.rounding);
    if (s->watch.saved[0]) cJSON_AddStringToObject(o, "reproducer", s->watch.saved);
    if (s->shown) cJSON_AddItemToObject(o, "gallery", cJSON_Duplicate(s->gallery, true));
    cJSON_AddNumberToObject(o, "forwards", (double)s->target.forwards);
    cJSON_AddNumberToObject(o, "backwards", (double)s->target.backwards);
    cJSON_AddNumberToObject(o, "seconds", s->seconds);
    return o;
}
