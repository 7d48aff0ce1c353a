/* An attack held against a certificate.  Examples are attacked on the model's own kernels; what is certified of them is
 * about the ref kernels, for moves in l2, and a success inside a certified radius that ref repeats is a contradiction:
 * one of the two is wrong. */
#ifndef TAUT_VERDICT_SIEGE_H
#define TAUT_VERDICT_SIEGE_H
#include "attack/alarm.h"
#include "attack/network.h"
#include "attack/warn.h"
#include "certify/certify.h"
#include "verdict/examples.h"

typedef struct {
    char *path, sha[65]; /* of the model's file */
    const char *data;    /* the name of the examples' data, or NULL; not its own */
    const char *names;   /* of the classes, with commas between them; NULL: numbers; not its own */
    char about[256];     /* model, data and kernels in words: a saved state belongs to one of them */
    taut_model *model;   /* not its own */
    taut_target target;
    int64_t n;
    double *x, *z;  /* (n, dim), (n, classes) */
    int32_t *label; /* (n) */
    bool text;      /* x are embeddings */
    taut_certificate cert;
    taut_target ref;    /* on cert.model */
    double *radius;     /* (n) certified, l2; NULL: nothing is certified */
    int32_t *predicted; /* (n) by the ref kernels */
    const char *why;    /* nothing is certified; NULL: something is */
    taut_campaign c;
    taut_warnings warnings;
    taut_watch watch;
    double seconds;
    int64_t shown; /* images of the gallery, at most */
    cJSON *gallery;
} taut_siege;

/* How a siege is led, beside its campaign. */
typedef struct {
    bool no_certify;
    const char *folder;                  /* where reproducers go; NULL: nowhere */
    const char *state;                   /* results so far, read and written; NULL: none */
    int64_t batch;                       /* examples attacked and saved together; 0: 256 */
    int64_t gallery;                     /* keep up to so many of the images that were turned */
    int (*told)(double done, void *arg); /* not 0: stop */
    void *arg;
} taut_siege_way;

/* Opens the file's examples on the model.  Refused: encoders and forecasters, which predict no class. */
taut_status taut_siege_open(taut_siege *, taut_model *, const char *path, taut_examples *) TAUT_MUST_USE;
void taut_siege_close(taut_siege *); /* fine after a failed open */
/* Radii of all examples, in norm flat, good for moves up to `room`. */
taut_status taut_siege_certify(taut_siege *, double room, int (*told)(double, void *), void *arg) TAUT_MUST_USE;
/* The campaign (siege->c, opened by the caller) to its end. */
taut_status taut_siege_lead(taut_siege *, const taut_siege_way *) TAUT_MUST_USE;

double taut_siege_l2(const taut_siege *, int eps); /* no move of this radius is longer in l2; rounded up */
double taut_siege_slack(const taut_siege *);       /* how far two computed logits together can be from the real ones */
int64_t taut_siege_certified(const taut_siege *, int eps); /* right answers proved to stand at this radius */

/* gallery.c: keeps some of the images that a part turned, for the report. */
void taut_gallery_see(taut_siege *, const taut_campaign_part *);

/* siege_json.c: all results; `attacks` as they were asked for.  NULL or incomplete: out of memory. */
cJSON *taut_siege_json(const taut_siege *, const char *attacks);

/* replay.c: a saved contradiction looked at again.  The certificate is proved anew, both inputs go through the ref kernels,
 * and *json (the caller's) says what became of it. */
taut_status taut_siege_replay(taut_siege *, const char *file, cJSON **json) TAUT_MUST_USE;
#endif
