/* "Behind every node of the proof each token is no longer than that node's out": every node of certificates of every
 * architecture, at inputs anywhere in the stated region.  Tokens as long as `reach`, on one line, in two clusters; shorter
 * sequences; images in corners of [0, 1], moved outward by `room`, all of it in one patch or everywhere.  A node with scope
 * "mix" is held to what leaves the mix around it, and there it is seen that the perceptron alone may be longer.  And the
 * same proof without anybody who writes has the same numbers. */
#include "certify/certify.h"
#include "check/kinds.h"
#include "laws.h"
#include "temp.h"

enum { DEPTH = 40, NODES = 200 };
static const double room = 0.25;

/* The proof's nodes in the order of the computation, parents first, and what forward has at each of them. */
typedef struct {
    const cJSON *node[NODES];
    const char *rule[NODES];
    int count, next;
    const taut_module *above[DEPTH];
    taut_point at[DEPTH];
} walk;

static double closest_out;
static int nodes, longer_alone;

static void collect(walk *w, const cJSON *node)
{
    const char *rule = cJSON_GetStringValue(cJSON_GetObjectItem(node, "rule"));
    if (!rule || strcmp(rule, "head") == 0 || strcmp(rule, "family") == 0 || w->count == NODES) return;
    w->rule[w->count] = rule;
    w->node[w->count++] = node;
    if (strcmp(rule, "plash") == 0) return; /* its sketch is no stop of the tour: nobody else reads what it makes */
    for (const cJSON *k = cJSON_GetObjectItem(node, "of") ? cJSON_GetObjectItem(node, "of")->child : NULL; k;
         k = k->next)
        collect(w, k);
}

static double stated(const cJSON *node, const char *key)
{
    const cJSON *j = cJSON_GetObjectItem(node, key);
    return cJSON_IsNumber(j) ? j->valuedouble : INFINITY;
}

static bool is_mix(const taut_module *m) { return strcmp(m->ops->kind, "mix") == 0; }

/* The longest token that the module makes of this input. */
static double longest_behind(const taut_module *m, taut_tensor x)
{
    const taut_plan plan = taut_plan_of(m, x.shape);
    double *y = doubles(taut_len(plan.out)), *trace = doubles(plan.trace), *scratch = doubles(plan.scratch),
           *host = doubles(plan.host), most = 0;
    taut_run run = { .k = taut_kernels_find("ref"),
                     .scratch = { (taut_real *)scratch, plan.scratch, 8 },
                     .host = { (taut_real *)host, plan.host, 8 } };
    taut_forward(m, &run, tensor_of(y, plan.out), (taut_point){ x, { (taut_real *)trace, plan.trace, 8 } });
    for (int64_t t = 0; t < taut_rows(plan.out); t++) most = fmax(most, norm(y + t * plan.out.d, plan.out.d));
    free(y), free(trace), free(scratch), free(host);
    return most;
}

/* One module of the tour: parts that only train, and the sequence that is a mix's only part, have no node of their own. */
static void see(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    walk *w = arg;
    (void)name;
    w->above[depth] = m, w->at[depth] = at;
    const bool inlined = m->ops->inlined && depth > 0 && is_mix(w->above[depth - 1]);
    if (inlined || m->ops->trains_only) return;
    const int i = w->next++;
    CHECK(i < w->count && strcmp(w->rule[i], m->ops->kind) == 0, m->ops->kind);
    if (i >= w->count) return;
    const bool mixed = cJSON_HasObjectItem(w->node[i], "scope");
    const int mix = mixed && is_mix(w->above[depth - 1]) ? depth - 1 : depth - 2;
    const double alone = longest_behind(m, at.x), out = stated(w->node[i], "out");
    const double behind = mixed ? longest_behind(w->above[mix], w->at[mix].x) : alone;
    CHECK_LE(behind, out, w->rule[i]);
    longer_alone += mixed && alone > 1.2 * out;
    if (isfinite(out) && out > 0) closest_out = fmax(closest_out, behind / out);
    nodes++;
}

