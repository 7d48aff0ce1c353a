/* The trainer as a whole: the same bits for any thread count, accumulation equals a larger batch, a step that
 * is refused changes nothing, and every allocation of opening may fail. */
#include "train/trainer.h"

#include "base/alloc.h"
#include "small.h"
#include "table.h"

static const char *const recipes[] = {
    "[data]\nlength = 4000\n"
    "[model]\nwidth = 48\ndepth = 2\nheads = 3\ncontext = 40\ndropout = 0.1\n"
    "[train]\nsteps = 20\nbatch = 4\naccumulate = 2\nlr = 0.01\nweight_decay = 0.1\nwarmup = 5\n",

    "[data]\nlength = 4000\n"
    "[model]\narch = encoder\nwidth = 48\ndepth = 2\nheads = 3\ncontext = 40\ndropout = 0.1\ntied = false\n"
    "[train]\nsteps = 20\nbatch = 4\naccumulate = 2\noptimiser = muon\nweight_decay = 0.1\n",

    "[data]\nlength = 4000\n"
    "[model]\nwidth = 64\ndepth = 2\nheads = 2\ncontext = 72\ndropout = 0.2\npositions = rope\nnorm = "
    "rmsnorm\n"
    "residual = convex\nactivation = silu\nbias = false\ninit = orthogonal\n"
    "[train]\nsteps = 20\nbatch = 3\noptimiser = muon\npolynomial = nanogpt5\n",

    "[data]\nlength = 4000\n"
    "[model]\narch = encoder\nwidth = 32\ndepth = 1\nheads = 4\ncontext = 33\npositions = alibi\nnorm = "
    "centernorm\n"
    "norm_place = pre\nactivation = gelu_tanh\n"
    "[train]\nsteps = 20\nbatch = 7\noptimiser = sgd\nlr = 0.5\nclip = 0.5\n",
};

typedef struct {
    char *weights, *momenta;
    double loss[20];
    size_t size;
} outcome;

static char *bytes_of(const taut_real *p, size_t size)
{
    char *copy = malloc(size);
    memcpy(copy, p, size);
    return copy;
}

static outcome train(const char *recipe, int threads)
{
    taut_trainer t;
    taut_step step;
    outcome o;
    taut_threads_set(threads);
    taut_config *cfg = trainer_of(&t, recipe, "cpu");
    for (int i = 0; i < 20; i++) {
        must(taut_trainer_step(&t, &step));
        o.loss[i] = step.loss;
    }
    o.size = (size_t)t.model->slab * t.model->k->elem;
    o.weights = bytes_of(t.model->values, o.size);
    o.momenta = bytes_of(t.optimiser->first, o.size);
    CHECK(t.clock.step == 20, "it counts its steps");
    CHECK(t.clock.tokens == 20 * t.recipe.train.batch * t.recipe.train.accumulate * t.recipe.model.context,
          "it counts its tokens");
    trainer_end(&t, cfg);
    return o;
}

static void same_bits(const char *recipe)
{
    outcome one = train(recipe, 1);
    CHECK_LE(one.loss[19], 0.95 * one.loss[0], "it learns something");
    for (int threads = 2; threads <= 3; threads++) {
        outcome more = train(recipe, threads);
        CHECK(memcmp(one.weights, more.weights, one.size) == 0, "weights: the same bits for any thread count");
        CHECK(memcmp(one.momenta, more.momenta, one.size) == 0, "momenta: the same bits for any thread count");
        CHECK(memcmp(one.loss, more.loss, sizeof one.loss) == 0, "losses: the same bits for any thread count");
        free(more.weights), free(more.momenta);
    }
    free(one.weights), free(one.momenta);
    taut_threads_set(0);
}

/* ---- accumulation ---- */

/* After `steps` steps: the loss of the last, and all gradients and weights. */
static double run(const char *arch, const char *kernels, int batch, int accumulate, int steps, double **grads,
                  double **weights, int64_t *len)
{
    taut_trainer t;
    taut_step step = { 0 };
    char recipe[512];
    snprintf(recipe, sizeof recipe,
             "[data]\nlength = 10000\n[model]\narch = %s\nwidth = 24\ndepth = 2\nheads = 2\ncontext = 20\n"
             "[train]\noptimiser = sgd\nlr = 0.05\nbatch = %d\naccumulate = %d\nclip = 0\n",
             arch, batch, accumulate);
    taut_config *cfg = trainer_of(&t, recipe, kernels);
    for (int i = 0; i < steps; i++) must(taut_trainer_step(&t, &step));
    *len = t.model->slab;
    *weights = values_of(t.model);
    *grads = doubles(*len);
    t.model->k->get(*grads, t.model->grads, *len);
    trainer_end(&t, cfg);
    return step.loss;
}

