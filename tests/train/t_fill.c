/* Attention by position under a target that the head fills: the constant of what is saved is just below the target,
 * whether it has to come down or go up; Muon takes the heads of W_V one by one, the head of the model relative to its own
 * norm; vectors have a learning rate of their own; the bits do not depend on the number of threads; what cannot be
 * filled is refused. */
#include "proved.h"
#include "small.h"
#include "temp.h"
#include "train/train.h"

#define MODEL                                                                                                  \
    "[data]\nlength = 2000\n[model]\nwidth = 16\ndepth = 2\nheads = 2\ncontext = 8\nattention = position\n"    \
    "positions = none\nactivation = abs\nnorm = none\nresidual = convex\nresidual_alpha = 0.5\ntied = false\n" \
    "first_residual = false\nmlp_residual = false\nhead_bias = true\ninit = orthogonal\n"                      \
    "[train]\nbatch = 2\noptimiser = muon\nweight_decay = 1\nclip = 0\n"

static double proved(const char *path)
{
    taut_model *m = NULL;
    must(taut_model_open(&m, path, taut_kernels_find("ref"), false));
    const double c = proved_constant(m, &(taut_constrain_spec){ .target = 1 });
    taut_model_free(m);
    return c;
}

static void filled(double target, const char *lr)
{
    char recipe[2048];
    taut_trainer t;
    taut_step step;
    snprintf(recipe, sizeof recipe,
             MODEL "lr = %s\nsteps = 9\n[constrain]\nmethod = none\nembed = 1\nfill = 2\n"
                   "target_lipschitz = %g\n",
             lr, target);
    taut_config *cfg = trainer_of(&t, recipe, "cpu");
    for (int i = 0; i < 5; i++) {
        must(taut_trainer_step(&t, &step));
        must(taut_trainer_save(&t, temp_path("between.safetensors")));
        CHECK_LE(proved(temp_path("between.safetensors")), target, "between two fillings: under the target");
    }
    must(taut_trainer_enforce(&t));
    must(taut_trainer_save(&t, temp_path("model.safetensors")));
    const double c = proved(temp_path("model.safetensors"));
    CHECK_LE(c, target, "under the target");
    CHECK_LE((1 - 3e-6) * target, c, "and no room is left");
    trainer_end(&t, cfg);
}

/* rows of x, `count` of them: the Gram matrix is close to size^2 times the identity */
static void orthogonal(const double *x, int64_t count, int64_t cols, double size, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j <= i; j++)
            CHECK_NEAR(dot(x + i * cols, x + j * cols, cols), i == j ? size * size : 0, 0.015 * size * size, what);
}

/* With lr = decay = 1 and no momentum a matrix becomes minus its size times the orthogonalised gradient. */
static void steps(void)
{
    taut_trainer t;
    taut_config *cfg = trainer_of(&t,
                                  MODEL "momentum = 0\nlr = 1\nadam_lr = 0.02\nvector_lr = 0.005\n"
                                        "[constrain]\nmethod = none\nfill = 1\ntarget_lipschitz = 50\n",
                                  "ref");
    const taut_model *m = t.model;
    double *before = values_of(m), *g = doubles(m->slab);
    for (int64_t i = 0; i < m->slab; i++) g[i] = rng_pm();
    m->k->put(m->grads, g, m->slab);
    t.optimiser->head = 3;
    taut_optimiser_step(t.optimiser, 0, 1);
    double *after = values_of(m);
    const taut_weight *v = taut_model_find(m, "block.1.attn.v.weight"), *head = taut_model_find(m, "head.weight");
    for (int h = 0; h < 2; h++) orthogonal(after + v->offset + h * 8 * 16, 8, 16, 1, "each head of W_V alone");
    double across = 0; /* the whole would have been made orthogonal too */
    for (int i = 0; i < 8; i++)
        across = fmax(across, fabs(dot(after + v->offset + i * 16, after + v->offset + 8 * 16, 16)));
    CHECK_LE(0.05, across, "and not both together");
    double across_head[16 * 16] = { 0 }; /* W^T W: the head is tall, its columns are orthogonal */
    for (int r = 0; r < head->param->rows; r++)
        for (int i = 0; i < 256; i++)
            across_head[i] += after[head->offset + r * 16 + i / 16] * after[head->offset + r * 16 + i % 16];
    CHECK(head->param->rows >= 16, "a tall head");
    for (int i = 0; i < 256; i++) CHECK_NEAR(across_head[i], i % 17 ? 0 : 9, 0.135, "the head, as large as it was");
    for (int i = 0; i < m->weights; i++) {
        const taut_weight *w = &m->weight[i];
        const double lr = w->param->role == TAUT_VECTOR ? 0.005 : 0.02;
        if (w->param->role == TAUT_MATRIX) continue;
        for (int64_t j = w->offset; j < w->offset + taut_weight_len(w); j++)
            CHECK_NEAR(fabs(after[j] - before[j]), lr, 1e-6 * lr + 1e-8 * lr / fabs(g[j]), w->path);
    }
    free(before), free(after), free(g);
    trainer_end(&t, cfg);
}

static void same_bits(void)
{
    double *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        taut_trainer t;
        taut_step step;
        taut_config *cfg = trainer_of(
            &t, MODEL "lr = 0.1\n[constrain]\nmethod = none\nembed = 1\nfill = 2\ntarget_lipschitz = 4\n", "cpu");
        taut_threads_set(threads);
        for (int i = 0; i < 4; i++) must(taut_trainer_step(&t, &step));
        double *now = values_of(t.model);
        if (!first) first = doubles(t.model->slab), memcpy(first, now, (size_t)t.model->slab * 8);
        CHECK(memcmp(first, now, (size_t)t.model->slab * 8) == 0, "same bits for any number of threads");
        free(now);
        trainer_end(&t, cfg);
    }
    taut_threads_set(0);
    free(first);
}

static void refused(const char *recipe, const char *word)
{
    taut_trainer t;
    taut_config *cfg = config_of(recipe);
    CHECK(taut_trainer_open(&t, cfg, taut_kernels_find("cpu")) == TAUT_BAD_CONFIG, recipe);
    CHECK(strstr(taut_last_error(), word) != NULL, taut_last_error());
    trainer_end(&t, cfg);
}

int main(void)
{
    test_begin();
    temp_begin();
    filled(2, "0.1");
    filled(10, "1.9");
    filled(1e-3, "0.1");
    steps();
    same_bits();
    refused("[model]\ntied = false\n[constrain]\nfill = 3\n", "target_lipschitz");
    refused("[model]\nnorm = none\n[constrain]\nfill = 3\ntarget_lipschitz = 2\n", "tied");
    return test_end("fill", "between 1 - 3e-6 of the target and the target");
}
