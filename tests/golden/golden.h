/* A model against PyTorch: tools/dump_reference.py wrote the file, this reads it and computes the same.
 *
 * Errors are relative to the largest entry of the tensor compared.  What is promised:
 *     ref   1e-10 for logits, loss and gradients, 1e-9 for training: both sides are double, so only the order
 *           of sums differs; a wrong formula or constant (float 1/3 against double 1/3: 1e-8) shows.
 *     cpu   2e-5 = 2^-24 times about 300 for logits, loss and gradients: some twenty float kernels stand in a
 *           row, each with sums of at most 64 products.  Training 1e-4: AdamW divides by the gradient's own
 *           size, so that an entry that is mostly rounding moves its weight as much as any other. */
#ifndef GOLDEN_H
#define GOLDEN_H
#include "harness.h"
#include "model/pass.h"
#include "model/safetensors.h"
#include "model/slabs.h"
#include "table.h"
#include "train/optimiser.h"
#include "train/schedule.h"

typedef struct {
    double once, training;
} golden_error; /* tolerances, or the worst seen */

typedef struct {
    taut_safetensors *st;
    taut_recipe recipe;
    taut_model *m;
    taut_pass *pass;
    taut_optimiser *opt;
    int64_t n, t;
    golden_error tol, worst;
} golden;

/* Without the file or its content there is nothing to compare. */
static inline void golden_must(taut_status s)
{
    if (!s) return;
    fprintf(stderr, "%s (tests run from the root of the repository)\n", taut_last_error());
    exit(1);
}

static inline const taut_st_tensor *golden_find(const taut_safetensors *st, const char *prefix, const char *name)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const taut_st_tensor *t = taut_safetensors_find(st, full);
    if (!t) golden_must(taut_fail(TAUT_BAD_FILE, "the golden file has no %s", full));
    return t;
}

static inline double *golden_read(const taut_safetensors *st, const char *prefix, const char *name, int64_t count)
{
    const taut_st_tensor *t = golden_find(st, prefix, name);
    if (t->count != count)
        golden_must(taut_fail(TAUT_BAD_FILE, "%s%s: %lld numbers, not %lld", prefix, name, (long long)t->count,
                              (long long)count));
    double *x = doubles(count);
    golden_must(taut_safetensors_read(st, t, x, 0, count));
    return x;
}

static inline int32_t *golden_ids(const taut_safetensors *st, const char *name, int64_t count)
{
    double *x = golden_read(st, "", name, count);
    int32_t *ids = calloc((size_t)count, sizeof *ids);
    for (int64_t i = 0; i < count; i++) ids[i] = (int32_t)x[i];
    free(x);
    return ids;
}

static inline double golden_largest(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* Largest |a - b| over scale; NaN and infinity stay, which fmax would hide. */
static inline double golden_distance(const double *a, const double *b, int64_t n, double scale)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double e = fabs(a[i] - b[i]) / scale;
        if (!(e <= most)) most = e;
    }
    return most;
}

static inline void golden_judge(double *worst, double error, double tol, const char *what)
{
    CHECK_LE(error, tol, what);
    if (!(error <= *worst)) *worst = error;
}

static inline void golden_open(golden *g, const char *path, const char *kernels, golden_error tol)
{
    const taut_kernels *k = taut_kernels_find(kernels);
    taut_config *cfg = NULL;
    *g = (golden){ .tol = tol };
    golden_must(taut_safetensors_open(&g->st, path));
    const char *recipe = taut_safetensors_meta(g->st, "taut.recipe");
    if (!recipe) golden_must(taut_fail(TAUT_BAD_FILE, "%s has no recipe", path));
    golden_must(taut_config_parse(&cfg, recipe, path));
    golden_must(taut_recipe_read(&g->recipe, cfg));
    taut_config_free(cfg);
    const int64_t tokens = golden_find(g->st, "", "embed.weight")->shape[0];
    golden_must(taut_model_create(&g->m, &g->recipe.model, tokens, recipe, "", k));
    golden_must(taut_model_bind(g->m, true));
    for (int i = 0; i < g->m->weights; i++) {
        const taut_weight *w = &g->m->weight[i];
        golden_must(taut_slab_load(k, w->param->value, g->st, path, w->path, w->param, 0, taut_weight_len(w)));
    }
    g->n = golden_find(g->st, "", "ids")->shape[0];
    g->t = golden_find(g->st, "", "ids")->shape[1];
    golden_must(taut_pass_create(&g->pass, g->m, g->n, g->t, true));
    golden_must(taut_optimiser_create(&g->opt, g->m, &g->recipe.train, &(taut_ranks){ .count = 1 }));
}

