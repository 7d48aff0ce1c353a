/* Walking a tree of modules and naming what is found: "block.0.attn.q.weight". */
#include <string.h>

#include "module/module.h"

void taut_params(taut_module *m, void (*see)(taut_param *, const char *path, void *arg), void *arg)
{
    taut_visitor v = { .see = see, .arg = arg };
    m->ops->params(m, &v);
}

/* Append `name` to the path for the time of one visit; returns the length to cut back to. */
static size_t enter(taut_visitor *v, const char *name, const char *end)
{
    const size_t mark = strlen(v->path);
    TAUT_CHECK(mark + strlen(name) + strlen(end) < sizeof v->path, "a tree this deep has no names");
    strcat(strcat(v->path, name), end);
    return mark;
}

void taut_visit_param(taut_visitor *v, taut_param *p)
{
    const size_t mark = enter(v, p->name, "");
    v->see(p, v->path, v->arg);
    v->path[mark] = '\0';
}

void taut_visit_child(taut_visitor *v, const char *name, taut_module *child)
{
    const size_t mark = enter(v, name, *name ? "." : ""); /* an empty name adds no level */
    child->ops->params(child, v);
    v->path[mark] = '\0';
}
