/* What holds near one example, and not everywhere: a Lipschitz constant on the ball of a radius around it, and how far
 * its prediction is certain by such constants.  Never worse than the certificate's own numbers. */
#ifndef TAUT_CERTIFY_LOCAL_H
#define TAUT_CERTIFY_LOCAL_H
#include "certify/example.h"

typedef struct {
    taut_up lip;    /* input to logits, on the ball of radius c->room */
    taut_lo radius; /* as in taut_example */
    taut_lo told; /* the same by taut_near_body: what a certificate can say of the example; and the constant likewise */
    taut_up told_lip;
} taut_local;

/* Of the example that is in the pass; e is what the certificate says of it, logits its logits. */
taut_status taut_local_certify(taut_local *, const taut_certificate *c, taut_pass *pass, const taut_example *e,
                               const double *logits) TAUT_MUST_USE;
/* near.c: states in the certificate's proof what it needs around examples: ||W_O|| of softmax attention.  Before examples. */
taut_status taut_near_state(taut_certificate *) TAUT_MUST_USE;
/* The constant up to the last features, on the ball of radius r around the example in the pass, that follows from the numbers
 * of the certificate's proof where norm layers and softmax attention are looked at around the example (docs/certificate.md). */
typedef struct {
    taut_up all, last; /* of all tokens in the norm; of the last one, which predicts */
} taut_near_bound;
taut_status taut_near_body(taut_near_bound *, const taut_certificate *c, const taut_pass *pass, double r) TAUT_MUST_USE;
taut_up up_near_whole(const taut_certificate *, taut_up body); /* from there on to the logits, as the proof states it */
/* As taut_example_json writes it, with what holds around the example. */
cJSON *taut_near_json(const taut_example *, const taut_local *, taut_input, int64_t count);
#endif
