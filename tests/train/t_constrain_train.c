/* Constraints in the trainer: caps and learning-rate shares by name, every method with every optimiser, the same
 * bits for any thread count; and rigorous mode: whatever training does, what is saved is proved to be at or under
 * its target. */
#include "base/alloc.h"
#include "bound/norm.h"
#include "proved.h"
#include "small.h"
#include "temp.h"
#include "train/constrain/hold.h"

#define MODEL                                                                                           \
    "[data]\nlength = 3000\n[model]\nwidth = 16\ndepth = 2\nheads = 2\ncontext = 12\nmlp = 40\n"        \
    "norm = none\nresidual = convex\ntied = false\nbias = false\ninit = orthogonal\npositions = rope\n" \
    "attention_scale = inv_width\nattention_out = 1/3\n"

/* ---- shares and caps ---- */

/* The paper's shares of the learning rate (papers/enforced): depth 3, blocks_mass 32; our block 2 is the last one. */
static void shares(void)
{
    taut_model_spec s = { .depth = 3, .convex = true, .attention_out = 1.0 / 3, .logit_scale = 1 };
    static const struct {
        const char *path;
        double scalar, one;
    } table[] = {
        { "block.2.attn.q.weight", 0.941176, 0.026144 },
        { "block.2.attn.o.weight", 0.313725, 0.026144 },
        { "block.2.mlp.in.weight", 0.313725, 0.052288 },
        { "block.1.attn.k.weight", 0.941176, 0.003268 },
        { "block.1.mlp.out.weight", 0.313725, 0.006536 },
        { "block.0.attn.v.weight", 0.941176, 0.000408 },
        { "block.0.attn.o.weight", 0.313725, 0.000408 },
        { "block.0.mlp.in.weight", 0.313725, 0.000817 },
        { "head.weight", 0.029412, 0.029412 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *path = table[i].path;
        CHECK_NEAR(taut_share_of(&s, TAUT_SHARES_SCALAR, 32, path), table[i].scalar, 6e-7, path);
        CHECK_NEAR(taut_share_of(&s, TAUT_SHARES_ONE, 32, path), table[i].one, 6e-7, path);
        CHECK(taut_share_of(&s, TAUT_SHARES_NONE, 32, path) == 1, path);
    }
    CHECK_NEAR(taut_share_of(&s, TAUT_SHARES_SCALAR, 16, "block.0.attn.q.weight"), 0.888889, 1e-6, "mass 16");
    CHECK_NEAR(taut_share_of(&s, TAUT_SHARES_SCALAR, 16, "block.1.mlp.in.weight"), 0.296296, 1e-6, "mass 16");
    CHECK_NEAR(taut_share_of(&s, TAUT_SHARES_SCALAR, 16, "head.weight"), 0.055556, 1e-6, "mass 16");
}

static void caps(void)
{
    const taut_constrain_spec s = { .cap = 1, .role = { 2, 3, 4, 5, 6, 0 } };
    CHECK(taut_cap_of(&s, "block.0.attn.q.weight") == 2 && taut_cap_of(&s, "block.10.attn.k.weight") == 2, "q k");
    CHECK(taut_cap_of(&s, "block.0.attn.v.weight") == 3 && taut_cap_of(&s, "block.0.attn.o.weight") == 4, "v o");
    CHECK(taut_cap_of(&s, "block.0.mlp.in.weight") == 5 && taut_cap_of(&s, "block.0.mlp.out.weight") == 6, "mlp");
    CHECK(taut_cap_of(&s, "head.weight") == 1 && taut_cap_of(&s, "transform.weight") == 1, "the others");
}

/* One plain SGD step moves each matrix by its share of what it moves without, and nothing else differs. */
static void shares_in_a_step(void)
{
    taut_trainer t[2];
    taut_config *cfg[2];
    taut_step step;
    double *before[2], *after[2];
    for (int i = 0; i < 2; i++) {
        char recipe[1024];
        snprintf(recipe, sizeof recipe, "%s[train]\noptimiser = sgd\nlr = 0.5\nmomentum = 0\nbatch = 2\nshares = %s\n",
                 MODEL, i ? "one" : "none");
        cfg[i] = trainer_of(&t[i], recipe, "ref");
        before[i] = values_of(t[i].model);
        must(taut_trainer_step(&t[i], &step));
        after[i] = values_of(t[i].model);
    }
    const taut_model *m = t[0].model;
    for (int i = 0; i < m->weights; i++) {
        const taut_weight *w = &m->weight[i];
        const double share = w->param->role == TAUT_MATRIX ? taut_share_of(&m->spec, TAUT_SHARES_ONE, 32, w->path) : 1;
        for (int64_t j = w->offset, end = j + taut_weight_len(w); j < end; j++)
            CHECK_NEAR(after[1][j] - before[1][j], share * (after[0][j] - before[0][j]), 1e-13, w->path);
    }
    for (int i = 0; i < 2; i++) {
        free(before[i]), free(after[i]);
        trainer_end(&t[i], cfg[i]);
    }
}

/* ---- the cheap constraint ---- */

/* The largest certified RMS->RMS norm over its cap. */
static double highest(const taut_trainer *t)
{
    double *v = values_of(t->model), most = 0;
    for (int i = 0; i < t->model->weights; i++) {
        const taut_weight *w = &t->model->weight[i];
        const taut_param *p = w->param;
        if (p->role != TAUT_MATRIX) continue;
        const double cap = taut_cap_of(&t->recipe.constrain, w->path) * sqrt((double)p->rows / (double)p->cols);
        most = fmax(most, up_norm(v + w->offset, p->rows, p->cols).v / cap);
    }
    free(v);
    return most;
}

static const struct {
    const char *name;
    double slack; /* above its cap; inf: does not cap */
} methods[] = { { "spectral_decay", INFINITY },
                { "normalise", 0.02 },
                { "stiefel", 0 },
                { "hammer", INFINITY },
                { "softcap", 0.02 },
                { "hardcap", 1e-3 },
                { "hardcap_table", 0.02 },
                { "clip", 1e-3 },
                { "clipped_decay", INFINITY },
                { "bjorck", 1e-3 },
                { "cayley", 1e-3 } };

static void every_method(const char *optimiser, double lr)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        taut_trainer t;
        taut_step step, first;
        char recipe[1024];
        snprintf(recipe, sizeof recipe,
                 "%s[train]\noptimiser = %s\nlr = %g\nbatch = 4\nsteps = 1000\n"
                 "[constrain]\nmethod = %s\ncap = 1.5\ncap_qk = 0.7\nlo = 0.3\nembed = 1\n",
                 MODEL, optimiser, lr, methods[i].name);
        taut_config *cfg = trainer_of(&t, recipe, "cpu");
        must(taut_trainer_step(&t, &first));
        for (int n = 0; n < 25; n++) {
            must(taut_trainer_step(&t, &step));
            if (n % 8 == 0) CHECK_LE(highest(&t), 1 + methods[i].slack, methods[i].name);
        }
        CHECK_LE(step.loss, first.loss - 0.1, methods[i].name);
        trainer_end(&t, cfg);
    }
}