static inline void golden_close(golden *g)
{
    taut_optimiser_free(g->opt);
    taut_pass_free(g->pass);
    taut_model_free(g->m);
    taut_safetensors_close(g->st);
}

/* Forward, mean loss and gradients of one batch; logits, if wanted, before the loss overwrites them. */
static inline double golden_batch(golden *g, const int32_t *ids, const int32_t *targets, double *logits,
                                  int64_t *correct)
{
    const taut_model *m = g->m;
    int64_t count = 0;
    for (int64_t i = 0; i < g->n * g->t; i++) count += targets[i] >= 0;
    m->k->axpby(m->grads, 0, m->grads, 0, m->slab);
    taut_pass_forward(g->pass, ids, g->n, g->t);
    if (logits) m->k->get(logits, g->pass->logits.data, taut_len(g->pass->logits.shape));
    double sums[TAUT_PASS_SUMS];
    taut_pass_clear(g->pass);
    taut_pass_loss(g->pass, targets, 1 / (double)count, true);
    taut_pass_backward(g->pass);
    CHECK(!taut_pass_sums(g->pass, sums), taut_last_error());
    *correct = (int64_t)sums[TAUT_PASS_RIGHT];
    return sums[TAUT_PASS_LOSS] / (double)count;
}

static inline bool golden_ends(const char *path, const char *end)
{
    const size_t a = strlen(path), b = strlen(end);
    return a >= b && strcmp(path + a - b, end) == 0;
}

/* Softmax does not see a shift that all keys share: without RoPE the bias of k has gradient 0, and what
 * is there instead is rounding.  The sums it is left from are those of k's weight. */
static inline bool golden_is_zero(const char *path) { return golden_ends(path, "attn.k.bias"); }

static inline void golden_gradient(golden *g, const taut_weight *w)
{
    const int64_t len = taut_weight_len(w);
    double *ours = doubles(len), *theirs = golden_read(g->st, "grad.", w->path, len);
    double scale = golden_largest(theirs, len);
    if (golden_is_zero(w->path)) {
        char weight[256];
        snprintf(weight, sizeof weight, "%.*sweight", (int)(strlen(w->path) - strlen("bias")), w->path);
        const int64_t all = len * len;
        double *x = golden_read(g->st, "grad.", weight, all);
        scale = golden_largest(x, all);
        free(x);
    }
    g->m->k->get(ours, w->param->grad, len);
    CHECK(scale > 1e-3, w->path); /* a dump without gradient would prove nothing */
    golden_judge(&g->worst.once, golden_distance(ours, theirs, len, scale), g->tol.once, w->path);
    free(ours);
    free(theirs);
}

static inline void golden_once(golden *g)
{
    const int64_t rows = g->n * g->t, len = rows * g->m->embed.rows;
    int32_t *ids = golden_ids(g->st, "ids", rows), *targets = golden_ids(g->st, "targets", rows);
    double *ours = doubles(len), *theirs = golden_read(g->st, "", "logits", len);
    double *loss = golden_read(g->st, "", "loss", 1), *hits = golden_read(g->st, "", "correct", 1);
    int64_t correct = 0;
    const double error = fabs(golden_batch(g, ids, targets, ours, &correct) - *loss) / *loss;
    golden_judge(&g->worst.once, error, g->tol.once, "loss");
    golden_judge(&g->worst.once, golden_distance(ours, theirs, len, golden_largest(theirs, len)), g->tol.once,
                 "logits");
    CHECK((double)correct == *hits, "correct");
    for (int i = 0; i < g->m->weights; i++) golden_gradient(g, &g->m->weight[i]);
    void *all[] = { ids, targets, ours, theirs, loss, hits };
    for (int i = 0; i < 6; i++) free(all[i]);
}

