#include "bound/ledger.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"

enum { DEPTH = 32 };

struct taut_ledger {
    cJSON *node[DEPTH]; /* the open nodes, outermost first */
    int open;
    cJSON *root;
    char name[64];
    bool torn; /* memory ran out: the proof has a hole, and is no proof */
};

taut_ledger *ledger_create(void) { return taut_calloc(1, sizeof(taut_ledger)); }

void ledger_free(taut_ledger *l)
{
    if (!l) return;
    cJSON_Delete(l->root);
    free(l);
}

void ledger_name(taut_ledger *l, const char *name)
{
    if (l) snprintf(l->name, sizeof l->name, "%s", name);
}

static cJSON *top(taut_ledger *l) { return l->open > 0 && l->open <= DEPTH ? l->node[l->open - 1] : NULL; }

/* Adds item to the open node's field, or remembers that it could not. */
static void add(taut_ledger *l, const char *key, cJSON *item)
{
    TAUT_CHECK(!cJSON_GetObjectItemCaseSensitive(top(l), key), "ledger: a key twice in one node");
    if (item && top(l) && cJSON_AddItemToObject(top(l), key, item)) return;
    cJSON_Delete(item);
    l->torn = true;
}

void ledger_open(taut_ledger *l, const char *rule)
{
    if (!l) return;
    cJSON *node = cJSON_CreateObject(), *parent = top(l);
    cJSON *list = parent ? cJSON_GetObjectItem(parent, "of") : NULL;
    if (parent && !list) list = cJSON_AddArrayToObject(parent, "of");
    if (!node || l->open >= DEPTH || (parent ? !list : l->root != NULL)) {
        cJSON_Delete(node);
        l->torn = true;
        node = NULL;
    } else if (parent)
        cJSON_AddItemToArray(list, node);
    else
        l->root = node;
    if (l->open < DEPTH) l->node[l->open] = node;
    l->open++;
    if (*l->name) ledger_word(l, "name", l->name);
    l->name[0] = '\0';
    ledger_word(l, "rule", rule);
}

void ledger_close(taut_ledger *l)
{
    if (l) l->open--;
}

cJSON *up_json(taut_up b) { return isfinite(b.v) ? cJSON_CreateNumber(b.v) : cJSON_CreateString("inf"); }

taut_up up_state(taut_ledger *l, const char *key, taut_up number)
{
    if (number.v > 0 && number.v != 1) number = up_raise(number);
    if (l) add(l, key, up_json(number));
    return number;
}

void ledger_exact(taut_ledger *l, const char *key, double number)
{
    if (l) add(l, key, cJSON_CreateNumber(number));
}

void ledger_list(taut_ledger *l, const char *key, const double *numbers, int count)
{
    if (l) add(l, key, cJSON_CreateDoubleArray(numbers, count));
}

void ledger_word(taut_ledger *l, const char *key, const char *word)
{
    if (l) add(l, key, cJSON_CreateString(word));
}

cJSON *ledger_take(taut_ledger *l)
{
    cJSON *root = l->torn ? NULL : l->root;
    if (root) l->root = NULL;
    return root;
}
