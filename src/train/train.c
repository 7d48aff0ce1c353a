#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "train/evaluate.h"
#include "train/optimiser.h"
#include "train/schedule.h"
#include "train/state.h"

typedef struct {
    taut_recipe recipe;
    char *printed; /* the resolved recipe */
    const taut_train_options *options;
    taut_text *text;
    taut_model *model;
    taut_optimiser *optimiser;
    taut_pass *pass;
    taut_batch batch;
    taut_log *log;
    taut_clock clock;
    int64_t saved;  /* step of the last checkpoint; -1: none */
    double started; /* monotonic seconds, minus what earlier sittings took */
} trainer;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *in_run(const trainer *t, char *path, const char *file)
{
    snprintf(path, 4096, "%s/%s", t->options->run, file);
    return path;
}

/* Sizes first, so that a recipe that cannot fit says so before anything is touched. */
static taut_status build(trainer *t, const taut_kernels *k)
{
    const taut_recipe *r = &t->recipe;
    const taut_data_spec *d = &r->data;
    taut_status s = taut_text_open(&t->text, d->source, d->tokens, d->val_fraction, NULL, d->length, d->seed);
    if (!s) s = taut_text_check(t->text, r->model.context);
    if (s) return s;
    char *vocab = taut_vocab_print(t->text->vocab);
    if (!vocab) return taut_no_memory("the vocabulary");
    s = taut_model_create(&t->model, &r->model, taut_batch_tokens(&r->model, t->text->vocab), t->printed, vocab, k);
    free(vocab);
    if (s) return s;
    const double elements = 2 * (double)t->model->slab + (double)taut_optimiser_len(t->model, &r->train) +
                            (double)taut_pass_len(t->model, r->train.batch, r->model.context, true);
    s = taut_memory_check(elements * (double)k->elem, "this recipe");
    if (!s) s = taut_model_bind(t->model, true);
    if (!s) s = taut_optimiser_create(&t->optimiser, t->model, &r->train);
    if (!s) s = taut_pass_create(&t->pass, t->model, r->train.batch, r->model.context, true);
    if (!s)
        s = taut_batch_create(&t->batch, t->text, &t->model->spec, r->train.mask_rate, r->train.seed, r->train.batch);
    return s;
}

static taut_status begin(trainer *t)
{
    char path[4096];
    const taut_train_options *o = t->options;
    const bool there = taut_file_exists(in_run(t, path, "state.safetensors"));
    if (o->resume && !there)
        return taut_fail(TAUT_BAD_FILE, "%s: nothing to resume, there is no checkpoint yet", path);
    if (!o->resume && there && !o->overwrite)
        return taut_fail(TAUT_BAD_FILE, "%s already holds a run: go on with --resume, or start anew with --overwrite",
                         o->run);
    taut_status s = TAUT_OK;
    if (o->resume) {
        s = taut_state_load(&t->clock, t->optimiser, path);
        t->saved = t->clock.step;
    } else {
        s = taut_model_init(t->model, t->recipe.train.seed);
        if (!s) s = taut_dir_make(o->run);
    }
    if (!s) s = taut_file_write(in_run(t, path, "recipe.ini"), t->printed, strlen(t->printed));
    if (!s) s = taut_log_open(&t->log, in_run(t, path, "log.jsonl"), o->resume ? t->clock.step : -1);
    t->started = now() - t->clock.seconds;
    return s;
}

/* Never replaces a good checkpoint by weights that are not finite. */
static taut_status checkpoint(trainer *t)
{
    char path[4096];
    const taut_model *m = t->model;
    if (t->saved == t->clock.step) return TAUT_OK;
    if (!isfinite(m->k->dot(m->values, m->values, m->slab)))
        return taut_fail(TAUT_NOT_FINITE, "step %lld: a weight is not finite; kept the checkpoint of step %lld",
                         (long long)t->clock.step, (long long)t->saved);
    t->clock.seconds = now() - t->started;
    taut_status s = taut_state_save(&t->clock, t->optimiser, in_run(t, path, "state.safetensors"));
    if (!s) s = taut_model_save(m, in_run(t, path, "model.safetensors"));
    if (!s) t->saved = t->clock.step;
    return s;
}

/* Forward and backward over the step's micro-batches; returns the mean of their mean losses. */
static double gradients(trainer *t)
{
    const taut_train_spec *r = &t->recipe.train;
    const taut_model *m = t->model;
    const int64_t context = m->spec.context, step = t->clock.step;
    double loss = 0;
    int64_t correct = 0;
    m->k->axpby(m->grads, 0, m->grads, 0, m->slab);
    for (int64_t i = 0; i < r->accumulate; i++) {
        const int64_t micro = step * r->accumulate + i;
        const int64_t targets = taut_batch_train(&t->batch, micro * r->batch, r->batch);
        if (targets == 0) continue;
        const double weight = 1 / ((double)targets * (double)r->accumulate);
        t->pass->run.dropout_key = taut_rng_key(r->seed, TAUT_RNG_DROPOUT, (uint64_t)micro) | 1;
        taut_pass_forward(t->pass, t->batch.x, r->batch, context);
        loss += weight * taut_pass_loss(t->pass, t->batch.y, &correct, weight, true);
        taut_pass_backward(t->pass, t->batch.x);
    }
    return loss;
}

