/* Some examples of a source, side by side, and their way through a pass. */
#ifndef TAUT_TRAIN_BATCH_H
#define TAUT_TRAIN_BATCH_H
#include "data/source.h"
#include "model/pass.h"

typedef struct {
    const taut_source *source;
    uint64_t seed;
    int32_t *x;     /* (largest, t) token ids; or NULL, and */
    double *reals;  /* (largest, t, d) */
    int32_t *y;     /* (largest, asked); -1 where nothing is asked */
    double *share;  /* (largest, asked, answers) where the task is shared, else NULL */
    bool mixed;     /* what is in it now was drawn with shares */
    double *wanted; /* in the place of y where answers are numbers: (largest, asked, reals) */
    int64_t count;  /* examples that are in it now, */
    int64_t first;  /* from this number of the training stream on; -1: others */
} taut_batch;

taut_status taut_batch_create(taut_batch *, const taut_source *, uint64_t seed, int64_t largest) TAUT_MUST_USE;
void taut_batch_free(taut_batch *);

/* Both fill the batch and return how many targets there are.
 * train: examples number first .. first+count-1 of the endless training stream; nothing is drawn where they are there.
 * windows: the examples index[0..count) of a split, the same every time. */
int64_t taut_batch_train(taut_batch *, int64_t first, int64_t count);
int64_t taut_batch_windows(taut_batch *, taut_split, const int64_t *index, int64_t count);

/* What is in the batch through the model and back; as the functions of the same names in model/pass.h. */
void taut_batch_forward(const taut_batch *, taut_pass *);
void taut_batch_loss(const taut_batch *, taut_pass *, double weight, bool backward);
#endif
