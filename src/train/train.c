/* The run folder around the trainer: checkpoints, log, summary. */
#include "train/train.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sha256.h"
#include "train/average.h"
#include "train/best.h"
#include "train/glance.h"
#include "train/resume.h"
#include "train/summary.h"
#include "train/together.h"

typedef struct {
    taut_trainer trainer;
    taut_config *cfg;
    char *sets; /* what the recipe was overridden with, as comments */
    const taut_training *options;
    taut_log *log;
    int64_t saved;  /* step of the last checkpoint; -1: none */
    double started; /* monotonic seconds, minus what earlier sittings took */
    int lock;       /* on the folder; -1: none */
    taut_ranks ranks;
    bool made;      /* this run made the folder */
    taut_up proved; /* the constant of model.safetensors, in the recipe's norm and units; under a target only */
} run;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One of several ranks does all the arithmetic, and writes nothing, unless it is the first. */
static bool writes(const run *r) { return r->ranks.rank == 0; }

static char *in_run(const run *r, char path[4096], const char *file)
{
    snprintf(path, 4096, "%s/%s", r->options->run, file);
    return path;
}

/* The model by itself: with patience, the best there was; or the running mean of the weights. */
static taut_status save_model(run *r)
{
    char path[4096];
    taut_best_show(&r->trainer);
    taut_average_show(&r->trainer);
    const taut_status s = taut_trainer_save(&r->trainer, writes(r) ? in_run(r, path, "model.safetensors") : NULL);
    taut_average_back(&r->trainer);
    taut_best_back(&r->trainer);
    if (r->trainer.enforcer) r->proved = r->trainer.enforcer->proved;
    return s;
}

/* Asked before the recipe is read, so that nothing of an existing run is touched by a mistake, and again once the folder
 * is ours: another run may have ended there meanwhile. */
static taut_status check_folder(const run *r)
{
    /* without either, nothing is lost */
    static const char *const names[] = { "state.safetensors", "model.safetensors" };
    char path[4096];
    const taut_training *o = r->options;
    if (o->resume)
        return taut_file_exists(in_run(r, path, names[0]))
                   ? TAUT_OK
                   : taut_fail(TAUT_BAD_FILE, "%s: nothing to resume, there is no checkpoint", path);
    for (int i = 0; !o->overwrite && i < 2; i++)
        if (taut_file_exists(in_run(r, path, names[i])))
            return taut_fail(TAUT_BAD_FILE,
                             "%s already holds a run (%s): go on with --resume, or start anew with --overwrite", o->run,
                             names[i]);
    return TAUT_OK;
}

/* The recipe in the run's folder: what it was overridden with, and then every key. */
static taut_status record(const run *r)
{
    char path[4096];
    const size_t sets = strlen(r->sets), keys = strlen(r->trainer.printed);
    char *text = taut_malloc(sets + keys + 1);
    if (!text) return taut_no_memory("the recipe");
    memcpy(text, r->sets, sets);
    memcpy(text + sets, r->trainer.printed, keys);
    const taut_status s = taut_file_write(in_run(r, path, "recipe.ini"), text, sets + keys);
    free(text);
    return s;
}

/* Of a run that goes on, the overrides that it was begun with count again. */
static taut_status read_sets(run *r)
{
    char path[4096];
    const taut_status s = r->options->resume ? taut_resume_sets(r->cfg, in_run(r, path, "recipe.ini")) : TAUT_OK;
    if (s) return s;
    r->sets = taut_config_print_sets(r->cfg);
    return r->sets ? TAUT_OK : taut_no_memory("the recipe");
}

/* The folder becomes ours. */
static taut_status take_folder(run *r)
{
    const char *folder = r->options->run;
    if (!writes(r)) return TAUT_OK;
    r->made = !taut_file_exists(folder);
    taut_status s = taut_dir_make(folder);
    if (!s) s = taut_dir_lock(&r->lock, folder);
    if (!s) s = check_folder(r);
    if (!s) taut_writer_sweep(folder);
    return s;
}

