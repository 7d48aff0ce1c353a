/* Terms added to the loss that make a network smoother, read from train.penalty of a recipe.
 *     jasmin       weight * sum over layers and heads of the JaSMin of its rows, the mean over examples (kernels/jasmin.h);
 *                  its gradient is added on attention's way back
 *     specformer   sum over attention layers of w_Q ||W_Q|| + w_K ||W_K|| + w_V ||W_V||, largest singular values */
#ifndef TAUT_TRAIN_PENALTY_H
#define TAUT_TRAIN_PENALTY_H
#include "base/config.h"
#include "model/pass.h"

typedef enum { TAUT_NO_PENALTY, TAUT_JASMIN, TAUT_SPECFORMER } taut_penalty_kind;

typedef struct {
    taut_penalty_kind kind;
    taut_jasmin jasmin;
    double weight;            /* of jasmin */
    double query, key, value; /* of specformer */
} taut_penalty_spec;

/* Keys are asked for only where a recipe has train.penalty. */
taut_status taut_penalty_spec_read(taut_penalty_spec *, taut_config *) TAUT_MUST_USE;

/* jasmin.c: who watches the runs of a step of `examples` examples; the pass sums weight times the penalty.  Nothing without
 * jasmin. */
typedef struct {
    taut_jasmin jasmin;
    taut_sum *sum;
} taut_jasmin_step;
taut_watcher taut_jasmin_watch(taut_jasmin_step *, const taut_pass *, const taut_penalty_spec *, int64_t examples);

/* specformer.c: *sum += its value; adds its gradient to the weights'.  Power iteration from the mean of a matrix's rows;
 * a zero matrix has none.  work has taut_specformer_work elements. */
int64_t taut_specformer_work(const taut_model *, const taut_penalty_spec *);
void taut_specformer_add(const taut_model *, const taut_penalty_spec *, taut_sum *sum, taut_span work);
#endif
