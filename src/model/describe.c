/* Which function a model file holds: its context and the tree of its modules.  Stored beside the recipe, so that whoever
 * reads the file needs no recipe to know the function; what recipes mean may grow, a stored function stays. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/model.h"

enum { OLDEST = 2 }; /* version that a checker reads */

char *taut_model_tree(const taut_model *m)
{
    taut_ledger *l = ledger_create();
    if (!l) return NULL;
    taut_describe(m->root, "", l);
    cJSON *root = ledger_take(l), *o = cJSON_CreateObject();
    ledger_free(l);
    cJSON_AddNumberToObject(o, "version", TAUT_TREE_VERSION);
    cJSON_AddNumberToObject(o, "tokens", (double)m->in.t);
    cJSON_AddNumberToObject(o, "width", (double)m->in.d);
    cJSON_AddNumberToObject(o, "unit", taut_model_sees(m));
    if (root) cJSON_AddItemToObject(o, "root", root);
    char *text = root ? taut_json_text(o, false) : NULL;
    cJSON_Delete(o);
    return text;
}

/* All that a says is in b. */
static bool within(const cJSON *a, const cJSON *b)
{
    if (!b || a->type != b->type) return false;
    if (cJSON_IsNumber(a)) return a->valuedouble == b->valuedouble;
    if (cJSON_IsString(a)) return strcmp(a->valuestring, b->valuestring) == 0;
    const cJSON *other = b->child;
    for (const cJSON *part = a->child; part; part = part->next) {
        if (cJSON_IsObject(a)) other = cJSON_GetObjectItemCaseSensitive(b, part->string);
        if (!within(part, other)) return false;
        if (cJSON_IsArray(a)) other = other->next;
    }
    return cJSON_IsObject(a) || !other;
}

/* As within, but for its version; a text that is no JSON says nothing that could be so. */
static bool agrees(const cJSON *stored, cJSON *now)
{
    const double version = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(stored, "version"));
    if (!(version >= OLDEST && version <= TAUT_TREE_VERSION)) return stored != NULL;
    cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(now, "version"), version);
    return version < TAUT_TREE_VERSION && within(stored, now);
}

taut_status taut_model_tree_fits(bool *fits, const taut_model *m, const char *stored)
{
    char *text = taut_model_tree(m);
    cJSON *now = text ? cJSON_Parse(text) : NULL, *then = cJSON_ParseWithOpts(stored, NULL, true);
    if (now) *fits = strcmp(stored, text) == 0 || agrees(then, now);
    free(text);
    cJSON_Delete(then);
    cJSON_Delete(now);
    return now ? TAUT_OK : taut_no_memory("the model's tree");
}