/* The file's gradients belong to weights of the model; golden_gradient sees that every weight has one. */
static inline void golden_all_matched(const golden *g)
{
    int grads = 0;
    for (int i = 0; i < taut_safetensors_count(g->st); i++) {
        const char *name = taut_safetensors_at(g->st, i)->name;
        if (strncmp(name, "grad.", 5) != 0) continue;
        CHECK(taut_model_find(g->m, name + 5) != NULL, name);
        grads++;
    }
    CHECK(grads == g->m->weights, "one gradient a weight");
}

/* How far ten steps took a weight: also tells weights that were decayed, or not, by mistake. */
static inline void golden_moved(golden *g, const taut_weight *w)
{
    const int64_t len = taut_weight_len(w);
    double *now = doubles(len), *start = golden_read(g->st, "", w->path, len);
    double *moved = golden_read(g->st, "moved.", w->path, 1);
    g->m->k->get(now, w->param->value, len);
    for (int64_t i = 0; i < len; i++) now[i] -= start[i];
    if (!golden_is_zero(w->path)) /* AdamW makes steps even of rounding */
        golden_judge(&g->worst.training, fabs(norm(now, len) / *moved - 1), g->tol.training, w->path);
    free(now);
    free(start);
    free(moved);
}

/* As train/trainer.c does a step, on the file's batches instead of a text. */
static inline void golden_training(golden *g)
{
    const taut_train_spec *r = &g->recipe.train;
    const taut_model *m = g->m;
    const int64_t rows = g->n * g->t;
    int32_t *ids = golden_ids(g->st, "train.ids", r->steps * rows);
    int32_t *targets = golden_ids(g->st, "train.targets", r->steps * rows);
    double *losses = golden_read(g->st, "", "losses", r->steps);
    int64_t correct = 0;
    for (int64_t step = 0; step < r->steps; step++) {
        const double loss = golden_batch(g, ids + step * rows, targets + step * rows, NULL, &correct);
        const double size = sqrt(table_dot(m->k, m->grads, m->grads, m->slab));
        golden_judge(&g->worst.training, fabs(loss / losses[step] - 1), g->tol.training, "training loss");
        if (r->clip > 0 && size > r->clip) m->k->axpby(m->grads, r->clip / size, m->grads, 0, m->slab);
        taut_optimiser_step(g->opt, step, taut_schedule(r, step));
    }
    for (int i = 0; i < m->weights; i++) golden_moved(g, &m->weight[i]);
    free(ids);
    free(targets);
    free(losses);
}

static inline golden_error golden_compare(const char *path, const char *kernels, golden_error tol)
{
    golden g;
    golden_open(&g, path, kernels, tol);
    golden_all_matched(&g);
    golden_once(&g);
    golden_training(&g);
    golden_close(&g);
    return g.worst;
}

/* The float table that is compared: cpu, or what TAUT_KERNELS names, which may be one of doubles and on a device. */
static inline const char *golden_table(void)
{
    const char *name = getenv("TAUT_KERNELS");
    const taut_kernels *k;
    if (!name || !*name) return "cpu";
    if (taut_kernels_open(&k, name)) exit(test_skip(taut_last_error()));
    return name;
}

static inline bool golden_is_double(const char *table) { return taut_kernels_find(table)->unit < 0x1p-40; }

static inline int golden_test(const char *name, const char *path)
{
    const golden_error in_double = { 1e-10, 1e-9 }, in_float = { 2e-5, 1e-4 };
    const char *table = golden_table();
    test_begin();
    const golden_error ref = golden_compare(path, "ref", in_double);
    const golden_error other = golden_compare(path, table, golden_is_double(table) ? in_double : in_float);
    return test_end(name, "against PyTorch: ref %.1e, training %.1e; %s %.1e, training %.1e", ref.once, ref.training,
                    table, other.once, other.training);
}
#endif
