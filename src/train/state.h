/* state.safetensors: everything a run needs to go on bit for bit, in one file that is replaced in one step.
 * Random numbers need no state: they are a function of (seed, step). */
#ifndef TAUT_TRAIN_STATE_H
#define TAUT_TRAIN_STATE_H
#include "train/optimiser.h"

enum { TAUT_RECENT = 32 };

typedef struct {
    int64_t step, tokens;       /* steps done, tokens seen */
    double seconds;             /* spent training so far */
    double recent[TAUT_RECENT]; /* the last losses: step s is at s % TAUT_RECENT */
    int64_t best_step,
        waited; /* of a run with patience: when it was best, evaluations since; step 0: not evaluated yet */
    double best_loss;
} taut_clock;

double taut_clock_recent(const taut_clock *); /* the mean of the last losses; NaN: there are none */

/* All ranks together: the first writes the file, with what the others own. */
taut_status taut_state_save(const taut_clock *, const taut_optimiser *, const char *path) TAUT_MUST_USE;
taut_status taut_state_load(taut_clock *, taut_optimiser *, const char *path) TAUT_MUST_USE;
#endif
