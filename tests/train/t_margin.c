/* The loss that asks for a radius: its value written again in plain loops, its gradient by differences (the head's rows feel
 * the head starts too), how its margin grows, steps of a centred head, and what it cannot be with. */
#include "small.h"

#define BASE                                                                                                           \
    "[data]\nsource = shapes\nlength = 100\n[model]\narch = vit\npatch = 4\nwidth = 48\ndepth = 1\nheads = 2\nnorm = " \
    "none\nmlp_block = fold\nresidual = convex\nresidual_alpha = 1\nattention = position\ntorus = true\nactivation = " \
    "abs\npool = l2\nunit_head = true\ninit = orthogonal\n[train]\noptimiser = muon\nbatch = 5\nsteps = 8\n"
#define MARGIN "loss = margin\nmargin = 1\nmargin_final = 2\nmargin_radius = 0.25\ntemperature = 0.5\n"
#define FOCUS  MARGIN "focus = 2.5\n"
#define BOTH   LEAST "focus = 2.5\n"
#define LEAST  "loss = margin\nmargin = 8\nmargin_radius = 0.25\ntemperature = 0.5\nmargin_least = 0.3\n"

static const double *head_of(const taut_trainer *t)
{
    return (const double *)taut_linear_weight(t->model->head)->value;
}

/* The share of its head start that class j gets against y: all of it, or what `fixed` has, or what y leads it by. */
typedef struct {
    double least;
    double *fixed; /* shares as they were, which a gradient does not follow; NULL: made anew */
    double focus;
} shares;

static double share_of(const shares *s, int64_t at, double lead, double full)
{
    if (s->fixed) return s->fixed[at];
    return s->least == 1 || full == 0 ? 1 : fmin(1, fmax(s->least, lead / full));
}

/* Mean loss of the batch, in plain loops; as train/margin.h has it, without the factor 1 / temperature. */
static double by_hand(taut_trainer *t, double ahead, const shares *s, double *used)
{
    const taut_param *head = taut_linear_weight(t->model->head);
    const int64_t classes = head->rows, d = head->cols, n = t->batch.count;
    const double *w = head_of(t);
    double sum = 0;
    taut_batch_forward(&t->batch, t->pass);
    const double *f = (const double *)t->pass->logits.data;
    for (int64_t i = 0; i < n; i++) {
        const int32_t y = t->batch.y[i];
        double total = 0, own = 0;
        for (int64_t j = 0; j < classes; j++) {
            double apart = 0;
            for (int64_t c = 0; c < d; c++) apart += (w[y * d + c] - w[j * d + c]) * (w[y * d + c] - w[j * d + c]);
            const int64_t at = i * classes + j;
            const double full = ahead * sqrt(apart), e = share_of(s, at, f[i * classes + y] - f[at], full);
            if (used) used[at] = e;
            const double z = (f[at] + e * full) / 0.5;
            total += exp(z);
            if (j == y) own = z;
        }
        const double l = log(total) - own;
        sum += s->focus > 0 ? pow(1 - exp(-l), s->focus) * l : l;
    }
    return sum / (double)n;
}

static void gradient(const char *recipe, double least, double focus)
{
    taut_trainer t;
    double sums[TAUT_PASS_SUMS], used[5 * 6];
    taut_config *cfg = trainer_of(&t, recipe, "ref");
    taut_model *m = t.model;
    double *w = (double *)m->values;
    taut_batch_train(&t.batch, 0, 5);
    const double ahead = taut_margin_at(&t.recipe.train, 3);
    const double logged = by_hand(&t, ahead, &(shares){ least, NULL, 0 }, used);
    const shares held = { least, used, focus };
    int some[3] = { 0 }; /* the least, all, between */
    for (int i = 0; i < 30; i++) some[used[i] == least ? 0 : used[i] == 1 ? 1 : 2]++;
    CHECK(least == 1 ? some[0] == 30 : some[0] > 0 && some[1] > 5 && some[2] > 0, "shares of all kinds");
    m->k->axpby(m->grads, 0, m->grads, 0, m->slab);
    taut_pass_clear(t.pass);
    taut_batch_forward(&t.batch, t.pass);
    taut_margin_loss(t.margin, t.pass, t.batch.y, 0.2, 3);
    taut_pass_backward(t.pass);
    must(taut_pass_sums(t.pass, sums));
    CHECK_NEAR(0.2 * sums[TAUT_PASS_LOSS], logged, 1e-12 * (1 + logged), "what is logged turns from nothing");
    for (int k = 0; k < 60; k++) {
        const taut_weight *one = k % 3 ? &m->weight[rng_int(0, m->weights - 1)] : taut_model_find(m, "head.weight");
        const int64_t at = one->offset + rng_int(0, (int)taut_weight_len(one) - 1);
        const double kept = w[at], step = 1e-6;
        w[at] = kept + step;
        const double up = by_hand(&t, ahead, &held, NULL);
        w[at] = kept - step;
        const double down = by_hand(&t, ahead, &held, NULL);
        w[at] = kept;
        CHECK_NEAR(0.5 * (up - down) / (2 * step), ((const double *)m->grads)[at], 2e-7, one->path);
    }
    trainer_end(&t, cfg);
}