/* One step; the gradient's norm before clipping comes back.  Not finite: nothing was changed. */
static taut_status step_once(trainer *t, double *loss, double *norm)
{
    const taut_train_spec *r = &t->recipe.train;
    const taut_model *m = t->model;
    taut_clock *c = &t->clock;
    *loss = gradients(t);
    *norm = sqrt(m->k->dot(m->grads, m->grads, m->slab));
    const taut_status s = m->k->sync();
    if (s) return s;
    if (!isfinite(*loss) || !isfinite(*norm)) {
        const char *what = isfinite(*loss) ? "gradient" : "loss";
        if (t->saved < 0)
            return taut_fail(TAUT_NOT_FINITE, "step %lld: the %s is not finite; there was no checkpoint yet (try a smaller train.lr)",
                             (long long)c->step + 1, what);
        return taut_fail(TAUT_NOT_FINITE, "step %lld: the %s is not finite; kept the checkpoint of step %lld in %s",
                         (long long)c->step + 1, what, (long long)t->saved, t->options->run);
    }
    if (r->clip > 0 && *norm > r->clip) m->k->axpby(m->grads, r->clip / *norm, m->grads, 0, m->slab);
    taut_optimiser_step(t->optimiser, c->step, taut_schedule(r, c->step));
    c->recent[c->step % TAUT_RECENT] = *loss;
    c->step++;
    c->tokens += r->batch * r->accumulate * m->spec.context;
    return TAUT_OK;
}

static taut_status report(trainer *t, double loss, double norm)
{
    const taut_train_spec *r = &t->recipe.train;
    const taut_clock *c = &t->clock;
    const double seconds = now() - t->started, lr = r->lr * taut_schedule(r, c->step - 1);
    const bool last = c->step == r->steps;
    taut_status s = TAUT_OK;
    if (c->step % r->log_every == 0 || last) {
        cJSON *line = cJSON_CreateObject();
        cJSON_AddNumberToObject(line, "step", (double)c->step);
        cJSON_AddNumberToObject(line, "loss", loss);
        cJSON_AddNumberToObject(line, "lr", lr);
        cJSON_AddNumberToObject(line, "grad_norm", norm);
        cJSON_AddNumberToObject(line, "seconds", seconds);
        s = taut_log_line(t->log, line);
    }
    if (!s && r->eval_every && c->step % r->eval_every == 0 && !last) {
        const taut_evaluation e = taut_evaluate(t->pass, &t->batch, TAUT_VALID, r->eval_batches * r->batch, r->batch);
        cJSON *line = cJSON_CreateObject();
        cJSON_AddNumberToObject(line, "step", (double)c->step);
        cJSON_AddNumberToObject(line, "val_loss", e.loss);
        cJSON_AddNumberToObject(line, "val_acc", e.accuracy);
        cJSON_AddNumberToObject(line, "windows", (double)e.windows);
        s = taut_log_line(t->log, line);
    }
    if (t->options->progress)
        t->options->progress(&(taut_progress){ c->step, r->steps, loss, lr, norm, (double)c->tokens / seconds, seconds },
                             t->options->arg);
    return s;
}

static double recent_loss(const taut_clock *c)
{
    const int64_t count = c->step < TAUT_RECENT ? c->step : TAUT_RECENT;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += c->recent[i];
    return count ? sum / (double)count : NAN;
}

static taut_status finish(trainer *t, taut_train_summary *out)
{
    char path[4096];
    const taut_clock *c = &t->clock;
    const double seconds = now() - t->started;
    *out = (taut_train_summary){ .steps = c->step, .tokens = c->tokens, .weights = taut_model_size(t->model),
                                 .train_loss = recent_loss(c), .tokens_per_s = (double)c->tokens / seconds,
                                 .seconds = seconds, .stopped = c->step < t->recipe.train.steps };
    const taut_evaluation e = taut_evaluate(t->pass, &t->batch, TAUT_VALID, 0, t->recipe.train.batch);
    out->val_loss = e.loss;
    out->val_acc = e.accuracy;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "steps", (double)out->steps);
    cJSON_AddNumberToObject(o, "tokens", (double)out->tokens);
    cJSON_AddNumberToObject(o, "weights", (double)out->weights);
    cJSON_AddNumberToObject(o, "train_loss", out->train_loss);
    cJSON_AddNumberToObject(o, "val_loss", out->val_loss);
    cJSON_AddNumberToObject(o, "val_acc", out->val_acc);
    cJSON_AddNumberToObject(o, "tokens_per_s", out->tokens_per_s);
    cJSON_AddNumberToObject(o, "seconds", out->seconds);
    char *text = cJSON_Print(o);
    cJSON_Delete(o);
    const taut_status s =
        text ? taut_file_write(in_run(t, path, "summary.json"), text, strlen(text)) : taut_no_memory("the summary");
    free(text);
    return s;
}

static taut_status loop(trainer *t, taut_train_summary *out)
{
    const taut_train_spec *r = &t->recipe.train;
    const volatile int *stop = t->options->stop;
    taut_status s = TAUT_OK;
    while (!s && t->clock.step < r->steps && !(stop && *stop)) {
        double loss, norm;
        s = step_once(t, &loss, &norm);
        if (!s) s = report(t, loss, norm);
        if (!s && t->clock.step % r->checkpoint_every == 0) s = checkpoint(t);
    }
    if (!s) s = checkpoint(t);
    return s ? s : finish(t, out);
}

taut_status taut_train(taut_train_summary *out, taut_config *cfg, const taut_kernels *k, const taut_train_options *options)
{
    trainer t = { .options = options, .saved = -1 };
    taut_status s = taut_recipe_read(&t.recipe, cfg);
    if (s) return s;
    t.printed = taut_config_print(cfg);
    s = t.printed ? build(&t, k) : taut_no_memory("the recipe");
    if (!s) s = begin(&t);
    if (!s) s = loop(&t, out);
    taut_log_close(t.log);
    taut_batch_free(&t.batch);
    taut_pass_free(t.pass);
    taut_optimiser_free(t.optimiser);
    taut_model_free(t.model);
    taut_text_free(t.text);
    free(t.printed);
    return s;
}
