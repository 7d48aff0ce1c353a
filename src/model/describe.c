/* Which function a model file holds: its context and the tree of its modules.  Stored beside the recipe, so that whoever
 * reads the file needs no recipe to know the function; what recipes mean may grow, a stored function stays. */
#include "base/json.h"
#include "model/model.h"

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
