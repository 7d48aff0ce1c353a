/* Which function a model file holds: its context and the tree of its modules.  Stored beside the recipe, so that whoever
 * reads the file needs no recipe to know the function; what recipes mean may grow, a stored function stays. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/model.h"

enum { OLDEST = 2 }; /* the first version that checkers read */

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

/* What a tree leaves out: names and constants that docs/certificate.md lets be absent, and what checkers need to confirm it. */
typedef struct {
    bool optional, needed;
} left_out;

static void leave_out(left_out *l, const char *key)
{
    static const char *const may[] = { "name", "row", "gain", "global", "queries", "first", "count" };
    bool optional = false;
    for (size_t i = 0; i < sizeof may / sizeof *may; i++) optional = optional || strcmp(key, may[i]) == 0;
    *(optional ? &l->optional : &l->needed) = true;
}

/* All that a says is in b. */
static bool within(const cJSON *a, const cJSON *b, left_out *l)
{
    if (!b || a->type != b->type) return false;
    if (cJSON_IsNumber(a)) return a->valuedouble == b->valuedouble;
    if (cJSON_IsString(a)) return strcmp(a->valuestring, b->valuestring) == 0;
    const cJSON *other = b->child;
    for (const cJSON *part = a->child; part; part = part->next) {
        if (cJSON_IsObject(a)) other = cJSON_GetObjectItemCaseSensitive(b, part->string);
        if (!within(part, other, l)) return false;
        if (cJSON_IsArray(a)) other = other->next;
    }
    if (cJSON_IsArray(a)) return !other;
    for (const cJSON *part = b->child; part; part = part->next)
        if (!cJSON_GetObjectItemCaseSensitive(a, part->string)) leave_out(l, part->string);
    return true;
}

/* An older tree may say less, but not only by what may be absent: checkers would confirm another function.  Of other versions
 * they confirm nothing.  A text that is no JSON is no tree. */
static bool agrees(const cJSON *stored, cJSON *now)
{
    left_out l = { false, false };
    const double version = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(stored, "version"));
    if (!(version >= OLDEST && version <= TAUT_TREE_VERSION)) return stored != NULL;
    cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(now, "version"), version);
    return version < TAUT_TREE_VERSION && within(stored, now, &l) && (l.needed || !l.optional);
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
