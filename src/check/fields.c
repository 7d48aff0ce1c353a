/* JSON objects field by field.  A number may be "inf", which is above everything; NaN, negative numbers and other words are
 * refused, and so is a field that nobody asked for. */
#include <string.h>

#include "check/ck.h"

const cJSON *ck_get(const cJSON *json, const char *key) { return cJSON_GetObjectItemCaseSensitive(json, key); }

const cJSON *ck_take(ck_fields *f, const char *key)
{
    const cJSON *found = ck_get(f->json, key);
    f->taken += found != NULL;
    return found;
}

const char *ck_word(ck_fields *f, const char *key)
{
    const cJSON *found = ck_take(f, key);
    if (found && !(cJSON_IsString(found) && *found->valuestring))
        ck_fail(f->c, "%s (%s): its %s is no word", f->path, f->part, key);
    return found ? found->valuestring : "";
}

const cJSON *ck_list(ck_fields *f, const char *key, int64_t *count)
{
    const cJSON *found = ck_take(f, key);
    if (found && !cJSON_IsArray(found)) ck_fail(f->c, "%s (%s): %s is not a list", f->path, f->part, key);
    *count = cJSON_GetArraySize(found);
    return found ? found->child : NULL;
}

ck_fields ck_open(ck *c, const char *path, const cJSON *json, const char *rule, const char *part)
{
    ck_fields f = { c, path, part, json, 0 };
    if (strcmp(ck_word(&f, "rule"), rule) != 0) ck_fail(c, "%s (%s): its rule must be %s", path, part, rule);
    return f;
}

void ck_close(ck_fields *f)
{
    if (f->taken != cJSON_GetArraySize(f->json))
        ck_fail(f->c, "%s (%s): it has a field that the rule does not know", f->path, f->part);
}

double ck_stated(ck_fields *f, const char *key)
{
    const cJSON *j = ck_take(f, key);
    const bool inf = cJSON_IsString(j) && strcmp(j->valuestring, "inf") == 0;
    const double v = inf ? INFINITY : j ? cJSON_GetNumberValue(j) : 0;
    if (!(v >= 0) || isinf(v) != inf) ck_fail(f->c, "%s (%s): %s is not a number >= 0", f->path, f->part, key);
    return v;
}

/* The one place where a number is accepted. */
double ck_accept(ck_fields *f, const char *key, double stated, double proved)
{
    if (isnan(proved)) proved = INFINITY;
    if (!(stated >= proved))
        ck_fail(f->c, "%s (%s): %s is stated as %.17g, but only %.17g can be proved", f->path, f->part, key, stated,
                proved);
    f->c->out->numbers += ck_get(f->json, key) != NULL;
    return stated;
}

double ck_claim(ck_fields *f, const char *key, double proved) { return ck_accept(f, key, ck_stated(f, key), proved); }

double ck_claim_norm(ck_fields *f, const char *key, ck_mat m)
{
    const struct ck_block *mark = f->c->blocks;
    const double stated = ck_stated(f, key), proved = ck_norm(f->c, m, stated);
    ck_give_back(f->c, mark);
    return ck_accept(f, key, stated, proved);
}