/* ---- the same bits ---- */

static double *train(const char *recipe, int threads, int steps, int64_t *len)
{
    taut_trainer t;
    taut_step step;
    taut_threads_set(threads);
    taut_config *cfg = trainer_of(&t, recipe, "cpu");
    for (int i = 0; i < steps; i++) {
        must(taut_trainer_step(&t, &step));
        if (i % 3 == 2) must(taut_trainer_enforce(&t));
    }
    double *v = values_of(t.model);
    *len = t.model->slab;
    trainer_end(&t, cfg);
    return v;
}

static void same_bits(const char *method)
{
    char recipe[1024];
    int64_t len;
    snprintf(recipe, sizeof recipe,
             "[data]\nlength = 4000\n[model]\nwidth = 72\ndepth = 1\nheads = 2\ncontext = 16\nnorm = "
             "none\nresidual = convex\n"
             "tied = false\n[train]\noptimiser = muon\nlr = 0.3\nbatch = 4\n"
             "[constrain]\nmethod = %s\ncap = 2\ntarget_lipschitz = 2\nembed = 1\nposition = 0.5\n",
             method);
    double *one = train(recipe, 1, 6, &len);
    double *two = train(recipe, 2, 6, &len);
    CHECK(memcmp(one, two, (size_t)len * sizeof *one) == 0, method);
    free(one), free(two);
    taut_threads_set(0);
}