static double far_apart(double *a, double *b, int64_t len)
{
    const double size = norm(b, len);
    for (int64_t i = 0; i < len; i++) a[i] -= b[i];
    const double distance = norm(a, len) / size;
    free(a), free(b);
    return distance;
}

static void accumulation(const char *arch, const char *kernels, int parts, int steps, double tol)
{
    double *g1, *g2, *w1, *w2;
    int64_t len;
    const double loss2 = run(arch, kernels, 16 / parts, parts, steps, &g2, &w2, &len);
    const double loss1 = run(arch, kernels, 16, 1, steps, &g1, &w1, &len);
    CHECK_NEAR(loss2, loss1, tol * loss1, arch);
    CHECK_LE(far_apart(g2, g1, len), tol, arch);
    CHECK_LE(far_apart(w2, w1, len), tol, arch);
}

/* ---- refused steps, clipping ---- */

static void not_finite(void)
{
    taut_trainer t;
    taut_step step;
    taut_config *cfg = trainer_of(&t, recipes[0], "cpu");
    const double nan_ = NAN;
    must(taut_trainer_step(&t, &step));
    t.model->k->put(taut_model_find(t.model, "block.1.mlp.in.weight")->param->value, &nan_, 1);
    const size_t size = (size_t)t.model->slab * t.model->k->elem;
    char *before = bytes_of(t.model->values, size), *momenta = bytes_of(t.optimiser->first, size);
    CHECK(taut_trainer_step(&t, &step) == TAUT_NOT_FINITE, "a NaN is seen");
    CHECK(strstr(taut_last_error(), "step 2"), "it says at which step");
    CHECK(memcmp(before, t.model->values, size) == 0, "no weight was changed");
    CHECK(memcmp(momenta, t.optimiser->first, size) == 0, "nor a momentum");
    CHECK(t.clock.step == 1, "the step does not count");
    free(before), free(momenta);
    trainer_end(&t, cfg);
}

static void clipping(double limit)
{
    taut_trainer t;
    taut_step step;
    char recipe[512];
    snprintf(recipe, sizeof recipe,
             "[data]\nlength = 5000\n[model]\nwidth = 16\nheads = 2\ncontext = 16\n[train]\nclip = %g\n", limit);
    taut_config *cfg = trainer_of(&t, recipe, "ref");
    must(taut_trainer_step(&t, &step));
    const double left = sqrt(table_dot(t.model->k, t.model->grads, t.model->grads, t.model->slab));
    CHECK_LE(1e-2, step.grad_norm, "there is something to clip");
    CHECK_NEAR(left, limit > 0 && limit < step.grad_norm ? limit : step.grad_norm, 1e-12 * left, "clip");
    trainer_end(&t, cfg);
}

/* ---- memory ---- */

/* Allocation number n fails (0: none); says whether opening worked. */
static bool opens(const char *recipe, long n)
{
    taut_trainer t;
    taut_config *cfg = config_of(recipe);
    taut_alloc_fail_at(n);
    const taut_status s = taut_trainer_open(&t, cfg, taut_kernels_find("cpu"));
    taut_alloc_fail_at(0);
    if (s) CHECK(s == TAUT_NO_MEMORY && strstr(taut_last_error(), "out of memory"), taut_last_error());
    taut_trainer_close(&t);
    taut_config_free(cfg);
    return s == TAUT_OK;
}

static long out_of_memory(const char *recipe)
{
    long n = 1;
    while (n < 100000 && !opens(recipe, n)) n++;
    for (long more = n; more < n + 30; more++) CHECK(opens(recipe, more), "a failed allocation was overlooked");
    return n - 1;
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < 4; case_no++) same_bits(recipes[case_no]);
    case_no = 0;
    accumulation("gpt", "ref", 2, 10, 1e-12);
    accumulation("gpt", "cpu", 2, 3, 1e-5);
    accumulation("encoder", "ref", 2, 10, 1e-12);
    accumulation("encoder", "ref", 16, 3, 1e-12);
    not_finite();
    clipping(0.01);
    clipping(0);
    clipping(1e6);
    long allocations = 0;
    for (case_no = 0; case_no < 4; case_no++) allocations += out_of_memory(recipes[case_no]);
    CHECK(allocations > 400, "they did fail");
    return test_end("trainer", "1, 2, 3 threads: same bits; %ld allocations failed one by one", allocations);
}