static taut_status begin(run *r)
{
    static const char *const old[] = { "state.safetensors", "model.safetensors", "summary.json" };
    char path[4096];
    taut_trainer *t = &r->trainer;
    const taut_training *o = r->options;
    taut_status s = taut_ranks_agree(&r->ranks, take_folder(r));
    if (!s) s = taut_together_folder(&r->ranks, o->run);
    if (s && r->made) (void)remove(o->run); /* it is empty */
    if (s) return s;
    if (o->resume) {
        s = taut_resume_check(r->cfg, in_run(r, path, "recipe.ini"));
        if (!s) s = taut_state_load(&t->clock, t->optimiser, in_run(r, path, "state.safetensors"));
        r->saved = t->clock.step;
        if (!s && t->clock.step > t->recipe.train.steps)
            s = taut_fail(TAUT_BAD_CONFIG, "%s: %lld steps are done already, more than train.steps = %lld", path,
                          (long long)t->clock.step, (long long)t->recipe.train.steps);
        s = taut_ranks_agree(&r->ranks, s); /* all have read before the first writes */
        /* killed between the two files of a checkpoint, the model is older than the state */
        if (!s) s = save_model(r);
    } else {
        s = taut_model_init(t->model, t->recipe.train.seed);
        if (!s) s = taut_trainer_settle(t);
        for (int i = 0; !s && writes(r) && i < 3; i++)
            remove(in_run(r, path, old[i])); /* of the run that is overwritten */
    }
    if (!s && writes(r)) s = record(r);
    if (!s && writes(r)) s = taut_log_open(&r->log, in_run(r, path, "log.jsonl"), o->resume ? t->clock.step : -1);
    r->started = now() - t->clock.seconds;
    s = taut_ranks_agree(&r->ranks, s);
    return s ? s : taut_together_weights(&r->ranks, t->model);
}

static taut_status log_line(const run *r, cJSON *line)
{
    if (writes(r)) return taut_log_line(r->log, line);
    cJSON_Delete(line);
    return TAUT_OK;
}

/* The constant that was just proved, on a line about the same weights. */
static void add_bound(cJSON *line, const taut_trainer *t)
{
    cJSON_AddNumberToObject(line, "bound", t->enforcer->proved.v);
    cJSON_AddNumberToObject(line, "target", t->recipe.constrain.target);
}

static taut_status log_bound(run *r)
{
    cJSON *line = cJSON_CreateObject();
    cJSON_AddNumberToObject(line, "step", (double)r->trainer.clock.step);
    add_bound(line, &r->trainer);
    return log_line(r, line);
}

/* Never replaces good weights by ones that are not finite, or that have no answers. */
static taut_status prepare(run *r, bool due)
{
    taut_trainer *t = &r->trainer;
    const taut_model *m = t->model;
    const double square = taut_dot(m->k, t->pass->sums, m->values, m->values, m->slab);
    taut_status s = m->k->read(NULL, NULL, 0); /* of a device that failed every number is NaN */
    if (!s && !isfinite(square))
        s = taut_fail(TAUT_NOT_FINITE, "step %lld: a weight is not finite", (long long)t->clock.step);
    if (!s) s = taut_trainer_answers(t);
    if (s) return s;
    t->clock.seconds = now() - r->started;
    s = due ? taut_trainer_enforce(t) : TAUT_OK;
    /* before the state: what a torn log lost is written again; with patience the evaluations tell what may be saved */
    if (!s && due && t->enforcer && !t->optimiser->best) s = log_bound(r);
    return s;
}

/* The state first: it alone is what a run goes on from. */
static taut_status checkpoint(run *r)
{
    char path[4096];
    taut_trainer *t = &r->trainer;
    if (r->saved == t->clock.step) return TAUT_OK;
    /* Where no checkpoint was due, the state keeps the weights as they are: a run that was stopped and
     * resumed then ends like one that was not.  The model file is at or under its target in either case. */
    const bool due = t->clock.step % t->recipe.train.checkpoint_every == 0 || t->clock.step == t->recipe.train.steps;
    taut_status s = taut_ranks_agree(&r->ranks, prepare(r, due)); /* all go on to the state, or none */
    if (!s) s = taut_state_save(&t->clock, t->optimiser, in_run(r, path, "state.safetensors"));
    if (!s && !due) s = taut_trainer_enforce(t);
    if (!s) s = save_model(r);
    if (!s) r->saved = t->clock.step;
    return s;
}

static taut_status log_step(run *r, const taut_step *step, double seconds)
{
    cJSON *line = cJSON_CreateObject();
    cJSON_AddNumberToObject(line, "step", (double)r->trainer.clock.step);
    cJSON_AddNumberToObject(line, "loss", step->loss);
    cJSON_AddNumberToObject(line, "lr", step->lr);
    cJSON_AddNumberToObject(line, "grad_norm", step->grad_norm);
    if (r->trainer.recipe.penalty.kind) cJSON_AddNumberToObject(line, "penalty", step->penalty);
    cJSON_AddNumberToObject(line, "seconds", seconds);
    return log_line(r, line);
}

