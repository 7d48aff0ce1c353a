/* Walking a tree of modules: its weights by name, "block.0.attn.q.weight", or its modules where they stand in a trace. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
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
    if (!v->see) return;
    const size_t mark = enter(v, p->name, "");
    v->see(p, v->path, v->arg);
    v->path[mark] = '\0';
}

void taut_visit_constant(taut_visitor *v, taut_constant *c)
{
    if (v->constant) v->constant(c, v->arg);
}

static void constant_leave(taut_constant *c)
{
    if (c->there) c->k->release(c->there);
    c->there = NULL;
}

void taut_constant_free(taut_constant *c)
{
    constant_leave(c);
    free(c->reals);
    free(c->whole);
}

typedef struct {
    const taut_kernels *k;
    bool failed;
} placing;

static void place(taut_constant *c, void *arg)
{
    placing *p = arg;
    constant_leave(c);
    c->k = p->k;
    c->there = p->k->alloc((size_t)c->len * (c->reals ? p->k->elem : sizeof *c->whole));
    if (!c->there)
        p->failed = true;
    else if (c->reals)
        p->k->put(c->there, c->reals, c->len);
    else
        p->k->put_index(c->there, c->whole, c->len);
}

taut_status taut_module_place(taut_module *m, const taut_kernels *k)
{
    placing p = { k, false };
    taut_visitor v = { .constant = place, .arg = &p };
    m->ops->params(m, &v);
    return p.failed ? taut_no_memory("the constants of a model") : TAUT_OK;
}

void taut_visit_child(taut_visitor *v, const char *name, taut_module *child)
{
    const size_t mark = enter(v, name, *name ? "." : ""); /* an empty name adds no level */
    child->ops->params(child, v);
    v->path[mark] = '\0';
}

void taut_tour_child(taut_tour *tour, const char *name, const taut_module *child, taut_point at)
{
    tour->see(child, name, tour->depth, at, tour->arg);
    if (!child->ops->parts) return;
    tour->depth++;
    child->ops->parts(child, at, tour);
    tour->depth--;
}

void taut_tour_parts(const taut_module *root, taut_point at,
                     void (*see)(const taut_module *, const char *name, int depth, taut_point at, void *arg), void *arg)
{
    taut_tour tour = { .see = see, .arg = arg };
    taut_tour_child(&tour, "", root, at);
}
