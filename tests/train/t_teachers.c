/* Distillation: the slope against the shares written out, in every task; a model that is taught by itself alone learns nothing;
 * who cannot teach; and every allocation of opening may fail. */
#include "base/alloc.h"
#include "base/file.h"
#include "small.h"
#include "temp.h"

#define TEXT   "[data]\nlength = 4000\n[train]\nbatch = 3\nsteps = 9\noptimiser = sgd\nlr = 0.1\n[model]\nheads = 2\n"
#define NARROW TEXT "width = 16\ndepth = 1\n"
#define GPT    NARROW "context = 12\n"
#define LONGER NARROW "context = 13\n"
#define WIDER  TEXT "width = 24\ndepth = 2\ncontext = 12\ndropout = 0.3\n"
#define MASKED GPT "arch = encoder\n"
#define IMAGES "[data]\nsource = shapes\nlength = 100\n[train]\nbatch = 3\nsteps = 9\n[model]\n"
#define VIT    IMAGES "arch = vit\npatch = 4\nwidth = 16\nheads = 2\ndepth = 1\n"
#define MLP    IMAGES "arch = mlp\nhidden = 20\n"
#define SERIES(length)                                                                                          \
    "[data]\nsource = waves\nlength = " #length "\n[train]\nbatch = 3\nsteps = 9\n[model]\narch = forecaster\n" \
    "width = 16\nheads = 2\n"
#define WAVES SERIES(900) "seq = 24\nlabel = 12\nahead = 6\n"

/* A run of this recipe, with weights of this seed; seed 0: one of them is NaN. */
static void save(const char *name, const char *recipe, uint64_t weights)
{
    const double poison = NAN;
    taut_trainer t;
    taut_config *cfg = config_of(recipe);
    must(taut_trainer_open(&t, cfg, taut_kernels_find("cpu")));
    must(taut_model_init(t.model, weights));
    if (weights == 0) t.model->k->put(t.model->values, &poison, 1);
    char folder[2048], path[4096];
    snprintf(folder, sizeof folder, "%s/%s", temp_dir, name);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    must(taut_dir_make(folder));
    must(taut_model_save(t.model, path));
    trainer_end(&t, cfg);
}

/* The recipe, these lines more, and train.teachers = one or two runs of the temporary folder. */
static const char *taught(const char *recipe, const char *one, const char *two, const char *more)
{
    static char text[8192];
    snprintf(text, sizeof text, "%s%s[train]\nteachers = %s/%s%s%s%s%s\n", recipe, more, temp_dir, one, two ? ", " : "",
             two ? temp_dir : "", two ? "/" : "", two ? two : "");
    return text;
}

/* ---- the slope ---- */

static void softmax(double *p, const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(x[i]);
    for (int64_t i = 0; i < n; i++) p[i] = exp(x[i]) / sum;
}

/* What a model answers to the batch, row by row: probabilities, or forecasts. */
static double *answers_of(const taut_batch *b, taut_pass *p)
{
    taut_batch_forward(b, p);
    const int64_t rows = taut_rows(p->logits.shape), d = p->logits.shape.d;
    double *a = doubles(rows * d);
    p->m->k->get(a, p->logits.data, rows * d);
    for (int64_t r = 0; r < rows && !b->wanted; r++) softmax(a + r * d, a + r * d, d);
    return a;
}

static double right_answer(const taut_batch *b, int64_t row, int64_t c, int64_t d)
{
    return b->wanted ? b->wanted[row * d + c] : b->y[row] == c;
}

static void slope(const char *what, const char *recipe, double share)
{
    taut_trainer t;
    taut_config *cfg = trainer_of(&t, recipe, "ref");
    const int64_t targets = taut_batch_train(&t.batch, 4, 3);
    const double weight = 1 / (double)targets;
    double *own = answers_of(&t.batch, t.pass), logged[2][TAUT_PASS_SUMS];
    const int64_t rows = taut_rows(t.pass->logits.shape), d = t.pass->logits.shape.d;
    double *other = doubles(rows * d), *got = doubles(rows * d), far = 0, pulled = 0;
    const int count = t.teachers->count;
    for (int i = 0; i < count; i++) {
        double *one = answers_of(&t.batch, t.teachers->teacher[i].pass);
        for (int64_t j = 0; j < rows * d; j++) other[j] += one[j] / count;
        free(one);
    }
    for (int with = 0; with < 2; with++) {
        taut_pass_clear(t.pass);
        taut_batch_forward(&t.batch, t.pass);
        taut_batch_loss(&t.batch, t.pass, weight, true);
        if (with) taut_teachers_pull(t.teachers, t.pass, &t.batch, weight);
        must(taut_pass_sums(t.pass, logged[with]));
    }
    CHECK(logged[0][TAUT_PASS_LOSS] == logged[1][TAUT_PASS_LOSS], "what is logged is the usual loss");
    t.model->k->get(got, t.pass->logits.data, rows * d);
    for (int64_t j = 0; j < rows * d; j++) {
        const double right = right_answer(&t.batch, j / d, j % d, d), q = (1 - share) * right + share * other[j];
        const bool asked = t.batch.wanted || t.batch.y[j / d] >= 0;
        const double twice = t.batch.wanted ? 2 : 1; /* squared errors */
        far = fmax(far, fabs(got[j] - (asked ? twice * weight * (own[j] - q) : 0)) / weight);
        pulled = fmax(pulled, fabs(q - right));
    }
    CHECK_LE(far, 1e-13, what);
    CHECK_LE(0.01 * share, pulled, what);
    free(own), free(other), free(got);
    trainer_end(&t, cfg);
}

