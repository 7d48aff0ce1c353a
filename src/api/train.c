/* Training a recipe into a folder, and the score of a model on data. */
#include "train/train.h"

#include <math.h>
#include <string.h>

#include "api/call.h"
#include "api/data.h"
#include "api/lookup.h"
#include "api/net.h"
#include "train/evaluate.h"

taut_status taut_overrides_apply(taut_config *cfg, const char *const *overrides, int count)
{
    taut_status s = TAUT_OK;
    if (count < 0 || (count > 0 && !overrides)) return taut_fail(TAUT_BAD_CALL, "%d overrides", count);
    for (int i = 0; !s && i < count; i++)
        s = overrides[i] ? taut_config_set(cfg, overrides[i]) : taut_fail(TAUT_BAD_CALL, "override %d is NULL", i);
    return s;
}

/* taut_train reads a flag to see whether to stop; the caller's callback sets it by what it returns. */
typedef struct {
    const taut_train_options *options;
    volatile int stop;
} watch;

static void step_done(const taut_progress *p, void *arg)
{
    watch *w = arg;
    const taut_step_facts now = { p->step, p->steps, p->loss, p->lr, p->grad_norm, p->tokens_per_s, p->seconds };
    if (w->options->progress && w->options->progress(&now, w->options->arg)) w->stop = 1;
}

taut_status taut_train_recipe(taut_result *out, const char *recipe, const char *run, const taut_train_options *options)
{
    taut_train_options o;
    taut_config *cfg = NULL;
    taut_train_summary r;
    NEED(out);
    NEED(recipe);
    NEED(run);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    const taut_kernels *k = NULL;
    if (!s) s = taut_kernels_open(&k, o.kernels ? o.kernels : "cpu");
    if (!s) s = taut_recipe_open(&cfg, recipe, o.overrides, o.count);
    watch w = { &o, 0 };
    const taut_training t = { .run = run,
                              .resume = o.resume != 0,
                              .overwrite = o.overwrite != 0,
                              .progress = step_done,
                              .arg = &w,
                              .stop = &w.stop };
    if (!s) s = taut_train(&r, cfg, k, &t);
    taut_config_free(cfg);
    if (s) return s;
    *out = (taut_result){ r.steps,     r.tokens,   r.weights,      r.train_loss, r.val_loss,  r.val_acc, r.val_mae,
                          r.test_loss, r.test_mae, r.tokens_per_s, r.seconds,    r.best_step, r.stopped };
    return TAUT_OK;
}

/* Does the model read such examples, and answer all that they ask? */
static bool fits(const taut_model *m, const taut_task *k)
{
    const bool reads = k->t == m->in.t && k->tokens <= m->embed.rows && (k->tokens == 0) == (m->embed.rows == 0) &&
                       (k->tokens > 0 || k->d == m->in.d);
    const bool numbers = k->reals == m->classes && k->asked == m->spec.ahead;
    return reads && (k->reals > 0 ? numbers : m->spec.ahead == 0 && k->answers <= m->classes);
}

taut_status taut_net_score(taut_net *net, taut_score *out, const taut_data *data, taut_split split, int64_t examples)
{
    enum { ROWS = 16 }; /* examples per pass */
    taut_data_facts f;
    taut_pass *pass = NULL;
    taut_batch batch = { 0 };
    taut_evaluation e = { 0 };
    NEED(net);
    NEED(out);
    taut_status s = taut_data_look(data, &f);
    if (!s) s = taut_net_predicts(net);
    if (s) return s;
    if ((int)split < TAUT_TRAIN || (int)split > TAUT_TEST || f.count[split] == 0)
        return taut_fail(TAUT_BAD_DATA, "there is nothing to predict in this split");
    if (examples < 0) return taut_fail(TAUT_BAD_CALL, "%lld examples", (long long)examples);
    if (!fits(net->model, &data->source->task))
        return taut_fail(TAUT_BAD_DATA, "these data are not of the kind that the model reads, or ask for more answers");
    s = taut_pass_create(&pass, net->model, ROWS, net->model->in.t, false);
    if (!s) s = taut_batch_create(&batch, data->source, 0, ROWS);
    if (!s) s = taut_evaluate(&e, pass, &batch, split, examples, ROWS);
    taut_batch_free(&batch);
    taut_pass_free(pass);
    if (!s && !isfinite(e.loss)) s = taut_fail(TAUT_NOT_FINITE, "the loss is not finite");
    *out = (taut_score){ e.loss, e.accuracy, e.mae, e.targets, e.windows };
    return s;
}
