#include "module/children.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

void taut_children_free(taut_children *c)
{
    for (int i = 0; i < c->count; i++) {
        if (c->module) taut_module_free(c->module[i]);
        if (c->name) free(c->name[i]);
    }
    free(c->module);
    free(c->name);
}

taut_children taut_children_adopt(int count, const char *const *names, taut_module *const *modules)
{
    taut_children c = { count, taut_calloc((size_t)count, sizeof *c.module),
                        taut_calloc((size_t)count, sizeof *c.name) };
    bool whole = c.module && c.name;
    for (int i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        if (c.module)
            c.module[i] = modules[i];
        else
            taut_module_free(modules[i]);
        if (c.name) c.name[i] = taut_strdup(names ? names[i] : number);
        whole = whole && modules[i] && c.name[i];
    }
    if (whole) return c;
    taut_children_free(&c);
    return (taut_children){ .count = -1 };
}

void taut_children_params(taut_children *c, taut_visitor *v)
{
    for (int i = 0; i < c->count; i++) taut_visit_child(v, c->name[i], c->module[i]);
}
