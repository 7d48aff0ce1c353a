/* The proof tree of the certificate again, with norm layers, softmax attention and perceptrons looked at around the example and
 * every other node as it is stated.  Within r of the example what enters a node is within `moved` of what was traced, and a node
 * hands on lip times that.  Factors a little above 1 leave a checker room for the rounding of its own forward pass. */
#include "certify/near.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/norm.h"
#include "bound/normlayer.h"
#include "certify/local.h"

static const double ROOM = 1 + 1e-6;

typedef struct {
    const taut_certificate *c;
    taut_tensor *x; /* what the layers read that are looked at, in the order of the proof */
    int count, most, at;
    bool fits;
} layers;

static bool is_attention(const char *rule) { return strcmp(rule, "attention") == 0 || strcmp(rule, "window") == 0; }
static bool is_near(const char *rule)
{
    return strcmp(rule, "layernorm") == 0 || strcmp(rule, "mlp") == 0 || is_attention(rule);
}

static void see(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    layers *n = arg;
    (void)name, (void)depth;
    if (!is_near(m->ops->kind)) return;
    if (n->count < n->most) n->x[n->count] = at.x;
    n->count++;
}

double taut_near_number(const cJSON *o, const char *key)
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
static taut_up steepest(const taut_near_node *at, taut_up moved)
{
    const taut_tensor x = at->x;
    const bool centred = taut_near_number(at->tree, "centred") != 0;
    taut_up most = UP_ZERO;
    for (int64_t t = 0; t < taut_rows(x.shape); t++)
        most = up_max(most,
                      up_normlayer_ball(
                          up_exact(taut_near_number(at->proof, "norm")), x.shape.d, taut_near_number(at->tree, "eps"),
                          lo_centred_norm((const double *)x.data + t * x.shape.d, x.shape.d, centred), moved));
    return most;
}

static void step_into(char *path, size_t size, const char *from, const cJSON *tree)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "name"));
    snprintf(path, size, "%s%s%s", from, *from && name ? "." : "", name ? name : "");
}

static taut_up one_layer(const taut_near_node *at, const char *rule, taut_up moved)
{
    if (is_attention(rule)) return up_near_attention(at, moved);
    return strcmp(rule, "mlp") == 0 ? up_near_mlp(at, 0, 1, moved) : steepest(at, moved);
}

/* A perceptron that answers for the mix around it. */
static taut_up joint(layers *n, const cJSON *proof, const cJSON *mix, const char *from, taut_up moved)
{
    char path[128];
    const cJSON *tree = parts_of(mix);
    if (!tree || n->at >= n->count) n->fits = false;
    if (!n->fits) return UP_NONE;
    step_into(path, sizeof path, from, tree);
    const taut_near_node at = { n->c, proof, tree, path, n->x[n->at++] };
    return up_near_mlp(&at, taut_near_number(mix, "keep"), taut_near_number(mix, "mix"), moved);
}

static taut_up walk(layers *n, const cJSON *proof, const cJSON *tree, const char *from, taut_up moved)
{
    char path[96];
    const char *rule = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "rule"));
    const taut_up stated = up_exact(taut_near_number(proof, "lip"));
    const bool mixes = strcmp(rule, "mix") == 0;
    step_into(path, sizeof path, from, tree);
    if (is_near(rule)) {
        if (n->at >= n->count) n->fits = false;
        if (!n->fits) return UP_NONE;
        const taut_near_node at = { n->c, proof, tree, path, n->x[n->at++] };
        return up_min(stated, one_layer(&at, rule, moved));
    }
    if (!mixes && strcmp(rule, "sequence") != 0) return stated;
    taut_up lip = { 1 };
    const cJSON *p = parts_of(proof), *t = parts_of(tree);
    if (p && cJSON_GetObjectItemCaseSensitive(p, "scope")) return up_min(stated, joint(n, p, tree, path, moved));
    for (; p && t; p = p->next, t = t->next) {
        const taut_up one = walk(n, p, t, path, moved);
        moved = up_mul(up_mul(one, moved), (taut_up){ ROOM });
        lip = up_mul(lip, one);
    }
    n->fits = n->fits && !p && !t;
    if (mixes)
        lip = up_add(up_exact(taut_near_number(tree, "keep")), up_mul(up_exact(taut_near_number(tree, "mix")), lip));
    return up_min(stated, lip);
}

