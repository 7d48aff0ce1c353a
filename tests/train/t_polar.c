/* Matrices that stay orthogonal while Muon turns them, heads whose rows stay on the sphere, and the running mean of such
 * weights: what is seen of it is orthogonal too, and a run that was stopped in between ends with the same bits. */
#include "small.h"
#include "temp.h"
#include "train/average.h"
#include "train/train.h"

#define MODEL                                                                                                          \
    "[data]\nsource = shapes\nlength = 100\n[model]\narch = vit\npatch = 4\nwidth = 52\ndepth = 1\nheads = 2\nnorm = " \
    "none\nmlp_block = fold\nresidual = convex\nresidual_alpha = 1\nattention = position\ntorus = true\nactivation = " \
    "abs\npool = l2\nunit_head = true\ninit = orthogonal\n[constrain]\nmethod = polar\n"
#define TRAIN "[train]\noptimiser = muon\nbatch = 5\nlr = 0.05\nschedule = constant\nclip = 0\n"

/* The largest entry of W^T W - I, or of W W^T - I where W is wide; of a head, of its rows' lengths less 1. */
static double off(const taut_weight *one)
{
    const taut_param *p = one->param;
    double *w = doubles(p->rows * p->cols), worst = 0;
    taut_kernels_find("ref")->get(w, p->value, p->rows * p->cols);
    const bool wide = p->rows <= p->cols;
    const int64_t side = wide ? p->rows : p->cols, len = wide ? p->cols : p->rows;
    for (int64_t i = 0; i < side; i++)
        for (int64_t j = 0; j < (p->unit_rows ? i + 1 : side); j++) {
            double sum = 0;
            if (p->unit_rows && j != i) continue;
            for (int64_t k = 0; k < len; k++)
                sum += wide ? w[i * len + k] * w[j * len + k] : w[k * side + i] * w[k * side + j];
            worst = fmax(worst, fabs(sum - (i == j)));
        }
    free(w);
    return worst;
}

static void all_within(const taut_trainer *t, double square, double other, const char *what)
{
    int matrices = 0;
    for (int i = 0; i < t->model->weights; i++)
        if (t->model->weight[i].param->role == TAUT_MATRIX) {
            matrices++;
            const taut_param *p = t->model->weight[i].param;
            CHECK_LE(off(&t->model->weight[i]), p->rows == p->cols ? square : other, what);
        }
    CHECK(matrices == 4, "patch, v, o, head");
}

/* A step along the tangent space of a square matrix leaves singular values of at most sqrt(1 + (1.2025 lr)^2), an error of
 * e = 1.83e-3, and one polar step 1.5 e^2 of it, 3 e^2 of the square.  Of the patches' matrix it is at most e = 1.2025 lr,
 * 0.0625 with what was left before, then 1.6 e^2 (e^3 too), then 3.2 (1.6 e^2)^2 of the square. */
static void stays(void)
{
    taut_trainer t;
    taut_step step;
    taut_config *cfg = trainer_of(&t, MODEL TRAIN "steps = 100\naverage = 0.9\npolynomial = classic5\n", "ref");
    double *first = values_of(t.model);
    for (int i = 0; i < 12; i++) must(taut_trainer_step(&t, &step));
    double *last = values_of(t.model), moved = 0;
    const taut_weight *v = taut_model_find(t.model, "block.0.attn.v.weight");
    for (int64_t i = v->offset; i < v->offset + taut_weight_len(v); i++) moved += pow(first[i] - last[i], 2);
    CHECK_LE(0.5, moved, "it turned");
    all_within(&t, 3.2 * 1.83e-3 * 1.83e-3, 3.2 * pow(1.6 * 0.0625 * 0.0625, 2), "orthogonal after a step");
    taut_average_show(&t);
    all_within(&t, 1e-12, 1e-12, "the mean is orthogonal");
    double *mean = values_of(t.model), apart = 0;
    for (int64_t i = 0; i < t.model->slab; i++) apart += pow(mean[i] - last[i], 2);
    CHECK_LE(1e-3, apart, "and another one");
    taut_average_back(&t);
    double *again = values_of(t.model);
    CHECK(memcmp(again, last, (size_t)t.model->slab * sizeof *again) == 0, "the weights are back");
    free(first), free(last), free(mean), free(again);
    trainer_end(&t, cfg);
}

