/* How far the attention in linear time of a model is from softmax attention, at examples of the validation split: the truth,
 * what is proved of it without forming it, the trivial bound, and the PLASH paper's certificate mended and as printed. */
#ifndef TAUT_VERDICT_DEVIATION_H
#define TAUT_VERDICT_DEVIATION_H
#include "certify/stray.h"
#include "data/source.h"
#include "verdict/predictions.h"

typedef struct {
    taut_stray *row; /* per layer and head, all examples as one */
    int rows;
    int64_t examples, beaten; /* queries that stray further than is proved */
} taut_deviation;

/* At `examples` examples spread over the split, or all there are.  Refused: a model without such attention. */
taut_status taut_deviation_find(taut_deviation *, taut_model *, const taut_source *, int64_t examples, taut_told,
                                void *arg) TAUT_MUST_USE;
void taut_deviation_free(taut_deviation *);
cJSON *taut_deviation_json(const taut_deviation *, const char *model);
taut_status taut_deviation_csv(const taut_deviation *, const char *path) TAUT_MUST_USE;
#endif
