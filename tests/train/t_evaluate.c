/* Evaluation against a loop over the windows with a softmax of our own: the whole split, every target once,
 * the same for any number of rows at a time; and n windows spread over it. */
#include "train/evaluate.h"

#include "small.h"

/* Sums of -ln p and of hits over the given windows, one window at a time. */
static taut_evaluation oracle(taut_trainer *t, taut_split split, const int64_t *index, int64_t count)
{
    const taut_model *m = t->model;
    const int64_t context = m->spec.context, d = m->embed.rows;
    double *z = doubles(context * d), loss = 0;
    taut_evaluation e = { .windows = count };
    int64_t correct = 0;
    t->pass->run.phase = (taut_phase){ 0 };
    for (int64_t i = 0; i < count; i++) {
        taut_batch_windows(&t->batch, split, &index[i], 1);
        taut_pass_forward(t->pass, t->batch.x, 1, context);
        m->k->get(z, t->pass->logits.data, context * d);
        for (int64_t r = 0; r < context; r++) {
            const int32_t y = t->batch.y[r];
            double sum = 0;
            int64_t best = 0;
            if (y < 0) continue;
            for (int64_t c = 1; c < d; c++)
                if (z[r * d + c] > z[r * d + best]) best = c;
            for (int64_t c = 0; c < d; c++) sum += exp(z[r * d + c] - z[r * d + best]);
            loss += log(sum) + z[r * d + best] - z[r * d + y];
            correct += best == y;
            e.targets++;
        }
    }
    e.loss = loss / (double)e.targets;
    e.accuracy = (double)correct / (double)e.targets;
    free(z);
    return e;
}

static taut_evaluation evaluate(taut_pass *p, taut_batch *b, taut_split split, int64_t windows, int64_t rows)
{
    taut_evaluation e;
    must(taut_evaluate(&e, p, b, split, windows, rows));
    return e;
}

static void same(taut_evaluation a, taut_evaluation b, double tol, const char *what)
{
    CHECK(a.targets == b.targets && a.windows == b.windows, what);
    CHECK_NEAR(a.loss, b.loss, tol * fabs(b.loss), what);
    CHECK_NEAR(a.accuracy, b.accuracy, 1e-15 + 2 * tol, what);
}

static void whole_split(taut_trainer *t, taut_split split, double tol)
{
    static const int64_t rows[] = { 1, 7, 16, 64, 70 };
    const int64_t all = taut_source_count(t->source, split);
    int64_t *index = malloc((size_t)all * sizeof *index);
    for (int64_t i = 0; i < all; i++) index[i] = i;
    const taut_evaluation want = oracle(t, split, index, all);
    CHECK(want.windows > 70, "more windows than rows at a time");
    if (t->model->spec.arch == TAUT_ARCH_GPT)
        CHECK(want.targets == (split == TAUT_TRAIN ? 990 : 810) - 1, "every id but the first is a target once");
    for (int i = 0; i < 5; i++) same(evaluate(t->pass, &t->batch, split, 0, rows[i]), want, tol, "whole split");
    same(evaluate(t->pass, &t->batch, split, all + 5, 16), want, tol, "more windows than there are");
    t->pass->run.phase = (taut_phase){ .kind = TAUT_PHASE_TRAIN, .key = 77 }; /* left over from training */
    same(evaluate(t->pass, &t->batch, split, 0, 16), want, tol, "no dropout");
    free(index);
}

static void some_windows(taut_trainer *t, double tol)
{
    const int64_t all = taut_source_count(t->source, TAUT_VALID);
    for (int64_t n = 1; n < all; n = 3 * n + 1) {
        int64_t *index = malloc((size_t)n * sizeof *index);
        for (int64_t i = 0; i < n; i++) index[i] = i * all / n;
        same(evaluate(t->pass, &t->batch, TAUT_VALID, n, 4), oracle(t, TAUT_VALID, index, n), tol, "n windows");
        free(index);
    }
}

static void all_of(const char *arch, const char *kernels, double tol)
{
    taut_trainer t;
    char recipe[512];
    snprintf(recipe, sizeof recipe,
             "[data]\nlength = 1800\nval_fraction = 0.45\n[model]\narch = %s\nwidth = 16\nheads = 2\ndepth = 1\n"
             "context = 10\ndropout = 0.3\ninit_std = 0.3\n[train]\nbatch = 70\n",
             arch);
    taut_config *cfg = trainer_of(&t, recipe, kernels);
    whole_split(&t, TAUT_VALID, tol);
    whole_split(&t, TAUT_TRAIN, tol);
    some_windows(&t, tol);
    trainer_end(&t, cfg);
}

static void nothing_asked(void)
{
    taut_trainer t;
    taut_config *cfg = trainer_of(&t,
                                  "[data]\nlength = 500\n[model]\narch = encoder\nwidth = 8\nheads = 2\ncontext = 8\n"
                                  "[train]\nmask_rate = 1e-6\n",
                                  "cpu");
    const taut_evaluation e = evaluate(t.pass, &t.batch, TAUT_VALID, 0, 4);
    CHECK(e.targets == 0 && isnan(e.loss) && isnan(e.accuracy), "no target, no number");
    trainer_end(&t, cfg);
}

int main(void)
{
    test_begin();
    all_of("gpt", "ref", 1e-12);
    all_of("encoder", "ref", 1e-12);
    all_of("gpt", "cpu", 1e-5);
    all_of("encoder", "cpu", 1e-5);
    nothing_asked();
    return test_end("evaluate", "whole split and n windows");
}
