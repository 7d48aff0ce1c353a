/* One prediction and how far its input may be moved without changing it. */
#ifndef TAUT_CERTIFY_EXAMPLE_H
#define TAUT_CERTIFY_EXAMPLE_H
#include "certify/certify.h"
#include "model/pass.h"

typedef struct {
    int32_t target, predicted;
    double margin;  /* computed: largest logit less the second */
    taut_lo radius; /* every token (norm tokens) or everything (flat) may move by less than this; 0: unknown */
} taut_example;

/* The last token of one sequence of c->tokens ids; pass belongs to c->model.  logits has room for one
 * token's. */
taut_example taut_example_certify(const taut_certificate *c, taut_pass *pass, const int32_t *ids, int32_t target,
                                  double *logits);
cJSON *taut_example_json(const taut_example *, const int32_t *ids, int64_t count);

/* Natural scales to hold a bound against: the largest ratio |f(x)-f(x')| / |x-x'| over pairs of the given
 * sequences. */
double taut_pair_ratio(const taut_certificate *c, taut_pass *pass, const int32_t *a, const int32_t *b);
#endif
