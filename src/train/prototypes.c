#include "train/prototypes.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/centres.h"

enum { SAMPLE = 4096 };

typedef struct {
    const taut_model *m;
    int steps;
    int64_t wanted, seen; /* the layer to settle, and how many the tour has met */
    taut_status status;
} tour;

/* The model's own weight: modules on a tour are only looked at. */
static taut_real *own(const taut_model *m, const taut_param *p)
{
    for (int i = 0; i < m->weights; i++)
        if (m->weight[i].param == p) return m->weight[i].param->value;
    TAUT_CHECK(false, "prototypes: a weight of another model");
    return NULL;
}

static taut_status settle(const taut_model *m, taut_real *to, const taut_gathered *g, int steps)
{
    const taut_kernels *k = m->k;
    const int64_t d = g->k.shape.d, dh = d / g->heads, all = taut_rows(g->k.shape), n = all < SAMPLE ? all : SAMPLE;
    double *tokens = taut_malloc((size_t)(n * d + n * dh + g->groups * dh + 1) * sizeof *tokens);
    double *x = tokens + n * d, *centre = x + n * dh;
    taut_status s = tokens ? TAUT_OK : taut_no_memory("prototypes");
    for (int64_t i = 0; !s && i < n; i++) k->get(tokens + i * d, taut_at(k, g->k.data, i * all / n * d), d);
    for (int64_t h = 0; !s && n > 0 && h < g->heads; h++) {
        for (int64_t i = 0; i < n; i++) memcpy(x + i * dh, tokens + i * d + h * dh, (size_t)dh * sizeof *x);
        s = est_centres(centre, x, n, dh, g->groups, steps);
        for (int64_t j = 0; !s && j < g->groups; j++) k->put(taut_at(k, to, j * d + h * dh), centre + j * dh, dh);
    }
    free(tokens);
    return s;
}

static void see(const taut_module *f, const char *name, int depth, taut_point at, void *arg)
{
    tour *t = arg;
    taut_gathered g;
    (void)name;
    (void)depth;
    if (!taut_plash_look(&g, f, at) || t->seen++ != t->wanted) return;
    t->status = settle(t->m, own(t->m, taut_plash_prototypes(f)), &g, t->steps);
}

taut_status taut_prototypes_settle(taut_pass *p, int steps, void (*fill)(taut_pass *, void *arg), void *arg)
{
    tour t = { .m = p->m, .steps = steps };
    p->run.phase = (taut_phase){ 0 };
    for (bool more = true; more && !t.status; t.wanted++) {
        fill(p, arg);
        t.seen = 0;
        taut_tour_parts(p->m->root, (taut_point){ p->x, p->trace }, see, &t);
        more = t.wanted + 1 < t.seen;
    }
    return t.status;
}
