/* The proof tree of the certificate again, with norm layers, softmax attention and perceptrons looked at around the example and
 * every other node as it is stated.  Within r of the example what enters a node is within `moved` of what was traced, and a node
 * hands on lip times that; token by token its shape says more (near_shape.c).  Factors a little above 1 leave a checker room for
 * the rounding of its own forward pass. */
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
    bool fits, begun; /* begun: some module has been passed */
    taut_near_shape shape;
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
static taut_up steepest(const taut_near_node *at, const double *m, double *each)
{
    const taut_tensor x = at->x;
    const bool centred = taut_near_number(at->tree, "centred") != 0;
    taut_up most = UP_ZERO;
    for (int64_t t = 0; t < taut_rows(x.shape); t++) {
        const taut_up one = up_normlayer_ball(
            up_exact(taut_near_number(at->proof, "norm")), x.shape.d, taut_near_number(at->tree, "eps"),
            lo_centred_norm((const double *)x.data + t * x.shape.d, x.shape.d, centred), up_wrap(m[t]));
        each[t] = fmin(each[t], one.v);
        most = up_max(most, one);
    }
    return most;
}

static void step_into(char *path, size_t size, const char *from, const cJSON *tree)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "name"));
    snprintf(path, size, "%s%s%s", from, *from && name ? "." : "", name ? name : "");
}

/* A layer that is looked at, keep x + mix f(x) if it is a perceptron that answers for the mix around it. */
static taut_up one_layer(layers *n, const taut_near_node *at, const char *rule, double keep, double mix, taut_up moved,
                         taut_up stated)
{
    const int64_t t = taut_rows(at->x.shape);
    n->fits = n->fits && taut_shape_fit(&n->shape, t);
    double *m = n->fits ? taut_shape_moved(&n->shape, moved.v) : NULL,
           *each = taut_malloc((size_t)(t + 1) * sizeof *each);
    taut_up lip = UP_NONE;
    n->fits = m && each;
    for (int64_t i = 0; n->fits && i < t; i++) each[i] = stated.v;
    if (n->fits && is_attention(rule))
        lip = up_near_attention(at, m, &n->shape);
    else if (n->fits) {
        lip = strcmp(rule, "mlp") == 0 ? up_near_mlp(at, keep, mix, m, each) : steepest(at, m, each);
        taut_shape_scale(&n->shape, each);
    }
    free(m), free(each);
    return up_min(stated, lip);
}

/* The next of the layers that are looked at. */
static taut_up looked_at(layers *n, const cJSON *proof, const cJSON *tree, const char *path, double keep, double mix,
                         taut_up moved, taut_up stated)
{
    if (!tree || n->at >= n->count) n->fits = false;
    if (!n->fits) return UP_NONE;
    const taut_near_node at = { n->c, proof, tree, path, n->x[n->at++] };
    const char *rule = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "rule"));
    return one_layer(n, &at, rule, keep, mix, moved, stated);
}

static taut_up walk(layers *n, const cJSON *proof, const cJSON *tree, const char *from, taut_up moved);

/* The parts of a sequence or a mix, one after the other. */
static taut_up parts(layers *n, const cJSON *proof, const cJSON *tree, const char *path, taut_up moved)
{
    taut_up lip = { 1 };
    const cJSON *p = parts_of(proof), *t = parts_of(tree);
    for (; p && t && n->fits; p = p->next, t = t->next) {
        const taut_up one = walk(n, p, t, path, moved);
        moved = up_mul(up_mul(one, moved), (taut_up){ ROOM });
        lip = up_mul(lip, one);
    }
    n->fits = n->fits && !p && !t;
    return lip;
}