/* The same after two steps each: e = sqrt(1 + (2 * 1.2025 lr)^2) - 1 = 7.3e-3, and 2 * 0.0625 of the patches' matrix. */
static void seldom(void)
{
    taut_trainer t;
    taut_step step;
    taut_config *cfg = trainer_of(&t, MODEL "every = 2\n" TRAIN "steps = 100\npolynomial = classic5\n", "ref");
    for (int i = 0; i < 11; i++) must(taut_trainer_step(&t, &step));
    CHECK_LE(1e-5, off(taut_model_find(t.model, "block.0.attn.v.weight")), "a step leaves the sphere");
    must(taut_trainer_step(&t, &step));
    all_within(&t, 3.2 * 7.3e-3 * 7.3e-3, 3.2 * pow(1.6 * 0.125 * 0.125, 2), "orthogonal after two steps");
    trainer_end(&t, cfg);
}

/* One step of the optimiser alone, on random gradients: W^T (W' - W) is skew where W is square. */
static void along_tangent(void)
{
    taut_trainer t;
    taut_config *cfg = trainer_of(&t, MODEL TRAIN "steps = 100\n", "ref");
    taut_model *m = t.model;
    double *g = doubles(m->slab), *before = values_of(m);
    for (int64_t i = 0; i < m->slab; i++) g[i] = rng_pm();
    m->k->put(m->grads, g, m->slab);
    taut_optimiser_step(t.optimiser, 0, 1);
    double *after = values_of(m);
    for (int n = 0; n < m->weights; n++) {
        const taut_weight *w = &m->weight[n];
        const taut_param *p = w->param;
        if (p->role != TAUT_MATRIX || p->rows != p->cols) continue;
        double worst = 0, size = 0;
        for (int64_t i = 0; i < p->cols; i++)
            for (int64_t j = 0; j < p->cols; j++) {
                double ij = 0, ji = 0;
                for (int64_t r = 0; r < p->rows; r++) {
                    const int64_t a = w->offset + r * p->cols + i, b = w->offset + r * p->cols + j;
                    ij += before[a] * (after[b] - before[b]), ji += before[b] * (after[a] - before[a]);
                }
                worst = fmax(worst, fabs(ij + ji)), size = fmax(size, fabs(ij));
            }
        CHECK_LE(1e-4, size, "it moves within");
        CHECK_LE(worst, 1e-12, "a step in the tangent space");
    }
    free(g), free(before), free(after);
    trainer_end(&t, cfg);
}

static void run(const char *name, bool resume, int steps)
{
    char recipe[2048];
    taut_train_summary s = { 0 };
    snprintf(recipe, sizeof recipe, MODEL TRAIN "average = 0.9\nloss = margin\nsteps = %d\ncheckpoint_every = 4\n",
             steps);
    taut_config *cfg = config_of(recipe);
    must(taut_train(&s, cfg, taut_kernels_find("cpu"),
                    &(taut_training){ .run = temp_path(name), .resume = resume, .overwrite = !resume }));
    taut_config_free(cfg);
}

static void resumes(void)
{
    size_t na = 0, nb = 0;
    run("whole", false, 8);
    run("cut", false, 5);
    run("cut", true, 8);
    char *a = temp_get(temp_path("whole/model.safetensors"), &na),
         *b = temp_get(temp_path("cut/model.safetensors"), &nb);
    CHECK(a && b && na == nb && memcmp(a, b, na) == 0, "the same model");
    free(a), free(b);
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
    temp_begin();
    stays();
    seldom();
    along_tangent();
    resumes();
    refused(MODEL "cap = 2\n" TRAIN, "has no caps");
    refused(MODEL "every = 3\n" TRAIN "steps = 100\n", "does not divide");
    refused(MODEL "[train]\noptimiser = adamw\n", "muon");
    refused(MODEL TRAIN "average = 0.5\npatience = 2\neval_every = 1\n", "use one of them");
    refused("[data]\nsource = shapes\nlength = 100\n[model]\narch = vit\nmlp_block = fold\n", "fold is for");
    refused("[data]\nsource = shapes\nlength = 100\n[model]\narch = vit\nfirst_fold = false\n",
            "first_fold = false is for");
    return test_end("polar", "%s", "");
}
