/* Early stopping: the best evaluation's weights are what a run leaves, training ends after the patience, and a run that was
 * stopped in between and resumed ends with the same bits. */
#include "small.h"
#include "temp.h"
#include "train/best.h"
#include "train/train.h"

#define BASE                                                                                                       \
    "[data]\nsource = waves\nlength = 300\n[model]\narch = forecaster\nseq = 8\nlabel = 4\nahead = 2\nwidth = 8\n" \
    "depth = 1\nheads = 2\nmlp = 8\n[train]\nbatch = 4\noptimiser = adamw\n"

/* Losses that are told: 3 2 NaN 2.5 1 1 4 2 with a patience of 3. */
static void counts(void)
{
    static const double loss[] = { 3, 2, NAN, 2.5, 1, 1, 4, 2 };
    static const int64_t best[] = { 1, 2, 2, 2, 5, 5, 5, 5 }, waited[] = { 0, 0, 1, 2, 0, 1, 2, 3 };
    taut_trainer t;
    taut_step step;
    taut_config *cfg = trainer_of(&t, BASE "steps = 9\neval_every = 1\npatience = 3\n", "ref");
    double *kept = NULL;
    for (int i = 0; i < 8; i++) {
        CHECK(!taut_best_over(&t), "not yet");
        must(taut_trainer_step(&t, &step));
        if (i == 4) kept = values_of(t.model);
        taut_best_see(&t, loss[i]);
        CHECK(t.clock.best_step == best[i] && t.clock.waited == waited[i], "when it was best, and since");
    }
    CHECK(taut_best_over(&t), "three that were not better");
    double *last = values_of(t.model);
    const size_t size = (size_t)t.model->slab * sizeof(double);
    taut_best_show(&t);
    CHECK(memcmp(t.model->values, kept, size) == 0, "the weights of step 5");
    taut_best_back(&t);
    CHECK(memcmp(t.model->values, last, size) == 0, "and back");
    free(kept), free(last);
    trainer_end(&t, cfg);
}

static taut_train_summary run(const char *lines, const char *name, bool resume, int steps)
{
    char recipe[1024];
    taut_train_summary s = { 0 };
    snprintf(recipe, sizeof recipe, BASE "steps = %d\nlog_every = 1000\ncheckpoint_every = 7\n%s", steps, lines);
    taut_config *cfg = config_of(recipe);
    must(taut_train(&s, cfg, taut_kernels_find("cpu"),
                    &(taut_training){ .run = temp_path(name), .resume = resume, .overwrite = !resume }));
    taut_config_free(cfg);
    return s;
}

static void same_file(const char *a, const char *b)
{
    size_t na = 0, nb = 0;
    char *x = temp_get(temp_path(a), &na), *y = temp_get(temp_path(b), &nb);
    CHECK(x && y && na == nb && memcmp(x, y, na) == 0, a);
    free(x), free(y);
}

/* A learning rate far too large: the loss soon grows, and the run ends early. */
static void ends_early(void)
{
    static const char patient[] = "lr = 0.3\nschedule = constant\nclip = 0\neval_every = 5\npatience = 2\n";
    const taut_train_summary whole = run(patient, "whole", false, 400);
    CHECK(whole.steps < 400 && !whole.stopped, "ended early, and not stopped");
    CHECK(whole.steps == whole.best_step + 10 && whole.best_step > 0, "two evaluations after the best");
    const taut_train_summary cut = run(patient, "cut", false, (int)whole.best_step + 2);
    CHECK(cut.steps == whole.best_step + 2 && cut.best_step == whole.best_step, "cut off after the best");
    CHECK(cut.val_loss == whole.val_loss && cut.test_loss == whole.test_loss, "the same model");
    const taut_train_summary rest = run(patient, "cut", true, 400);
    CHECK(rest.steps == whole.steps && rest.best_step == whole.best_step && rest.test_loss == whole.test_loss,
          "resumed, it ends the same");
    const taut_train_summary over = run(patient, "cut", true, 400);
    CHECK(over.steps == whole.steps && over.test_loss == whole.test_loss, "over already: nothing changes");
    taut_train_summary impatient = run("lr = 0.3\nschedule = constant\nclip = 0\neval_every = 5\n", "last", false,
                                       (int)whole.steps);
    CHECK(impatient.best_step == 0 && impatient.val_loss > whole.val_loss, "the best is better than the last");
}

static void refused(void)
{
    taut_trainer t;
    taut_config *cfg = config_of(BASE "steps = 9\npatience = 3\n");
    CHECK(taut_trainer_open(&t, cfg, taut_kernels_find("cpu")) == TAUT_BAD_CONFIG, "patience without evaluations");
    CHECK(strstr(taut_last_error(), "train.eval_every") != NULL, taut_last_error());
    trainer_end(&t, cfg);
}

int main(void)
{
    test_begin();
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* where fsync costs nothing */
    temp_begin();
    counts();
    ends_early();
    same_file("cut/model.safetensors", "whole/model.safetensors");
    refused();
    return test_end("best", "kept, counted, resumed");
}