/* ---- rigorous mode ---- */

static double constant_of_file(const char *path, const taut_constrain_spec *s)
{
    taut_model *m = NULL;
    must(taut_model_open(&m, path, taut_kernels_find("ref"), false));
    const double c = proved_constant(m, s);
    taut_model_free(m);
    return c;
}

static double least_used = INFINITY; /* proved / target where no cap was in the way */

/* Steps, saves between, enforces sometimes: every file is at or under its target. */
static void rigorous(const char *kernels, const char *rest)
{
    taut_trainer t;
    taut_step step;
    char recipe[2048];
    snprintf(recipe, sizeof recipe, "%s", rest);
    taut_config *cfg = trainer_of(&t, recipe, kernels);
    const taut_constrain_spec *s = &t.recipe.constrain;
    const char *path = temp_path("model.safetensors");
    for (int n = 0; n < 3; n++) {
        double *before = values_of(t.model);
        must(taut_trainer_save(&t, path));
        double *after = values_of(t.model);
        CHECK(memcmp(before, after, (size_t)t.model->slab * 8) == 0, "saving leaves the weights alone");
        CHECK_LE(constant_of_file(path, s), s->target, rest);
        CHECK(t.enforcer->proved.v == constant_of_file(path, s), "what was proved is what is in the file");
        must(taut_trainer_enforce(&t));
        must(taut_trainer_save(&t, path));
        CHECK_LE(constant_of_file(path, s), s->target, rest);
        double *shrunk = values_of(t.model);
        if (t.model->k->elem == sizeof(float))
            CHECK(memcmp(shrunk, t.enforcer->twin->values, (size_t)t.model->slab * 8) == 0,
                  "training goes on from there");
        if (s->method == TAUT_FREE && memcmp(shrunk, before, (size_t)t.model->slab * 8) != 0)
            least_used = fmin(least_used, t.enforcer->proved.v / s->target);
        free(shrunk);
        free(before), free(after);
        for (int i = 0; i < 3; i++)
            if (taut_trainer_step(&t, &step)) break; /* refused steps change nothing */
    }
    trainer_end(&t, cfg);
}

static void all_rigorous(void)
{
    static const char *const constrain[] = {
        "target_lipschitz = 2\n",
        "target_lipschitz = 6\nnorm = flat\nunits = l2\n",
        "target_lipschitz = 10\nmethod = none\nembed = 1\n",
        "target_lipschitz = 0.01\nmethod = normalise\ncap = 3\ncap_qk = 0.5\nunits = l2\n",
        "target_lipschitz = 1e-9\nmethod = hammer\nnorm = flat\n",
    };
    static const char *const train[] = { "optimiser = muon\nlr = 0.1\n", "optimiser = adamw\nlr = 1000\n",
                                         "optimiser = muon\nlr = 1e6\nclip = 0\n", "optimiser = sgd\nlr = 3\n" };
    static const char *const models[] = {
        MODEL,
        MODEL "mlp_block = potential\nactivation = relu\n",
        "[data]\nlength = 2000\n[model]\nwidth = 16\ndepth = 1\nheads = 2\ncontext = 8\n", /* GPT-2: tied,
                                                                                              norms, biases */
        ("[data]\nlength = 2000\n[model]\narch = encoder\nwidth = 16\ndepth = 1\nheads = 4\ncontext = 8\n"
         "tied = false\n"),
    };
    char recipe[2048];
    case_no = 0;
    for (int m = 0; m < 4; m++)
        for (int t = 0; t < 4; t++)
            for (int c = 0; c < 5; c++, case_no++) {
                if ((m + t + c) % 3) continue;
                snprintf(recipe, sizeof recipe, "%s[train]\nbatch = 2\n%s[constrain]\n%s", models[m], train[t],
                         constrain[c]);
                rigorous(m == 0 && c == 0 ? "ref" : "cpu", recipe);
            }
}

