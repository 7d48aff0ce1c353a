/* The slope of the whole network, inputs (pixels, or the embeddings of a text) to logits, l2 over everything, at many
 * examples of the validation split: its distribution, held against the constant that is proved for all inputs. */
#ifndef TAUT_VERDICT_SLOPES_H
#define TAUT_VERDICT_SLOPES_H
#include <cjson/cJSON.h>

#include "data/source.h"
#include "measure/slope.h"
#include "model/model.h"
#include "verdict/predictions.h"

enum { TAUT_QUANTILES = 7 };
typedef struct {
    taut_slope *slope;
    int64_t n;
    double at[TAUT_QUANTILES], mean, residual; /* from the least to the largest; the largest relative residual */
    taut_up lip;
    char about[TAUT_ABOUT_ROOM]; /* of which inputs */
} taut_slopes;

/* At the first `count` examples, or all there are. */
taut_status taut_slopes_find(taut_slopes *, const taut_model *, const char *path, const taut_source *, int64_t count,
                             const taut_slope_options *, taut_told, void *arg) TAUT_MUST_USE;
void taut_slopes_free(taut_slopes *);
/* `contradiction`: a slope above the proved constant, one of the two is wrong. */
cJSON *taut_slopes_json(const taut_slopes *);
taut_status taut_slopes_csv(const taut_slopes *, const char *path) TAUT_MUST_USE;
#endif