/* ---- a model that is its own teacher ---- */

static void itself(const char *kernels)
{
    taut_trainer t;
    taut_step step;
    taut_config *cfg = config_of(taught(GPT, "twin", NULL, "[train]\nteacher_share = 1\n"));
    must(taut_trainer_open(&t, cfg, taut_kernels_find(kernels)));
    must(taut_model_init(t.model, 5));
    double *before = values_of(t.model);
    t.model->k->put(t.teachers->teacher[0].model->values, before, t.model->slab); /* twin has been rounded to floats */
    must(taut_trainer_step(&t, &step));
    double *after = values_of(t.model);
    CHECK(memcmp(before, after, (size_t)t.model->slab * sizeof *after) == 0, "there is nothing to learn from oneself");
    CHECK_LE(0.1, step.loss, "but the loss of the right answers is logged");
    free(before), free(after);
    trainer_end(&t, cfg);
}

/* ---- who cannot teach ---- */

static void refused(const char *recipe, const char *why)
{
    taut_trainer t;
    taut_config *cfg = config_of(recipe);
    const taut_status s = taut_trainer_open(&t, cfg, taut_kernels_find("cpu"));
    CHECK(s == TAUT_BAD_CONFIG || s == TAUT_BAD_FILE, why);
    if (!strstr(taut_last_error(), why)) fprintf(stderr, "  it says: %s\n", taut_last_error());
    CHECK(strstr(taut_last_error(), why), why);
    trainer_end(&t, cfg);
}

static void refusals(void)
{
    refused(taught(GPT, "longer", NULL, ""), "reads other lengths");
    refused(taught(GPT, "vit", NULL, ""), "is of another task");
    refused(taught(VIT, "gpt", NULL, ""), "is of another task");
    refused(taught(GPT, "masked", NULL, ""), "is of another task"); /* it would see what it is asked */
    refused(taught(GPT, "poisoned", NULL, ""), "not a finite number");
    refused(taught(GPT, "bytes", NULL, ""), "has another vocabulary");
    refused(taught(WAVES, "column", NULL, ""), "reads other shapes");
    refused(taught(WAVES, "ahead", NULL, ""), "is asked something else");
    refused(taught(WAVES, "column", NULL, "[data]\ncolumns = both\n"), "its data.columns is day, not both");
    refused(taught(WAVES, "scaled", NULL, ""), "its data.means is");
    refused(taught(SERIES(900) "seq = 22\nlabel = 14\nahead = 6\n", "waves", NULL, ""), "its model.seq is 24, not 22");
    refused(taught(GPT, "gpt", NULL, "[train]\nteachers_sha256 = 00\n"),
            "are other models than train.teachers_sha256 says");
    refused(taught(GPT, "gpt", "nobody", ""), "nobody");
    refused(taught(GPT, "gpt", "", ""), "model.safetensors");
    refused(taught(GPT, "gpt,", "gpt", ""), "want runs, with commas between them");
    refused(GPT "[train]\nteachers =\n", "train.teachers");
    refused(GPT "[train]\nteacher_share = 0.5\n", "train.teacher_share");
    refused(taught(GPT, "gpt", NULL, "[train]\nteacher_share = 0\n"), "train.teacher_share");
    refused(taught(VIT, "vit", NULL, "[train]\nloss = margin\n"), "not with train.loss = margin");
    refused(taught(VIT, "vit", NULL, "[data]\nmixup = 0.2\n"), "data.mixup");
}

/* ---- memory ---- */

static bool opens(long n)
{
    taut_trainer t;
    taut_config *cfg = config_of(taught(GPT, "gpt", "wider", ""));
    taut_alloc_fail_at(n);
    const taut_status s = taut_trainer_open(&t, cfg, taut_kernels_find("cpu"));
    taut_alloc_fail_at(0);
    if (s) CHECK(s == TAUT_NO_MEMORY, taut_last_error());
    trainer_end(&t, cfg);
    return s == TAUT_OK;
}

int main(void)
{
    test_begin();
    temp_begin();
    save("gpt", GPT, 1), save("wider", WIDER, 2), save("twin", GPT, 5), save("masked", MASKED, 3);
    save("vit", VIT, 4), save("mlp", MLP, 5), save("waves", WAVES, 6);
    save("longer", LONGER, 1), save("bytes", GPT "[data]\ntokens = bytes\n", 1);
    save("column", WAVES "[data]\ncolumns = day\n", 1),
        save("ahead", SERIES(900) "seq = 24\nlabel = 13\nahead = 5\n", 1);
    save("scaled", SERIES(700) "seq = 24\nlabel = 12\nahead = 6\n", 1), save("poisoned", GPT, 0);
    slope("a text, one teacher", taught(GPT, "gpt", NULL, ""), 0.5);
    slope("a text, two", taught(GPT, "gpt", "wider", "[train]\nteacher_share = 0.7\n"), 0.7);
    slope("hidden tokens", taught(MASKED, "masked", NULL, "[train]\nteacher_share = 1\n"), 1);
    slope("images, another architecture", taught(VIT, "mlp", "vit", "[train]\nteacher_share = 0.25\n"), 0.25);
    slope("forecasts", taught(WAVES, "waves", NULL, ""), 0.5);
    itself("ref");
    itself("cpu");
    refusals();
    long n = 1;
    while (n < 100000 && !opens(n)) n++;
    CHECK(n > 50, "allocations did fail");
    return test_end("teachers", "five slopes; %ld allocations failed one by one", n - 1);
}
