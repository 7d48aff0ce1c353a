#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "base/rng.h"
#include "train/average.h"
#include "train/prototypes.h"
#include "train/schedule.h"

static taut_status open_source(taut_trainer *t, const taut_kernels *k)
{
    const taut_recipe *r = &t->recipe;
    taut_status s = taut_recipe_source(&t->source, &r->data, &r->model, NULL);
    if (!s && taut_source_count(t->source, TAUT_TRAIN) == 0) s = taut_recipe_nothing(&r->data);
    if (s) return s;
    char *vocab = t->source->vocab ? taut_vocab_print(t->source->vocab) : taut_strdup("");
    if (!vocab) return taut_no_memory("the vocabulary");
    s = taut_model_create(&t->model, &r->model, t->source->task.tokens, t->printed, vocab, k);
    free(vocab);
    if (!s && r->train.teachers) s = taut_teachers_open(&t->teachers, &r->train, t->model);
    return s;
}

/* Sizes come first, so that a recipe that cannot fit is refused before anything is allocated.  A pass over n
 * examples needs about len(n) = len(1) + (n - 1) (len(2) - len(1)) elements; sums are rounded to 16 of them.  That is
 * computed in double, from len(1) and len(2) alone: len(batch) itself could overflow. */
static taut_status allocate(taut_trainer *t, const taut_kernels *k)
{
    const taut_train_spec *r = &t->recipe.train;
    const taut_constrain_spec *c = &t->recipe.constrain;
    const int64_t tokens = t->model->in.t, one = taut_pass_len(t->model, 1, tokens, true);
    const double elements = 2 * (double)t->model->slab + (double)taut_optimiser_len(t->model, r) +
                            (double)taut_constrainer_len(t->model, c) + (double)one +
                            (r->loss == TAUT_BY_MARGIN ? (double)taut_margin_len(t->model, r) : 0) +
                            (double)(r->batch - 1) * (double)(taut_pass_len(t->model, 2, tokens, true) - one) +
                            taut_teachers_len(t->teachers) + (double)taut_sum_tree_len(t->model, r->accumulate) +
                            (double)taut_specformer_work(t->model, &t->recipe.penalty);
    const double proof = c->target > 0 ? 2 * (double)t->model->slab * sizeof(double) : 0;
    const double there = elements * (double)k->elem;
    taut_status s = taut_memory_check(k->host ? there + proof : there, k->available(), "this recipe");
    if (!s && !k->host) s = taut_memory_check(proof, taut_memory_available(), "the proof of this recipe");
    if (!s) s = taut_model_bind(t->model, true);
    if (!s) s = taut_constrainer_create(&t->constrainer, t->model, &t->recipe);
    if (!s && c->target > 0) s = taut_enforcer_create(&t->enforcer, t->model, c);
    if (!s && r->loss == TAUT_BY_MARGIN) s = taut_margin_create(&t->margin, t->model, r);
    if (!s) s = taut_pass_create(&t->pass, t->model, r->batch, tokens, true);
    if (!s) t->pass->run.products = r->matmul;
    if (!s && t->teachers) s = taut_teachers_ready(t->teachers);
    if (!s) s = taut_batch_create(&t->batch, t->source, r->seed, r->batch);
    const int64_t work = s ? 0 : taut_specformer_work(t->model, &t->recipe.penalty);
    if (work && !(t->penalty_work = taut_reals(k, work))) s = taut_no_memory("the penalty");
    const taut_ranks alone = { .count = 1 };
    return s ? s : taut_trainer_join(t, &alone);
}

static void part(taut_trainer *t)
{
    taut_sum_tree_free(t->tree);
    taut_optimiser_free(t->optimiser);
    if (t->sum_memory) t->k->release(t->sum_memory);
    free(t->sums_read);
    t->tree = NULL, t->optimiser = NULL, t->sum_memory = NULL, t->sums_read = NULL;
}

