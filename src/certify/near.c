/* The proof tree of the certificate again, with norm layers looked at around the example and every other node as it is stated.
 * Within r of the example what enters a node is within `moved` of what was traced, and a node hands on lip times that.  Factors a
 * little above 1 leave a checker room for the rounding of its own forward pass. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "bound/normlayer.h"
#include "certify/local.h"

static const double ROOM = 1 + 1e-6;

typedef struct {
    taut_tensor *x; /* what the norm layers read, in the order of the proof */
    int count, most, at;
    bool fits;
} norms;

static void see(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    norms *n = arg;
    (void)name, (void)depth;
    if (strcmp(m->ops->kind, "layernorm") != 0) return;
    if (n->count < n->most) n->x[n->count] = at.x;
    n->count++;
}

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsString(v) ? INFINITY : v ? cJSON_GetNumberValue(v) : 0;
}

static const cJSON *parts_of(const cJSON *o)
{
    const cJSON *of = cJSON_GetObjectItemCaseSensitive(o, "of");
    return of ? of->child : NULL;
}

/* The steepest of its tokens, each in its ball. */
static taut_up steepest(norms *n, const cJSON *proof, const cJSON *tree, taut_up moved)
{
    if (n->at >= n->count) n->fits = false;
    if (!n->fits) return UP_NONE;
    const taut_tensor x = n->x[n->at++];
    const bool centred = number(tree, "centred") != 0;
    taut_up most = UP_ZERO;
    for (int64_t t = 0; t < taut_rows(x.shape); t++)
        most = up_max(most, up_normlayer_ball(
                                up_exact(number(proof, "norm")), x.shape.d, number(tree, "eps"),
                                lo_centred_norm((const double *)x.data + t * x.shape.d, x.shape.d, centred), moved));
    return most;
}

static taut_up walk(norms *n, const cJSON *proof, const cJSON *tree, taut_up moved)
{
    const char *rule = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "rule"));
    const taut_up stated = up_exact(number(proof, "lip"));
    const bool mixes = strcmp(rule, "mix") == 0;
    if (strcmp(rule, "layernorm") == 0) return up_min(stated, steepest(n, proof, tree, moved));
    if (!mixes && strcmp(rule, "sequence") != 0) return stated;
    taut_up lip = { 1 };
    const cJSON *p = parts_of(proof), *t = parts_of(tree);
    if (p && cJSON_GetObjectItemCaseSensitive(p, "scope")) return stated;
    for (; p && t; p = p->next, t = t->next) {
        const taut_up one = walk(n, p, t, moved);
        moved = up_mul(up_mul(one, moved), (taut_up){ ROOM });
        lip = up_mul(lip, one);
    }
    n->fits = n->fits && !p && !t;
    if (mixes) lip = up_add(up_exact(number(tree, "keep")), up_mul(up_exact(number(tree, "mix")), lip));
    return up_min(stated, lip);
}

taut_status taut_near_body(taut_up *body, const taut_certificate *c, const taut_pass *pass, double r)
{
    char *text = taut_model_tree(c->model);
    cJSON *tree = text ? cJSON_Parse(text) : NULL;
    norms n = { .fits = true };
    *body = c->body;
    taut_tour_parts(c->model->root, (taut_point){ pass->x, pass->trace }, see, &n); /* how many */
    n.x = taut_malloc((size_t)(n.count + 1) * sizeof *n.x);
    const bool there = tree && n.x;
    n.most = n.count, n.count = 0;
    if (there) {
        taut_tour_parts(c->model->root, (taut_point){ pass->x, pass->trace }, see, &n);
        const taut_up lip = walk(&n, parts_of(cJSON_GetObjectItemCaseSensitive(c->json, "proof")),
                                 parts_of(cJSON_GetObjectItemCaseSensitive(tree, "root")), (taut_up){ ROOM * r });
        if (n.fits && n.at == n.count) *body = up_min(c->body, up_mul(lip, (taut_up){ ROOM }));
    }
    cJSON_Delete(tree);
    free(text);
    free(n.x);
    return there ? TAUT_OK : taut_no_memory("the norm layers of an example");
}