/* Once the first batch has been looked at, its mean logits are 0. */
static void centres(void)
{
    taut_trainer t;
    taut_config *cfg = trainer_of(&t, BASE MARGIN "seed = 3\n", "ref");
    must(taut_trainer_settle(&t));
    taut_batch_train(&t.batch, 0, 5);
    taut_batch_forward(&t.batch, t.pass);
    const double *f = (const double *)t.pass->logits.data;
    for (int c = 0; c < 6; c++)
        CHECK_NEAR(f[c] + f[c + 6] + f[c + 12] + f[c + 18] + f[c + 24], 0, 1e-12, "the mean of logits");
    trainer_end(&t, cfg);
}

/* Before a step the gradient of W is that of features whose mean is 0; and if the optimiser does nothing, nothing changes. */
static void steps_centred(void)
{
    taut_trainer t;
    taut_config *cfg = trainer_of(&t, BASE MARGIN, "ref");
    const taut_kernels *k = t.k;
    const taut_param *head = taut_linear_weight(t.model->head), *bias = taut_model_find(t.model, "head.bias")->param;
    const int64_t classes = head->rows, d = head->cols;
    double kept[6], *g = doubles(classes * d);
    taut_batch_train(&t.batch, 0, 5);
    k->axpby(t.model->grads, 0, t.model->grads, 0, t.model->slab);
    taut_batch_forward(&t.batch, t.pass);
    taut_margin_loss(t.margin, t.pass, t.batch.y, 0.2, 3);
    taut_pass_backward(t.pass);
    memcpy(g, head->grad, (size_t)(classes * d) * sizeof *g);
    memcpy(kept, bias->value, sizeof kept);
    taut_margin_look(t.margin, t.pass);
    const double *mean = (const double *)t.margin->mean, *gb = (const double *)bias->grad;
    double longest = 0;
    for (int64_t c = 0; c < d; c++) longest = fmax(longest, fabs(mean[c]));
    CHECK(longest > 0.1, "features are far from 0");
    taut_margin_before(t.margin, k);
    for (int64_t i = 0; i < classes * d; i++)
        CHECK_NEAR(((const double *)head->grad)[i], g[i] - gb[i / d] * mean[i % d], 1e-12, "gradient of W at h - mu");
    for (int64_t i = 0; i < classes; i++) {
        double c = kept[i];
        for (int64_t j = 0; j < d; j++) c += head_of(&t)[i * d + j] * mean[j];
        CHECK_NEAR(((const double *)bias->value)[i], c, 1e-12, "c = b + W mu");
    }
    taut_margin_after(t.margin, k);
    for (int64_t i = 0; i < classes; i++) CHECK_NEAR(((const double *)bias->value)[i], kept[i], 1e-12, "b again");
    free(g);
    trainer_end(&t, cfg);
}

static void grows(void)
{
    const taut_train_spec s = { .steps = 8, .margin = 1, .margin_final = 2, .margin_radius = 0.25 };
    static const double want[] = { 0.25, 0.3125, 0.375, 0.4375, 0.5, 0.5 };
    for (int i = 0; i < 6; i++) CHECK_NEAR(taut_margin_at(&s, i), want[i], 1e-15, "the margin of a step");
}

static void refused(const char *recipe, const char *why)
{
    taut_trainer t;
    taut_config *cfg = config_of(recipe);
    CHECK(taut_trainer_open(&t, cfg, taut_kernels_find("ref")) == TAUT_BAD_CONFIG && strstr(taut_last_error(), why),
          why);
    trainer_end(&t, cfg);
}

int main(void)
{
    test_begin();
    gradient(BASE MARGIN, 1, 0);
    gradient(BASE FOCUS, 1, 2.5);
    gradient(BASE LEAST, 0.3, 0);
    gradient(BASE BOTH, 0.3, 2.5);
    centres();
    steps_centred();
    grows();
    refused("[data]\nlength = 2000\n[train]\nloss = margin\n", "one right class");
    refused("[data]\nsource = shapes\nlength = 100\nmixup = 1\n[model]\narch = mlp\n[train]\nloss = margin\n", "mixup");
    refused("[data]\nsource = shapes\nlength = 100\n[model]\narch = mlp\nclasses = 65\n[train]\nloss = margin\n",
            "64 classes");
    refused("[data]\nsource = shapes\nlength = 100\n[model]\narch = mlp\n[train]\nmargin = 1\n", "unknown key");
    refused(BASE MARGIN "margin_least = 1.5\n", "train.margin_least");
    refused(BASE MARGIN "margin_least = nan\n", "train.margin_least");
    refused(BASE MARGIN "focus = 0.5\n", "train.focus");
    return test_end("margin", "%s", "");
}