static void state(const taut_certificate *c, cJSON *proof, const cJSON *tree, const char *from)
{
    char path[96], name[112];
    const cJSON *t = parts_of(tree);
    step_into(path, sizeof path, from, tree);
    snprintf(name, sizeof name, "%s.o.weight", path);
    const taut_weight *w = taut_model_find(c->model, name);
    cJSON *of = cJSON_GetObjectItemCaseSensitive(proof, "of");
    const bool attention = is_attention(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "rule")));
    if (attention && w && of && taut_near_number(tree, "queries") == 0) {
        const taut_up norm = up_mul(up_norm((const double *)w->param->value, w->param->rows, w->param->cols),
                                    (taut_up){ 1 + 1e-9 });
        if (norm.v < INFINITY && !cJSON_HasObjectItem(proof, "o_norm"))
            cJSON_AddNumberToObject(proof, "o_norm", norm.v);
    }
    for (cJSON *p = of && !attention ? of->child : NULL; p && t; p = p->next, t = t->next) state(c, p, t, path);
}

taut_status taut_near_state(taut_certificate *c)
{
    char *text = taut_model_tree(c->model);
    cJSON *tree = text ? cJSON_Parse(text) : NULL;
    if (tree)
        state(c, cJSON_GetObjectItemCaseSensitive(c->json, "proof"), cJSON_GetObjectItemCaseSensitive(tree, "root"),
              "");
    const bool there = tree != NULL;
    cJSON_Delete(tree);
    free(text);
    return there ? TAUT_OK : taut_no_memory("the model's tree");
}

taut_status taut_near_body(taut_up *body, const taut_certificate *c, const taut_pass *pass, double r)
{
    char *text = taut_model_tree(c->model);
    cJSON *tree = text ? cJSON_Parse(text) : NULL;
    layers n = { .c = c, .fits = true };
    *body = c->body;
    taut_tour_parts(c->model->root, (taut_point){ pass->x, pass->trace }, see, &n); /* how many */
    n.x = taut_malloc((size_t)(n.count + 1) * sizeof *n.x);
    const bool there = tree && n.x;
    n.most = n.count, n.count = 0;
    if (there) {
        taut_tour_parts(c->model->root, (taut_point){ pass->x, pass->trace }, see, &n);
        const taut_up lip = walk(&n, parts_of(cJSON_GetObjectItemCaseSensitive(c->json, "proof")),
                                 parts_of(cJSON_GetObjectItemCaseSensitive(tree, "root")), "", (taut_up){ ROOM * r });
        if (n.fits && n.at == n.count) *body = up_min(c->body, up_mul(lip, (taut_up){ ROOM }));
    }
    cJSON_Delete(tree);
    free(text);
    free(n.x);
    return there ? TAUT_OK : taut_no_memory("the layers of an example");
}

taut_up up_near_whole(const taut_certificate *c, taut_up body)
{
    const cJSON *part = parts_of(cJSON_GetObjectItemCaseSensitive(c->json, "proof"));
    taut_up lip = up_mul(body, (taut_up){ ROOM });
    for (part = part ? part->next : NULL; part; part = part->next)
        lip = up_mul(lip, up_exact(taut_near_number(part, "lip")));
    return lip;
}

cJSON *taut_near_json(const taut_example *e, const taut_local *l, taut_input x, int64_t count)
{
    taut_example told = *e;
    told.radius = l->told;
    cJSON *o = taut_example_json(&told, x, count);
    cJSON_AddItemToObject(o, "lip", up_json(l->told_lip));
    return o;
}
