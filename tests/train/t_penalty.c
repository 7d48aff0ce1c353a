/* Penalties: the gradient that reaches the weights is the derivative of loss + penalty, for a ViT and a causal GPT; what
 * JaSMin and Specformer do to attention when trained; bad keys. */
#include "train/penalty/penalty.h"

#include "bound/norm.h"
#include "small.h"

#define VIT                                                                                                          \
    "[data]\nsource = shapes\nlength = 100\n[model]\narch = vit\npatch = 8\nwidth = 8\ndepth = 2\nheads = 2\nmlp = " \
    "8\n"                                                                                                            \
    "init_std = 0.4\n[train]\nbatch = 3\n"
#define GPT                                                                                             \
    "[data]\nlength = 600\n[model]\nwidth = 8\ndepth = 2\nheads = 2\nmlp = 8\ncontext = 6\ninit_std = " \
    "0.4\n[train]\nbatch = 3\n"

/* loss + penalty at the trainer's weights, with the gradients in the slab. */
static double objective(taut_trainer *t)
{
    const taut_model *m = t->model;
    const int64_t targets = taut_batch_train(&t->batch, 0, 3);
    double sums[TAUT_PASS_SUMS];
    taut_pass_clear(t->pass);
    m->k->axpby(m->grads, 0, m->grads, 0, m->slab);
    taut_jasmin_step jasmin;
    const taut_watcher watch = taut_jasmin_watch(&jasmin, t->pass, &t->recipe.penalty, 3);
    t->pass->run.watch = &watch;
    t->pass->run.phase = (taut_phase){ 0 };
    taut_batch_forward(&t->batch, t->pass);
    taut_batch_loss(&t->batch, t->pass, 1 / (double)targets, true);
    taut_pass_backward(t->pass);
    t->pass->run.watch = NULL;
    const int64_t work = taut_specformer_work(m, &t->recipe.penalty);
    taut_specformer_add(m, &t->recipe.penalty, taut_sum_at(t->pass->sums, TAUT_PASS_PENALTY),
                        (taut_span){ t->penalty_work, work, 8 });
    must(taut_pass_sums(t->pass, sums));
    return sums[TAUT_PASS_LOSS] / (double)targets + sums[TAUT_PASS_PENALTY];
}

static void derivative(const char *recipe, const char *penalty)
{
    taut_trainer t;
    char text[1024];
    snprintf(text, sizeof text, "%s%s", recipe, penalty);
    taut_config *cfg = trainer_of(&t, text, "ref");
    double *w = (double *)t.model->values, *g = doubles(t.model->slab);
    objective(&t);
    memcpy(g, t.model->grads, (size_t)t.model->slab * sizeof *g);
    for (int i = 0; i < t.model->weights; i++) {
        const taut_weight *x = &t.model->weight[i];
        const int64_t at = x->offset + rng_int(0, taut_weight_len(x) - 1);
        const double keep = w[at];
        double best = INFINITY;
        for (double h = 1e-4; h > 1e-7; h /= 8) { /* a kink inside the larger steps is no fault */
            w[at] = keep + h;
            const double up = objective(&t);
            w[at] = keep - h;
            best = fmin(best, fabs((up - objective(&t)) / (2 * h) - g[at]));
        }
        w[at] = keep;
        CHECK_LE(best, 2e-6 * (1 + fabs(g[at])), x->path);
    }
    free(g);
    trainer_end(&t, cfg);
}

/* After some steps: the penalty itself (weight 1), measured the same way for every run. */
static double trained(const char *penalty, const char *measure)
{
    taut_trainer t;
    char text[1024];
    taut_step step;
    snprintf(text, sizeof text, "%s%s", VIT "steps = 60\nlr = 0.02\n", penalty);
    taut_config *cfg = trainer_of(&t, text, "cpu");
    for (int i = 0; i < 60; i++) must(taut_trainer_step(&t, &step));
    taut_config *other = config_of(measure);
    must(taut_penalty_spec_read(&t.recipe.penalty, other));
    double sum = 0;
    if (t.recipe.penalty.kind == TAUT_SPECFORMER) {
        t.penalty_work = t.penalty_work ? t.penalty_work : taut_reals(t.model->k, 4096);
        taut_pass_clear(t.pass);
        taut_specformer_add(t.model, &t.recipe.penalty, taut_sum_at(t.pass->sums, TAUT_PASS_PENALTY),
                            (taut_span){ t.penalty_work, 4096, t.model->k->elem });
        double sums[TAUT_PASS_SUMS];
        must(taut_pass_sums(t.pass, sums));
        sum = sums[TAUT_PASS_PENALTY];
    } else {
        must(taut_trainer_step(&t, &step));
        sum = step.penalty;
    }
    taut_config_free(other);
    trainer_end(&t, cfg);
    return sum;
}