static taut_status log_evaluation(run *r)
{
    taut_trainer *t = &r->trainer;
    const taut_train_spec *spec = &t->recipe.train;
    const int64_t windows = spec->patience ? 0 : spec->eval_batches * spec->batch;
    taut_evaluation e = { 0 };
    taut_glance seen;
    taut_status s = taut_best_try(t);
    taut_average_show(t);
    if (!s) s = taut_evaluate(&e, t->pass, &t->batch, TAUT_VALID, windows, spec->batch);
    if (!s) {
        taut_best_see(t, e.loss);
        s = taut_glance_at(&seen, t->pass, &t->batch, TAUT_VALID, &t->recipe.constrain);
    }
    taut_average_back(t);
    taut_best_back(t);
    if (s) return s;
    cJSON *line = cJSON_CreateObject();
    cJSON_AddNumberToObject(line, "step", (double)t->clock.step);
    cJSON_AddNumberToObject(line, "val_loss", e.loss);
    if (isnan(e.mae))
        cJSON_AddNumberToObject(line, "val_acc", e.accuracy);
    else
        cJSON_AddNumberToObject(line, "val_mae", e.mae);
    cJSON_AddNumberToObject(line, "windows", (double)e.windows);
    cJSON_AddNumberToObject(line, "activation", seen.activation);
    cJSON_AddNumberToObject(line, "slope", seen.slope);
    if (t->optimiser->best && t->enforcer) add_bound(line, t);
    return log_line(r, line);
}

static taut_status report(run *r, const taut_step *step)
{
    const taut_train_spec *spec = &r->trainer.recipe.train;
    const taut_clock *c = &r->trainer.clock;
    const taut_training *o = r->options;
    const double seconds = now() - r->started;
    const bool last = c->step == spec->steps;
    taut_status s = TAUT_OK;
    if (c->step % spec->log_every == 0 || last) s = log_step(r, step, seconds);
    if (!s && spec->eval_every && c->step % spec->eval_every == 0) s = log_evaluation(r);
    if (o->progress)
        o->progress(&(taut_progress){ c->step, spec->steps, step->loss, step->lr, step->grad_norm,
                                      (double)c->tokens / seconds, seconds },
                    o->arg);
    return s;
}

/* What is proved of the file, and of which inputs: a target is about inputs that are not moved. */
static taut_status tell_bound(taut_train_summary *out, const run *r)
{
    const taut_constrain_spec *c = &r->trainer.recipe.constrain;
    taut_answer b;
    if (!r->trainer.enforcer) return TAUT_OK;
    const taut_model *m = r->trainer.enforcer->twin;
    const taut_norm norm = c->flat ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS;
    const taut_status s = taut_model_bound(&b, m, norm);
    if (s) return s;
    const taut_about about = taut_model_about(m, UP_ZERO, taut_model_region(m, norm, UP_ZERO).size, UP_NONE, b.defect);
    taut_about_text(out->about, &about);
    out->target = c->target, out->bound = r->proved, out->flat = c->flat, out->l2 = c->l2;
    return TAUT_OK;
}

