/* Examples to certify or to attack: of a validation split, or the caller's own. */
#ifndef TAUT_VERDICT_EXAMPLES_H
#define TAUT_VERDICT_EXAMPLES_H
#include "data/source.h"
#include "model/pass.h"

typedef struct {
    const taut_source *data; /* NULL: the arrays below */
    const int32_t *ids;      /* (n, t) */
    const double *reals;     /* (n, t, d) images, every number in [0, 1] */
    const int32_t *labels;   /* (n) */
    int64_t n, t, d;         /* how many; tokens of each, features of each */
    bool hides;              /* of an encoder: the last token of a window is asked for, */
    int32_t mask;            /* and this one stands in its place */
} taut_examples;

/* One of them, in memory of the reader's. */
typedef struct {
    taut_input x;
    int32_t target;
    int64_t number; /* in the split, or in the arrays */
} taut_one;
typedef struct taut_reader taut_reader;

/* The same examples for whoever asks for the same number of one split: every (all / n)-th, so that certificates and attacks
 * are about the same ones.  How many there are is known then: a split has no more examples than it has, and the last window
 * of a text may be partial and does not count.  Of an encoder for tokens, the last one of every window is hidden and asked for:
 * data that hide none must be given.  Refused: none; data of another shape than the model reads; ids and labels out of range;
 * examples that may lie outside the region of a certificate (embeddings, pixels that are not in [0, 1]). */
taut_status taut_examples_settle(taut_examples *, const taut_model *) TAUT_MUST_USE;
taut_status taut_reader_open(taut_reader **out, const taut_examples *) TAUT_MUST_USE;
void taut_reader_free(taut_reader *);
/* The memory of the one before the last is used again: two in turn are there at a time. */
taut_one taut_reader_get(taut_reader *, int64_t index);
#endif