static taut_up mixed(layers *n, const cJSON *proof, const cJSON *tree, const char *path, taut_up moved, taut_up stated)
{
    const double keep = taut_near_number(tree, "keep"), mix = taut_near_number(tree, "mix");
    const cJSON *p = parts_of(proof), *t = parts_of(tree);
    if (p && cJSON_GetObjectItemCaseSensitive(p, "scope")) {
        char inner[128];
        if (t) step_into(inner, sizeof inner, path, t);
        return looked_at(n, p, t, inner, keep, mix, moved, stated);
    }
    taut_near_shape in = { 0 };
    n->fits = n->fits && taut_shape_copy(&in, &n->shape);
    const taut_up lip = parts(n, proof, tree, path, moved);
    if (n->fits) taut_shape_mix(&n->shape, &in, keep, mix);
    free(in.n);
    return up_add(up_exact(keep), up_mul(up_exact(mix), lip));
}

static taut_up walk(layers *n, const cJSON *proof, const cJSON *tree, const char *from, taut_up moved)
{
    char path[96];
    const char *rule = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "rule"));
    const taut_up stated = up_exact(taut_near_number(proof, "lip"));
    step_into(path, sizeof path, from, tree);
    if (strcmp(rule, "sequence") == 0) return up_min(stated, parts(n, proof, tree, path, moved));
    const bool first = !n->begun;
    taut_up lip = stated;
    n->begun = true;
    if (strcmp(rule, "mix") == 0)
        lip = up_min(stated, mixed(n, proof, tree, path, moved, stated));
    else if (is_near(rule))
        lip = looked_at(n, proof, tree, path, 0, 1, moved, stated);
    else
        n->fits = n->fits && taut_shape_pass(&n->shape, tree, rule, stated.v, first);
    for (int64_t i = 0; n->fits && i < n->shape.rows * n->shape.cols; i++) n->shape.n[i] *= ROOM;
    return lip;
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

/* |N|, of all tokens in the norm. */
static double every_row(const taut_near_shape *s, bool flat)
{
    double most = 0, sum = 0;
    for (int64_t t = 0; t < s->rows; t++) {
        const double row = taut_shape_row(s, t);
        most = isnan(row) ? INFINITY : fmax(most, row), sum += row * row;
    }
    return flat ? sqrt(sum) : most;
}

static taut_near_bound bounds(layers *n, const cJSON *tree, const taut_certificate *c, double r)
{
    const cJSON *proof = parts_of(cJSON_GetObjectItemCaseSensitive(c->json, "proof"));
    const taut_up lip = walk(n, proof, parts_of(cJSON_GetObjectItemCaseSensitive(tree, "root")), "",
                             (taut_up){ ROOM * r });
    taut_near_bound b = { c->body, c->body };
    if (!n->fits || n->at != n->count) return b;
    const double all = every_row(&n->shape, c->norm == TAUT_NORM_FLAT),
                 last = taut_shape_row(&n->shape, n->shape.rows - 1);
    b.all = up_min(c->body, up_mul((taut_up){ fmin(lip.v, all) }, (taut_up){ ROOM }));
    b.last = up_min(c->body, up_mul((taut_up){ fmin(lip.v, last) }, (taut_up){ ROOM }));
    return b;
}

taut_status taut_near_body(taut_near_bound *body, const taut_certificate *c, const taut_pass *pass, double r)
{
    *body = (taut_near_bound){ c->body, c->body };
    if (!isfinite(c->body.v) && !taut_model_finite(c->model)) return TAUT_OK; /* then there is no bound at all */
    char *text = taut_model_tree(c->model);
    cJSON *tree = text ? cJSON_Parse(text) : NULL;
    layers n = { .c = c, .fits = true };
    taut_tour_parts(c->model->root, (taut_point){ pass->x, pass->trace }, see, &n); /* how many */
    n.x = taut_malloc((size_t)(n.count + 1) * sizeof *n.x);
    const bool flat = c->norm == TAUT_NORM_FLAT,
               there = tree && n.x && taut_shape_begin(&n.shape, taut_rows(pass->x.shape), flat, ROOM * r);
    n.most = n.count, n.count = 0;
    if (there) {
        taut_tour_parts(c->model->root, (taut_point){ pass->x, pass->trace }, see, &n);
        *body = bounds(&n, tree, c, r);
    }
    cJSON_Delete(tree);
    free(text);
    free(n.x);
    free(n.shape.n);
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