static taut_status finish(run *r, taut_train_summary *out)
{
    char path[4096];
    taut_trainer *t = &r->trainer;
    const taut_clock *c = &t->clock;
    const double seconds = now() - r->started;
    taut_best_show(t);
    taut_average_show(t);
    const bool stopped = c->step < t->recipe.train.steps && !taut_best_over(t);
    *out = (taut_train_summary){ .steps = c->step, .stopped = stopped };
    if (!writes(r)) return TAUT_OK;
    if (t->enforcer) /* the twin is what was written last: model.safetensors */
        t->model->k->put(t->model->values, (const double *)t->enforcer->twin->values, t->model->slab);
    taut_evaluation e = { .loss = NAN, .accuracy = NAN, .mae = NAN }, test = { .loss = NAN, .mae = NAN };
    taut_status s = TAUT_OK;
    /* whoever stops a run does not wait for a whole split */
    if (!stopped) s = taut_evaluate(&e, t->pass, &t->batch, TAUT_VALID, 0, t->recipe.train.batch);
    if (!s && !stopped && t->source->task.reals)
        s = taut_evaluate(&test, t->pass, &t->batch, TAUT_TEST, 0, t->recipe.train.batch);
    if (s) return s;
    *out = (taut_train_summary){ .steps = c->step,
                                 .val_mae = e.mae,
                                 .test_loss = test.loss,
                                 .test_mae = test.mae,
                                 .tokens = c->tokens,
                                 .counted = taut_task_counts(&t->source->task),
                                 .weights = taut_model_size(t->model),
                                 .train_loss = taut_clock_recent(c),
                                 .val_loss = e.loss,
                                 .val_acc = e.accuracy,
                                 .tokens_per_s = (double)c->tokens / seconds,
                                 .seconds = seconds,
                                 .best_step = t->optimiser->best ? c->best_step : 0,
                                 .stopped = stopped,
                                 .kernels = t->model->k->name,
                                 .matmul = t->recipe.train.matmul };
    if (t->source->task.reals) {
        const taut_series_spec spec = taut_recipe_series(&t->recipe.data);
        taut_series_note(out->data, taut_source_series_of(t->source), &spec);
    }
    uint64_t bytes;
    s = taut_sha256_file(out->sha256, &bytes, in_run(r, path, "model.safetensors"));
    if (!s) s = tell_bound(out, r);
    if (s) return s;
    cJSON *o = taut_summary_json(out);
    char *text = taut_json_text(o, true);
    cJSON_Delete(o);
    s = text ? taut_file_write(in_run(r, path, "summary.json"), text, strlen(text)) : taut_no_memory("the summary");
    free(text);
    return s;
}

static bool is_stopped(const run *r)
{
    const volatile int *stop = r->options->stop;
    return taut_ranks_any(&r->ranks, stop && *stop);
}

static taut_status loop(run *r, taut_train_summary *out)
{
    taut_trainer *t = &r->trainer;
    const taut_train_spec *spec = &t->recipe.train;
    taut_status s = TAUT_OK;
    while (!s && t->clock.step < spec->steps && !taut_best_over(t) && !is_stopped(r)) {
        taut_step step;
        s = taut_trainer_step(t, &step);
        if (!s) s = report(r, &step);
        const bool due = t->clock.step % spec->checkpoint_every == 0;
        if (due) s = taut_ranks_agree(&r->ranks, s);
        if (!s && due) s = checkpoint(r);
        s = taut_ranks_agree(&r->ranks, s);
        if (!s && due) s = taut_together_weights(&r->ranks, t->model);
    }
    if (!s) s = taut_ranks_agree(&r->ranks, checkpoint(r));
    if (s == TAUT_NOT_FINITE && r->saved >= 0)
        return taut_fail(s, "%s; the checkpoint of step %lld is kept in %s", taut_last_error(), (long long)r->saved,
                         r->options->run);
    if (s == TAUT_NOT_FINITE)
        return taut_fail(s, "%s, and there was no checkpoint yet (try a smaller train.lr)", taut_last_error());
    return s ? s : taut_ranks_agree(&r->ranks, finish(r, out)); /* the others live until the first is done */
}

/* All that can be refused before anything is written. */
static taut_status open_run(run *r, const taut_kernels *k)
{
    taut_status s = check_folder(r);
    if (!s) s = read_sets(r);
    if (!s) s = taut_trainer_open(&r->trainer, r->cfg, k);
    s = taut_ranks_agree(&r->ranks, s);
    if (!s && r->ranks.count > 1) s = taut_together_check(&r->ranks, &r->trainer);
    if (!s && r->ranks.count > 1) s = taut_ranks_agree(&r->ranks, taut_trainer_join(&r->trainer, &r->ranks));
    return s;
}

taut_status taut_train(taut_train_summary *out, taut_config *cfg, const taut_kernels *k, const taut_training *options)
{
    run r = { .cfg = cfg, .options = options, .saved = -1, .lock = -1 };
    if (!*options->run) return taut_fail(TAUT_BAD_FILE, "the run's folder has no name");
    if (strlen(options->run) > 4000) return taut_fail(TAUT_BAD_FILE, "the name of the run's folder is too long");
    taut_status s = taut_ranks_open(&r.ranks);
    if (!s) s = open_run(&r, k);
    if (!s) s = begin(&r);
    if (!s) s = loop(&r, out);
    taut_log_close(r.log);
    taut_dir_release(r.lock);
    taut_trainer_close(&r.trainer);
    taut_ranks_close(&r.ranks);
    free(r.sets);
    return s;
}
