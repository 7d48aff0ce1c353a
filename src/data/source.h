/* WHERE EXAMPLES COME FROM.  A source fills one example at a time: tokens or numbers to read, and what is asked about
 * them.  An example is a pure function of its number, so a batch can be cut anywhere.
 *
 *     count   how many examples a split has, in a fixed order
 *     get     number `index` of them, the same for every model
 *     draw    number `number` of the endless training stream named by seed
 *
 * source_text.c: next tokens and masked tokens of a text.  source_images.c: images and their classes.
 * source_series.c: windows of a time series and the rows that follow; it alone has a split for testing. */
#ifndef TAUT_DATA_SOURCE_H
#define TAUT_DATA_SOURCE_H
#include <stdbool.h>

#include "base/status.h"
#include "data/vocab.h"

/* What a model is given and what it is asked: all that a batch, a pass and a loss need to know. */
typedef struct {
    int64_t tokens;  /* rows of the embedding that reads ids, a mask included; 0: the inputs are reals */
    int64_t t, d;    /* tokens of an input; features of each, 0 where they are ids */
    int64_t asked;   /* questions an example: one a token, or one */
    int64_t answers; /* how many there are to choose from; 0: an answer is `reals` numbers */
    bool shared;     /* examples that are drawn may have several right answers, each with its share */
    int64_t reals;
} taut_task;

/* One example's place in a batch: (t) ids or (t, d) reals, and (asked) targets, -1 where nothing is asked.  Where the
 * task is shared, draw also fills (asked, answers) shares, which sum to 1; the target has the largest.  Where answers are
 * numbers, (asked, reals) of them are wanted. */
typedef struct {
    int32_t *ids;
    double *reals;
    int32_t *target;
    double *share;
    double *wanted;
} taut_slot;

typedef struct taut_source taut_source;
typedef struct {
    int64_t (*count)(const taut_source *, taut_split);
    void (*get)(const taut_source *, taut_slot, taut_split, int64_t index);
    void (*draw)(const taut_source *, taut_slot, uint64_t seed, int64_t number);
    void (*free)(taut_source *);
} taut_source_ops;

struct taut_source {
    const taut_source_ops *ops;
    taut_task task;
    const taut_vocab *vocab; /* of a text, else NULL */
};

static inline int64_t taut_source_count(const taut_source *s, taut_split split) { return s->ops->count(s, split); }
static inline void taut_source_free(taut_source *s)
{
    if (s) s->ops->free(s);
}
#endif
