/* Which rank steps which weights.  The slab is cut into one range a rank, as equal as matrices allow: those are stepped whole
 * (Muon, constraints), with the vectors behind them (a head's bias); tables are cut between rows.  A rank has the optimiser's
 * state of its own range alone, steps and constrains it, and gets the rest of the new weights from the others: no number
 * depends on the cuts. */
#ifndef TAUT_TRAIN_OWNED_H
#define TAUT_TRAIN_OWNED_H
#include "base/ranks.h"
#include "model/model.h"

typedef struct {
    int64_t lo, hi; /* elements of the slab, from lo to before hi */
} taut_owned;

taut_owned taut_owned_by(const taut_model *, int rank, int count);
/* The part of it in weight w: elements of w, lo == hi where there is none. */
taut_owned taut_owned_of(taut_owned, const taut_weight *w);
/* The model as if it had these weights alone; it borrows everything. */
taut_model taut_owned_weights(const taut_model *, taut_owned);

/* After a step: everybody's weights to everybody. */
void taut_owned_share(const taut_model *, const taut_ranks *, const taut_messages *to);
#endif
