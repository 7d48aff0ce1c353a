#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

/* Every number in the tree becomes raw text. */
static bool spell(cJSON *o)
{
    char text[32];
    for (; o; o = o->next) {
        if (o->child && !spell(o->child)) return false;
        if (!cJSON_IsNumber(o)) continue;
        if (isfinite(o->valuedouble))
            taut_number_print(text, o->valuedouble);
        else
            memcpy(text, "null", 5);
        o->valuestring = cJSON_malloc(strlen(text) + 1); /* freed by cJSON_Delete with the item */
        if (!o->valuestring) return false;
        memcpy(o->valuestring, text, strlen(text) + 1);
        o->type = (o->type & ~0xFF) | cJSON_Raw;
    }
    return true;
}

char *taut_json_text(const cJSON *object, bool lines)
{
    cJSON *copy = cJSON_Duplicate(object, true);
    char *text = copy && spell(copy) ? (lines ? cJSON_Print(copy) : cJSON_PrintUnformatted(copy)) : NULL;
    cJSON_Delete(copy);
    return text;
}
