/* Which layer spends the budget: the proof's tree cut into the factors whose product is the constant. */
#include "report/waterfall.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    taut_fall *rows;
    int room, count;
} list;

static double number(const cJSON *node, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(node, key);
    return cJSON_IsNumber(item) ? item->valuedouble : INFINITY;
}

static const char *text(const cJSON *node, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(node, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* What a branch is called: its inner node that is neither a norm nor a sequence, so "attn" or "mlp". */
static const cJSON *core(const cJSON *node)
{
    const cJSON *child, *found = NULL;
    cJSON_ArrayForEach(child, cJSON_GetObjectItemCaseSensitive(node, "of"))
    {
        const cJSON *inner = strcmp(text(child, "rule"), "sequence") == 0 ? core(child) : child;
        if (inner && !strstr(text(inner, "rule"), "norm")) found = inner;
    }
    return found;
}

static void add(list *l, const char *path, const cJSON *node)
{
    const bool branch = strcmp(text(node, "rule"), "mix") == 0;
    const cJSON *inner = branch ? core(node) : NULL;
    if (l->count < l->room) {
        taut_fall *r = &l->rows[l->count];
        snprintf(r->path, sizeof r->path, "%s%s%s", path, *path && inner ? "." : "", inner ? text(inner, "name") : "");
        snprintf(r->rule, sizeof r->rule, "%s", branch ? "residual" : text(node, "rule"));
        r->lip = number(node, "lip");
        r->out = number(node, "out");
    }
    l->count++;
}

static void walk(list *l, const char *path, const cJSON *node)
{
    const cJSON *child, *steepest = NULL;
    const bool parts = strcmp(text(node, "rule"), "parts") == 0; /* side by side: the steeper one is what counts */
    if (strcmp(text(node, "rule"), "sequence") != 0 && !parts) {
        add(l, path, node);
        return;
    }
    cJSON_ArrayForEach(child, cJSON_GetObjectItemCaseSensitive(node, "of"))
    {
        if (!steepest || number(child, "lip") > number(steepest, "lip")) steepest = child;
    }
    cJSON_ArrayForEach(child, cJSON_GetObjectItemCaseSensitive(node, "of"))
    {
        char inner[96];
        const char *name = text(child, "name");
        if (parts && child != steepest) continue;
        snprintf(inner, sizeof inner, "%s%s%s", path, *path && *name ? "." : "", name);
        walk(l, inner, child);
    }
}

int taut_waterfall(taut_fall *rows, int room, const cJSON *proof)
{
    list l = { rows, room, 0 };
    walk(&l, "", proof);
    return l.count;
}
