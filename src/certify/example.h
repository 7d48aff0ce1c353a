/* One prediction and how far its input may be moved without changing it. */
#ifndef TAUT_CERTIFY_EXAMPLE_H
#define TAUT_CERTIFY_EXAMPLE_H
#include "certify/certify.h"
#include "model/pass.h"

typedef struct {
    int32_t target, predicted; /* -1: a logit is NaN, there is no answer */
    double margin;             /* computed: largest logit less the second; NaN without an answer */
    taut_lo radius; /* every token (norm tokens) or everything (flat) may move by less than this; 0: unknown */
    taut_lo exact;  /* the same for f itself, where the certificate's tolerance is for a runtime that is off */
} taut_example;

/* One input of c->tokens tokens, judged by its last question (of a text, the last token); pass belongs to c->model.
 * logits has room for one question's. */
taut_example taut_example_certify(const taut_certificate *c, taut_pass *pass, taut_input x, int32_t target,
                                  double *logits);
/* The same of logits that somebody else computed, each within `round` of the real one. */
taut_example taut_example_judge(const taut_certificate *c, const double *logits, int64_t classes, int32_t target,
                                taut_up round);
/* How far the prediction p of these logits is certain by c's body and round, for moves that stay in the region of the
 * proof; the radius is that, and at most the room. */
taut_lo taut_margin_region(const taut_certificate *c, const double *logits, int64_t classes, int64_t p);
taut_lo taut_margin_radius(const taut_certificate *c, const double *logits, int64_t classes, int64_t p);
taut_up up_row_distance(const taut_param *, int64_t p, int64_t j); /* of two rows, l2 */
/* With its input: `count` ids of a text, or pixels of an image.  The target is no part of it: no checker can know that. */
cJSON *taut_example_json(const taut_example *, taut_input, int64_t count);

/* A natural scale to hold a bound against: *largest becomes the ratio |f(x)-f(x')| / |x-x'| of the two inputs if that is
 * larger. */
taut_status taut_pair_ratio(double *largest, const taut_certificate *c, taut_pass *pass, taut_input a,
                            taut_input b) TAUT_MUST_USE;
#endif