static void effect(void)
{
    static const char jasmin[] = "[train]\npenalty = jasmin\npenalty_weight = 1\n";
    static const char spec[] = "[train]\npenalty = specformer\npenalty_query = 1\n";
    const double plain = trained("", jasmin), held = trained("penalty = jasmin\npenalty_weight = 0.1\n", jasmin);
    CHECK_LE(held, plain - 0.5, "JaSMin makes rows flatter"); /* the sum of four logarithms */
    const double top = trained("", spec), small = trained("penalty = specformer\npenalty_query = 0.1\n", spec);
    CHECK_LE(small, 0.8 * top, "Specformer makes W_Q, W_K and W_V smaller");
}

static void refused(void)
{
    static const char *const bad[] = { "penalty = jasmin\npenalty_k = 1\n",
                                       "penalty = jasmin\npenalty_k = 65\n",
                                       "penalty = jasmin\npenalty_query = 1\n",
                                       "penalty = nothing\n",
                                       "penalty_weight = 1\n",
                                       "penalty = jasmin\npenalty_eps = 0\n" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[1024];
        taut_recipe r;
        snprintf(text, sizeof text, "%s%s", VIT, bad[i]);
        taut_config *cfg = config_of(text);
        CHECK(taut_recipe_read(&r, cfg) == TAUT_BAD_CONFIG, bad[i]);
        taut_config_free(cfg);
    }
    static const char *const idle[] = { "attention = cosine", "attention = position", "attention_blocks = 0" };
    for (size_t i = 0; i < 3; i++) {
        char text[1024];
        taut_recipe r;
        snprintf(text, sizeof text, "[model]\n%s\n[train]\npenalty = jasmin\n", idle[i]);
        taut_config *cfg = config_of(text);
        CHECK(taut_recipe_read(&r, cfg) == TAUT_BAD_CONFIG && strstr(taut_last_error(), "softmax attention"), idle[i]);
        taut_config_free(cfg);
    }
}

/* With every kind of attention that reads images, a penalty changes the objective or is refused with a line that names both. */
static void never_idle(void)
{
    static const char *const kinds[] = { "softmax", "cosine", "position", "plash",     "clustered", "l2",
                                         "l2_free", "attlip", "window",   "cosformer", "performer", "nystrom" };
    static const char *const penalties[] = { "penalty = jasmin\n", "penalty = jasmin_exact\n",
                                             "penalty = specformer\n" };
    int taken = 0;
    for (int i = 0; i < 12 * 3; i++) {
        const char *kind = kinds[i / 3], *penalty = penalties[i % 3];
        char text[1024];
        double with[2];
        for (int on = 0; on < 2; on++) {
            snprintf(text, sizeof text, "%s%s[model]\nnorm = none\nattention = %s\n", VIT, on ? penalty : "", kind);
            taut_trainer t = { 0 };
            taut_recipe r;
            taut_config *cfg = config_of(text);
            const taut_status s = taut_recipe_read(&r, cfg);
            taut_config_free(cfg);
            with[on] = NAN;
            if (s) {
                CHECK(on == 1 && s == TAUT_BAD_CONFIG &&
                          strstr(taut_last_error(), "does nothing with model.attention = ") &&
                          strstr(taut_last_error(), kind),
                      text);
                break;
            }
            cfg = trainer_of(&t, text, "ref");
            with[on] = objective(&t);
            trainer_end(&t, cfg);
        }
        taken += !isnan(with[1]);
        CHECK(isnan(with[1]) || fabs(with[1] - with[0]) > 1e-9, text);
    }
    CHECK(taken == 5, "three of softmax, Specformer of both distances");
}

int main(void)
{
    test_begin();
    static const char *const kinds[] = {
        "penalty = jasmin\npenalty_weight = 0.3\n",
        "penalty = jasmin\npenalty_weight = 0.3\npenalty_over = max\n",
        "penalty = jasmin\npenalty_weight = 0.3\npenalty_k = 2\n",
        "penalty = jasmin_exact\npenalty_weight = 0.3\n",
        "penalty = jasmin_exact\npenalty_weight = 0.3\npenalty_k = 3\npenalty_over = max\n",
        "penalty = specformer\npenalty_query = 0.1\npenalty_value = 0.3\n",
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) derivative(VIT, kinds[i]), derivative(GPT, kinds[i]);
    effect();
    refused();
    never_idle();
    return test_end("penalty", "jasmin, exact, specformer");
}
