/* WHERE EXAMPLES COME FROM.  A source fills one example at a time: the tokens or numbers that a model reads, and the
 * right answers to what it is asked.  An example is a function of its number alone: any batch can be made again.
 *
 *     count   how many examples a split has
 *     get     example `index` of a split, from 0; the same for every model and seed
 *     draw    example `number` of an endless training stream; each seed names another stream
 *
 * source_text.c: next tokens and masked tokens of a text.  source_images.c: images and their classes.
 * source_labelled.c: texts and their classes.
 * source_series.c: windows of a time series and the rows that follow.  Only a series has a test split: no other source
 * may be asked for TAUT_TEST. */
#ifndef TAUT_DATA_SOURCE_H
#define TAUT_DATA_SOURCE_H
#include <stdbool.h>

#include "base/status.h"
#include "data/vocab.h"

/* What a model reads and what it is asked: all that a batch, a pass and a loss need to know. */
typedef struct {
    int64_t tokens;  /* ids are below this, the id of a mask included; 0: inputs are reals */
    int64_t t, d;    /* tokens per input; features per token, 0 where tokens are ids */
    int64_t asked;   /* questions per example: one per token, one per forecast row, or 1 */
    int64_t answers; /* classes per question; 0: an answer is `reals` numbers */
    bool shared;     /* an example that is drawn may belong to several classes, to each with a share */
    int64_t reals;   /* numbers per answer; 0: an answer is a class */
} taut_task;

/* Where get and draw write one example: memory of the caller's, of which a task needs a part; the rest is NULL. */
typedef struct {
    int32_t *ids;    /* (t), where task.tokens > 0 */
    double *reals;   /* (t, d), where task.tokens = 0 */
    int32_t *target; /* (asked) classes, -1 where nothing is asked; where answers are classes */
    double *share;   /* (asked, answers), where task.shared; by draw alone: sums to 1, and the target has the largest */
    double *wanted;  /* (asked, reals), where answers are numbers */
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
/* Examples that are all there: the last window of a text may be partial, and does not count. */
static inline int64_t taut_source_whole(const taut_source *s, taut_split split)
{
    return taut_source_count(s, split) - (s->task.tokens > 0 && s->task.asked > 1);
}
static inline void taut_source_free(taut_source *s)
{
    if (s) s->ops->free(s);
}
/* What `asked` counts, for people. */
static inline const char *taut_task_counts(const taut_task *k)
{
    if (k->reals) return "rows";
    if (!k->tokens) return "images";
    return k->asked > 1 ? "tokens" : "texts";
}
#endif