taut_status taut_trainer_join(taut_trainer *t, const taut_ranks *r)
{
    part(t);
    taut_status s = taut_sum_tree_create(&t->tree, t->model, r, t->recipe.train.accumulate);
    if (!s) s = taut_optimiser_create(&t->optimiser, t->model, &t->recipe.train, r);
    if (s) return s;
    t->optimiser->polar = t->recipe.constrain.method == TAUT_POLAR;
    t->constrainer->owned = t->optimiser->owned;
    const int64_t sums = (t->tree->end - t->tree->first + 1) * TAUT_PASS_SUMS + t->tree->squares;
    t->sum_memory = taut_reals(t->k, taut_sums_len(sums));
    t->sums_read = taut_calloc((size_t)sums, sizeof *t->sums_read);
    if (!t->sum_memory || !t->sums_read) return taut_no_memory("the sums of a step");
    taut_span span = { t->sum_memory, taut_sums_len(sums), t->k->elem };
    t->sums = taut_take_sums(&span, sums);
    return TAUT_OK;
}

taut_status taut_trainer_open(taut_trainer *t, taut_config *cfg, const taut_kernels *k)
{
    *t = (taut_trainer){ 0 };
    taut_status s = taut_recipe_read(&t->recipe, cfg);
    if (!s && t->recipe.model.headless)
        s = taut_fail(TAUT_BAD_CONFIG, "model.head = none gives features: there is nothing to train them on");
    if (!s) s = k->products(t->recipe.train.matmul);
    if (s) return s;
    t->k = k;
    t->printed = taut_config_print(cfg);
    s = t->printed ? open_source(t, k) : taut_no_memory("the recipe");
    return s ? s : allocate(t, k);
}

void taut_trainer_close(taut_trainer *t)
{
    /* products of whoever uses the table next are as exact as ever; there is no table that refuses that */
    if (t->k) (void)t->k->products(TAUT_PRODUCTS_FP32);
    part(t);
    taut_batch_free(&t->batch);
    taut_pass_free(t->pass);
    if (t->penalty_work) t->model->k->release(t->penalty_work);
    taut_margin_free(t->margin, t->k);
    taut_teachers_free(t->teachers);
    taut_constrainer_free(t->constrainer);
    taut_enforcer_free(t->enforcer);
    taut_model_free(t->model);
    taut_source_free(t->source);
    free(t->printed);
    *t = (taut_trainer){ 0 };
}

static void first_batch(taut_pass *p, void *trainer)
{
    taut_trainer *t = trainer;
    taut_batch_train(&t->batch, 0, t->recipe.train.batch);
    taut_batch_forward(&t->batch, p);
}

taut_status taut_trainer_settle(taut_trainer *t)
{
    const int settle = t->recipe.model.attention.settle; /* 0: no; s: k-center, then s - 1 steps of Lloyd */
    const taut_status s = settle ? taut_prototypes_settle(t->pass, settle - 1, first_batch, t) : TAUT_OK;
    if (s || !t->margin || !t->recipe.model.head_bias) return s;
    first_batch(t->pass, t);
    return taut_margin_centre(t->model, t->pass);
}

/* One micro-batch of a step, forward and backward: its sums, and its gradient alone. */
typedef struct {
    taut_trainer *t;
    double weight; /* of a target */
} micro_batch;

static taut_sum *sums_of(const taut_trainer *t, int64_t micro)
{
    return taut_sum_at(t->sums, (micro - t->tree->first) * TAUT_PASS_SUMS);
}

/* The step's micro-batch number i, forward.  Returns how many targets it has. */
static int64_t forward_micro(taut_trainer *t, int64_t i)
{
    const taut_train_spec *r = &t->recipe.train;
    const int64_t micro = t->clock.step * r->accumulate + i,
                  targets = taut_batch_train(&t->batch, micro * r->batch, r->batch);
    t->pass->run.phase = (taut_phase){ TAUT_PHASE_TRAIN, taut_rng_key(r->seed, TAUT_RNG_DROPOUT, (uint64_t)micro) | 1,
                                       t->clock.step, r->steps };
    if (targets > 0) taut_batch_forward(&t->batch, t->pass);
    return targets;
}

