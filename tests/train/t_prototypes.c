/* Prototypes put on keys before training: each of k-center is a key of its own layer and head, as a forward pass with all
 * prototypes in place computes it, so layers are settled in order; Lloyd brings them nearer the keys; no memory is a status. */
#include "train/prototypes.h"

#include "base/alloc.h"
#include "small.h"

#define RECIPE                                                                                               \
    "[data]\nlength = 600\n[model]\narch = encoder\nwidth = 8\ndepth = 3\nheads = 2\nmlp = 8\ncontext = 6\n" \
    "attention = plash\nplash_groups = 4\nplash_sizes = 16\n[train]\nbatch = 3\n"

typedef struct {
    const taut_model *m;
    int layers;
    double far; /* sum over keys of the squared distance to the nearest prototype */
    bool among; /* every prototype is a key */
} look;

static double gap(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

static void see(const taut_module *f, const char *name, int depth, taut_point at, void *arg)
{
    look *l = arg;
    taut_gathered g;
    (void)name, (void)depth;
    if (!taut_plash_look(&g, f, at)) return;
    const int64_t d = g.k.shape.d, dh = d / g.heads, n = taut_rows(g.k.shape);
    double *k = doubles(n * d), *p = doubles(g.groups * d);
    l->m->k->get(k, g.k.data, n * d);
    l->m->k->get(p, taut_plash_prototypes(f)->value, g.groups * d);
    for (int64_t h = 0; h < g.heads; h++) {
        for (int64_t j = 0; j < g.groups; j++) {
            double least = INFINITY;
            for (int64_t i = 0; i < n; i++) least = fmin(least, gap(p + j * d + h * dh, k + i * d + h * dh, dh));
            l->among = l->among && least == 0;
        }
        for (int64_t i = 0; i < n; i++) {
            double least = INFINITY;
            for (int64_t j = 0; j < g.groups; j++) least = fmin(least, gap(p + j * d + h * dh, k + i * d + h * dh, dh));
            l->far += least;
        }
    }
    l->layers++;
    free(k), free(p);
}

static look looked(taut_trainer *t)
{
    look l = { .m = t->model, .among = true };
    taut_batch_train(&t->batch, 0, t->recipe.train.batch);
    taut_batch_forward(&t->batch, t->pass);
    taut_tour_parts(t->model->root, (taut_point){ t->pass->x, t->pass->trace }, see, &l);
    CHECK(l.layers == 3, "three layers");
    return l;
}

static look settled(const char *prototypes)
{
    taut_trainer t;
    char text[512];
    snprintf(text, sizeof text, "%s[model]\nplash_prototypes = %s\n", RECIPE, prototypes);
    taut_config *cfg = trainer_of(&t, text, "ref");
    must(taut_trainer_settle(&t));
    const look l = looked(&t);
    trainer_end(&t, cfg);
    return l;
}

static int fail_at;

/* Memory runs out while prototypes are put in their places, not in the kernels. */
static void batch(taut_pass *p, void *trainer)
{
    taut_trainer *t = trainer;
    taut_alloc_fail_at(0);
    taut_batch_train(&t->batch, 0, t->recipe.train.batch);
    taut_batch_forward(&t->batch, p);
    taut_alloc_fail_at(fail_at);
}

static int no_memory(void)
{
    taut_trainer t;
    taut_config *cfg = trainer_of(&t, RECIPE "[model]\nplash_prototypes = kcenter\n", "ref");
    taut_status s = TAUT_NO_MEMORY;
    for (fail_at = 1; s == TAUT_NO_MEMORY && fail_at < 20; fail_at++) {
        s = taut_prototypes_settle(t.pass, 0, batch, &t);
        taut_alloc_fail_at(0);
    }
    CHECK(s == TAUT_OK && looked(&t).among, "no memory, then enough");
    trainer_end(&t, cfg);
    return fail_at - 2;
}

int main(void)
{
    test_begin();
    const look drawn = settled("random"), first = settled("kcenter"), better = settled("kmeans");
    CHECK(!drawn.among && first.among && !better.among, "on keys, layer by layer");
    CHECK_LE(first.far, 0.9 * drawn.far, "nearer than drawn at random");
    CHECK_LE(better.far, first.far, "and nearer still");
    const int failed = no_memory();
    CHECK(failed > 0, "memory did run out");
    return test_end("prototypes", "distances %.3g, %.3g, %.3g; %d allocations failed", drawn.far, first.far, better.far,
                    failed);
}