/* Some input of the region, t tokens long. */
static void choose(double *x, const taut_certificate *c, int64_t t)
{
    const int64_t d = c->model->in.d;
    const int kind = (int)rng_int(0, 3);
    double way[64];
    fill(way, d);
    fill(x, t * d);
    for (int64_t i = 0; i < t && !taut_model_sees(c->model); i++) {
        for (int64_t k = 0; k < d && kind < 2; k++)
            x[i * d + k] = (kind && i % 2 ? -1 : 1) * way[k] + 1e-3 * x[i * d + k];
        const double scale = c->reach.v * (1 - 1e-15) / norm(x + i * d, d);
        for (int64_t k = 0; k < d; k++) x[i * d + k] *= scale;
    }
    if (!taut_model_sees(c->model)) return;
    for (int64_t k = 0; k < d; k++) {
        const double corner = kind < 2 ? kind : (double)(x[k] > 0);
        way[k] = kind == 3 && k >= d / 4 ? 0 : corner ? 1 : -1;
        x[k] = corner;
    }
    const double scale = room * (1 - 1e-15) / norm(way, d);
    for (int64_t k = 0; k < d; k++) x[k] += scale * way[k];
}

static void inputs(walk *w, const taut_certificate *c, int count)
{
    for (int i = 0; i < count; i++) {
        const bool fixed = !c->model->embed.rows;
        const int64_t t = fixed || rng_int(0, 1) ? c->tokens : rng_int(1, c->tokens);
        const taut_shape in = { 1, t, c->model->in.d };
        const taut_plan plan = taut_plan_of(c->model->root, in);
        double *x = doubles(taut_len(in)), *y = doubles(taut_len(plan.out)), *trace = doubles(plan.trace),
               *scratch = doubles(plan.scratch), *host = doubles(plan.host);
        taut_run run = { .k = taut_kernels_find("ref"),
                         .scratch = { (taut_real *)scratch, plan.scratch, 8 },
                         .host = { (taut_real *)host, plan.host, 8 } };
        const taut_point at = { tensor_of(x, in), { (taut_real *)trace, plan.trace, 8 } };
        choose(x, c, t);
        taut_forward(c->model->root, &run, tensor_of(y, plan.out), at);
        w->next = 0;
        taut_tour_parts(c->model->root, at, see, w);
        CHECK(w->next == w->count, "every node of the proof was passed");
        free(x), free(y), free(trace), free(scratch), free(host);
    }
}

/* A proof that nobody writes has the numbers of the one that is written, and the body's constant is that of its node. */
static void unwritten(const taut_certificate *c)
{
    const cJSON *body = cJSON_GetObjectItem(cJSON_GetObjectItem(c->json, "proof"), "of")->child;
    taut_ask in = taut_model_region(c->model, c->norm, c->room);
    taut_model_proof p;
    in.size = c->reach;
    must(taut_model_prove(&p, c->model, in));
    CHECK(p.whole.lip.v == c->lip.v && p.body.v == c->body.v && p.whole.round.v == c->round.v, "without a ledger");
    CHECK(c->body.v == stated(body, "lip"), "the body's node");
}

static void certificate(const char *path, int n, double rows, int count)
{
    taut_certificate c;
    walk w = { .count = 0 };
    must(taut_certify_rows(&c, path, (taut_norm)n, room, rows));
    collect(&w, cJSON_GetObjectItem(c.json, "proof"));
    inputs(&w, &c, count);
    unwritten(&c);
    taut_certificate_free(&c);
}

/* x - 1.5 max(x, 0) is never longer than x, 1.5 max(x, 0) is. */
static void save_perceptron(const char *path)
{
    taut_model *m = blank_model("[model]\nwidth = 2\ndepth = 1\nheads = 1\nmlp = 2\ncontext = 2\nnorm = none\n"
                                "activation = relu\npositions = none\n",
                                3, false);
    for (int i = 0; i < 2; i++) {
        ((double *)m->values)[taut_model_find(m, "block.0.mlp.in.weight")->offset + 3 * i] = 1;
        ((double *)m->values)[taut_model_find(m, "block.0.mlp.out.weight")->offset + 3 * i] = -1.5;
        ((double *)m->values)[taut_model_find(m, "embed.weight")->offset + i] = 1;
    }
    must(taut_model_save(m, path));
    taut_model_free(m);
}

int main(void)
{
    test_begin();
    temp_begin();
    const char *path = temp_path("model.safetensors");
    for (case_no = 0; case_no < 2 * KINDS; case_no++) {
        const int kind = case_no % KINDS;
        save_kind(kind, path);
        certificate(path, case_no / KINDS, is_series(kind) ? 2 : INFINITY, effort(12));
    }
    save_perceptron(path);
    certificate(path, 0, INFINITY, 12); /* however little effort: it must be seen once */
    CHECK(longer_alone > 0, "a perceptron that is longer than the mix around it");
    return test_end("inside", "%d nodes of %d architectures; found / stated at most %.6f; %d perceptrons longer alone",
                    nodes, KINDS, closest_out, longer_alone);
}