static void run_micro(void *arg, int64_t i)
{
    const micro_batch *b = arg;
    taut_trainer *t = b->t;
    const taut_train_spec *r = &t->recipe.train;
    t->pass->sums = sums_of(t, i);
    taut_jasmin_step jasmin;
    const taut_watcher watch = taut_jasmin_watch(&jasmin, t->pass, &t->recipe.penalty, r->batch * r->accumulate);
    t->pass->run.watch = &watch;
    if (forward_micro(t, i) > 0) {
        if (t->margin)
            taut_margin_loss(t->margin, t->pass, t->batch.y, b->weight, t->clock.step);
        else
            taut_batch_loss(&t->batch, t->pass, b->weight, true);
        if (t->teachers) taut_teachers_pull(t->teachers, t->pass, &t->batch, b->weight);
        taut_pass_backward(t->pass);
        if (t->margin && i == 0) taut_margin_look(t->margin, t->pass);
    }
    t->pass->run.watch = NULL;
}

/* All of a step's micro-batches.  Returns how many targets they have; afterwards grads holds the gradient of the mean loss and
 * of the penalty.  The weight of a target, 1 / targets, is needed before the first backward, and an encoder's micro-batches
 * differ in their numbers of targets.  So where there are several, each is drawn twice, first to be counted: an example is a
 * function of its number. */
static int64_t gradients(taut_trainer *t)
{
    const taut_train_spec *r = &t->recipe.train;
    const taut_model *m = t->model;
    const taut_sum_tree *tree = t->tree;
    const int64_t first = t->clock.step * r->accumulate;
    taut_sum *own = t->pass->sums;
    int64_t targets = 0;
    for (int64_t i = tree->first; i < tree->end; i++)
        targets += taut_batch_train(&t->batch, (first + i) * r->batch, r->batch);
    targets = taut_ranks_sum(&tree->ranks, targets);
    m->k->put_sum(t->sums, NULL, (tree->end - tree->first + 1) * TAUT_PASS_SUMS);
    if (t->margin && tree->first > 0) { /* the same features for every rank */
        (void)forward_micro(t, 0);
        taut_margin_look(t->margin, t->pass);
    }
    taut_sum_tree_gradients(t->tree, run_micro, &(micro_batch){ t, 1 / (double)targets });
    t->pass->sums = own;
    if (t->clock.step + 1 < r->steps)
        (void)taut_batch_train(&t->batch, (first + r->accumulate + tree->first) * r->batch,
                               r->batch); /* a device is busy */
    const int64_t work = taut_specformer_work(m, &t->recipe.penalty);
    taut_specformer_add(m, &t->recipe.penalty, taut_sum_at(sums_of(t, tree->end), TAUT_PASS_PENALTY),
                        (taut_span){ t->penalty_work, work, m->k->elem });
    return targets;
}

/* The sums of all micro-batches, and the gradient's square behind them: the only wait of a step. */
static taut_status read_sums(taut_trainer *t, double sums[TAUT_PASS_SUMS])
{
    const taut_model *m = t->model;
    const int64_t own = t->tree->end - t->tree->first, all = (own + 1) * TAUT_PASS_SUMS;
    taut_sum_tree_squares(t->tree, taut_sum_at(t->sums, all));
    const taut_status s = m->k->read(t->sums_read, t->sums, all + t->tree->squares);
    for (int i = 0; i < TAUT_PASS_SUMS; i++)
        sums[i] = taut_sum_tree_number(t->tree, t->sums_read + i, TAUT_PASS_SUMS) +
                  t->sums_read[own * TAUT_PASS_SUMS + i];
    sums[TAUT_PASS_ROOM] = taut_sum_tree_square(t->tree, t->sums_read + all);
    return s;
}

/* With shares, each weight has its own learning rate.  The optimiser has one rate per call, so it is called once per
 * weight, with a model that has this weight alone. */
static void optimise(const taut_trainer *t, double factor)
{
    if (t->recipe.train.shares == TAUT_SHARES_NONE) {
        taut_optimiser_step(t->optimiser, t->clock.step, factor);
        return;
    }
    for (int i = 0; i < t->model->weights; i++) {
        taut_model one = *t->model;
        taut_optimiser o = *t->optimiser;
        one.weight += i, one.weights = 1, o.m = &one;
        taut_optimiser_step(&o, t->clock.step, factor * t->constrainer->share[i]);
    }
}

