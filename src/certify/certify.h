/* A proved Lipschitz constant of a stored model, with its proof: docs/certificate.md.
 *
 * The file is opened here, in double, and hashed: a certificate is about bytes on disk. */
#ifndef TAUT_CERTIFY_CERTIFY_H
#define TAUT_CERTIFY_CERTIFY_H
#include <cjson/cJSON.h>

#include "model/model.h"

typedef struct {
    taut_model *model; /* on the ref kernels */
    taut_norm norm;
    int64_t tokens;      /* sequence length the constant is for */
    taut_up room, reach; /* inputs (embeddings, pixels in [0, 1]) moved by up to room: no token is longer than reach */
    taut_up rows;        /* of a forecaster: no row of an input is longer before it is moved; +inf: any may come */
    taut_up lip, body;   /* input to logits; input to the last features */
    taut_up round;       /* how far a logit computed on the ref kernels is from the real one */
    double tolerance; /* radii hold for logits that are off by up to this, wherever the input moves; 0: for f itself */
    taut_up defect;   /* what stopping at a tolerance adds to |f(x) - f(x')|; 0 without proximal layers */
    cJSON *json;      /* the certificate, without examples */
    char sha[65];     /* of the file, and how long it is */
    uint64_t bytes;
} taut_certificate;

/* room 0 covers the embeddings themselves.  A constant that is not finite is an answer, not an error. */
taut_status taut_certify(taut_certificate *, const char *path, taut_norm, double room) TAUT_MUST_USE;
/* Of a forecaster, for inputs whose rows (standardised values, time features) are at most `rows` long, l2; rows = INFINITY:
 * any, as above. */
taut_status taut_certify_rows(taut_certificate *, const char *path, taut_norm, double room, double rows) TAUT_MUST_USE;
/* The same in two halves, for whoever looks at the model first: opened, nothing proved; and the proof, which
 * may be made again.  One that fails leaves nothing to free. */
taut_status taut_certificate_open(taut_certificate *, const char *path, taut_norm, double room) TAUT_MUST_USE;
taut_status taut_certificate_prove(taut_certificate *, double rows) TAUT_MUST_USE;
/* own.c: the proof in the norm of the target that the model was trained under; without one, flat for images and tokens for all
 * others.  Of one token in and one out both norms say the same, so the smaller of the two proofs stands for both. */
taut_status taut_certificate_prove_own(taut_certificate *, const char *path, double rows) TAUT_MUST_USE;
/* Before examples are certified: their radii are to hold for a runtime whose logits are within `tolerance` of f's. */
taut_status taut_certificate_tolerate(taut_certificate *, double tolerance) TAUT_MUST_USE;
/* The same for what taut computes on a table of kernels, on this machine or another: the tolerance is what they promise, carried
 * through the network on the certificate's region.  1e300, which certifies nothing, where some module has no such rule. */
taut_status taut_certificate_run_on(taut_certificate *, const char *table) TAUT_MUST_USE;
/* How far a logit that the table computes is from the real one, at inputs that are moved by up to `room`; +inf where nobody
 * knows. */
taut_status taut_certificate_strays(taut_up *, const taut_certificate *, const char *table, taut_up room) TAUT_MUST_USE;
taut_about taut_certificate_about(const taut_certificate *); /* which inputs the constant holds for, in words */
void taut_certificate_free(taut_certificate *);
#endif