static bool moved(const taut_trainer *t, const double *before, const char *path)
{
    const taut_weight *w = taut_model_find(t->model, path);
    double *now = values_of(t->model);
    const bool differs = memcmp(now + w->offset, before + w->offset, (size_t)taut_weight_len(w) * 8) != 0;
    free(now);
    return differs;
}

/* A little too much is taken from the head alone, more from everything, and nothing where nothing is wrong. */
static void in_order(void)
{
    taut_trainer t;
    taut_config *cfg = trainer_of(&t, MODEL "[constrain]\nmethod = none\ntarget_lipschitz = 1e9\n", "cpu");
    static const double part[] = { 1.01, 0.7, 0.2 };
    for (case_no = 0; case_no < 3; case_no++) {
        must(taut_model_init(t.model, 1));
        double *before = values_of(t.model);
        t.recipe.constrain.target = 1e9;
        must(taut_trainer_enforce(&t));
        const double target = t.recipe.constrain.target = part[case_no] * t.enforcer->proved.v;
        must(taut_trainer_enforce(&t));
        CHECK(moved(&t, before, "head.weight") == (case_no > 0), "the head");
        CHECK(moved(&t, before, "block.0.attn.q.weight") == (case_no > 1), "the others");
        CHECK(!moved(&t, before, "embed.weight"), "never the tokens");
        CHECK_LE(t.enforcer->proved.v, target, "under the target");
        if (case_no) CHECK_LE((case_no == 1 ? 1 - 2e-6 : 0.995) * target, t.enforcer->proved.v, "without waste");
        free(before);
    }
    trainer_end(&t, cfg);
}

static void refused(void)
{
    taut_trainer t;
    taut_config *cfg = config_of("[model]\nnorm_eps = 0\n[constrain]\ntarget_lipschitz = 3\n");
    CHECK(taut_trainer_open(&t, cfg, taut_kernels_find("cpu")) == TAUT_BAD_CONFIG, "no epsilon, no constant");
    CHECK(strstr(taut_last_error(), "norm_eps"), "and says why");
    trainer_end(&t, cfg);
    cfg = trainer_of(&t, MODEL "[constrain]\ntarget_lipschitz = 3\n", "cpu");
    const double nan_ = NAN;
    t.model->k->put(taut_model_find(t.model, "block.1.mlp.in.weight")->param->value, &nan_, 1);
    CHECK(taut_trainer_enforce(&t) == TAUT_NOT_FINITE, "NaN is never enforced away");
    CHECK(taut_trainer_save(&t, temp_path("nan.safetensors")) == TAUT_NOT_FINITE, "nor saved");
    CHECK(access(temp_path("nan.safetensors"), F_OK) != 0, "no file");
    trainer_end(&t, cfg);
}

/* Allocation number n of opening fails: it says so and leaks nothing. */
static void out_of_memory(void)
{
    for (long n = 1, done = 0; n < 100000 && !done; n++) {
        taut_trainer t;
        taut_config *cfg = config_of(MODEL "[train]\noptimiser = muon\nbatch = 1\n[constrain]\ntarget_lipschitz = 2\n");
        taut_alloc_fail_at(n);
        const taut_status s = taut_trainer_open(&t, cfg, taut_kernels_find("cpu"));
        taut_alloc_fail_at(0);
        CHECK(!s || s == TAUT_NO_MEMORY, taut_last_error());
        done = !s;
        trainer_end(&t, cfg);
    }
}

int main(void)
{
    test_begin();
    temp_begin();
    shares();
    caps();
    shares_in_a_step();
    every_method("muon", 0.05);
    every_method("adamw", 0.02);
    same_bits("softcap"), same_bits("hardcap"), same_bits("cayley");
    all_rigorous();
    in_order();
    refused();
    out_of_memory();
    CHECK_LE(0.98, least_used, "enforcing wastes little");
    return test_end("constraints", "every saved file at or under its target, using at least %.3f of it", least_used);
}