/* Scales the last layer so that the proved constant is at the target, every `fill` steps; and tells the optimiser the
 * layer's norm.  It comes before the step, so that the first one already sees logits as large as the target allows. */
static taut_status fill(taut_trainer *t)
{
    const int64_t every = t->recipe.constrain.fill;
    if (!every) return TAUT_OK;
    const taut_status s = t->clock.step % every == 0 ? taut_enforcer_fill(t->enforcer, t->model) : TAUT_OK;
    t->optimiser->head = est_enforcer_head(t->enforcer, t->model);
    return taut_ranks_agree(&t->tree->ranks, s);
}

taut_status taut_trainer_step(taut_trainer *t, taut_step *out)
{
    const taut_train_spec *r = &t->recipe.train;
    const taut_model *m = t->model;
    taut_clock *c = &t->clock;
    double sums[TAUT_PASS_SUMS];
    const long failures = taut_alloc_failures();
    taut_status s = fill(t);
    if (s) return s;
    const double factor = taut_schedule(r, c->step),
                 weight = 1 / fmax(1, (double)gradients(t)); /* nothing masked: no loss */
    s = read_sums(t, sums);
    if (!s) s = taut_alloc_lasted(failures, "a step");
    s = taut_ranks_agree(&t->tree->ranks, s); /* from here on there is nothing to fail until all have all weights */
    if (s) return s;
    const double loss = weight * sums[TAUT_PASS_LOSS], norm = sqrt(sums[TAUT_PASS_ROOM]);
    *out = (taut_step){ loss, norm, r->lr * factor, sums[TAUT_PASS_PENALTY] };
    if (!isfinite(loss) || !isfinite(norm))
        return taut_fail(TAUT_NOT_FINITE, "step %lld: the %s is not finite", (long long)c->step + 1,
                         isfinite(loss) ? "gradient" : "loss");
    if (r->clip > 0 && norm > r->clip) m->k->axpby(m->grads, r->clip / norm, m->grads, 0, m->slab);
    taut_constrainer_mark(t->constrainer);
    if (t->margin) taut_margin_before(t->margin, m->k);
    optimise(t, factor);
    taut_constrainer_apply(t->constrainer, c->step, r->lr * factor);
    taut_owned_share(m, &t->tree->ranks, t->tree->to);
    taut_constrainer_raise(t->constrainer);
    if (t->margin) taut_margin_after(t->margin, m->k);
    taut_average_step(t);
    c->recent[c->step % TAUT_RECENT] = loss;
    c->step++;
    c->tokens += r->batch * r->accumulate * t->source->task.asked;
    return taut_alloc_lasted(failures, "a step");
}

taut_status taut_trainer_enforce(taut_trainer *t)
{
    bool shrunk = false;
    const taut_model *m = t->model;
    if (!t->enforcer) return TAUT_OK;
    taut_status s = t->recipe.constrain.fill ? taut_enforcer_fill(t->enforcer, m) : TAUT_OK;
    if (!s) s = taut_enforcer_run(t->enforcer, m, &shrunk);
    if (!s && shrunk) m->k->put(m->values, (const double *)t->enforcer->twin->values, m->slab);
    return s;
}

taut_status taut_trainer_save(taut_trainer *t, const char *path)
{
    bool shrunk = false;
    if (!t->enforcer) return path ? taut_model_save(t->model, path) : TAUT_OK;
    const taut_status s = taut_enforcer_run(t->enforcer, t->model, &shrunk);
    return s || !path ? s : taut_model_save(t->enforcer->twin, path);
}

taut_status taut_trainer_answers(taut_trainer *t)
{
    const int64_t batch = t->recipe.train.batch;
    taut_evaluation e;
    const taut_status s = taut_evaluate(&e, t->pass, &t->batch, TAUT_VALID, batch, batch);
    if (s || e.targets == 0 || isfinite(e.loss)) return s;
    return taut_fail(TAUT_NOT_FINITE, "step %lld: the validation loss is not finite", (long long)t->clock.step);
}
