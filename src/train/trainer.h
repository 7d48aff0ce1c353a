/* A recipe ready to train: source, model, optimiser, one batch; and one step of it.  No files: train.c has
 * those. */
#ifndef TAUT_TRAIN_TRAINER_H
#define TAUT_TRAIN_TRAINER_H
#include "train/constrain/constrain.h"
#include "train/constrain/enforce.h"
#include "train/evaluate.h"
#include "train/margin.h"
#include "train/optimiser.h"
#include "train/state.h"
#include "train/sum_tree.h"
#include "train/teachers.h"

typedef struct {
    const taut_kernels *k; /* whose products are as the recipe says, until close; or NULL */
    taut_recipe recipe;
    char *printed; /* the resolved recipe */
    taut_source *source;
    taut_model *model;
    taut_optimiser *optimiser;
    taut_constrainer *constrainer;
    taut_enforcer *enforcer; /* NULL without constrain.target_lipschitz */
    taut_pass *pass;
    taut_margin *margin;     /* NULL without train.loss = margin */
    taut_teachers *teachers; /* NULL without train.teachers */
    taut_real *penalty_work; /* of a penalty on weights; or NULL */
    taut_batch batch;
    taut_sum_tree *tree;   /* over the step's micro-batches */
    taut_real *sum_memory; /* of sums */
    taut_sum *sums;    /* what the pass adds up: TAUT_PASS_SUMS for each micro-batch of this rank, and for the step */
    double *sums_read; /* the same on the host */
    taut_clock clock;
} taut_trainer;

typedef struct {
    double loss, grad_norm, lr;
    double penalty; /* not part of loss */
} taut_step;

/* Reads the recipe and allocates everything; refuses first what will not fit into memory.  All weights are 0 still. */
taut_status taut_trainer_open(taut_trainer *, taut_config *, const taut_kernels *) TAUT_MUST_USE;
/* After open: this trainer does its share of every step, as one of several ranks that call all of these together. */
taut_status taut_trainer_join(taut_trainer *, const taut_ranks *) TAUT_MUST_USE;
void taut_trainer_close(taut_trainer *); /* fine after a failed open */

/* Puts PLASH's prototypes on the keys of the first batch, if the recipe says so, and the bias of a head with margins where the
 * mean logits of that batch are 0; once, when the weights are drawn. */
taut_status taut_trainer_settle(taut_trainer *) TAUT_MUST_USE;

/* One step.  TAUT_NOT_FINITE: the loss or the gradient is not finite, and the optimiser changed no weight (with
 * constrain.fill, the last layer may have been scaled before). */
taut_status taut_trainer_step(taut_trainer *, taut_step *) TAUT_MUST_USE;

/* Finite weights can be so large that what they answer is not: a batch is asked before they are saved. */
taut_status taut_trainer_answers(taut_trainer *) TAUT_MUST_USE;

/* Shrinks the weights until the proved constant of what taut_trainer_save will write is at most the recipe's
 * target, if it has one; training goes on from there. */
taut_status taut_trainer_enforce(taut_trainer *) TAUT_MUST_USE;

/* Writes the model to a file, never above the target; path NULL: only proves what would be written.  Where the weights are
 * above it (a stop between two checkpoints), a shrunk copy is written, and the weights stay as they are. */
taut_status taut_trainer_save(taut_trainer *, const char *path) TAUT_MUST_USE;
#endif
