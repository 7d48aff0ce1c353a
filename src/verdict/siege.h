/* A siege: all attacks on some examples of a model, and each success held against the example's certificate.
 *
 * Examples are attacked on the kernels that the model was opened with.  A certificate is about the ref kernels: it
 * says that no input nearer than `radius`, in l2, is given another class.  A success inside that radius which the ref
 * kernels repeat is a contradiction: attack or certificate is wrong.  A certificate for the attacked kernels (runs_on below) is
 * contradicted by every success inside its radius.
 *
 * The order of calls: taut_siege_open; taut_campaign_open on siege->c; taut_siege_lead; taut_siege_close. */
#ifndef TAUT_VERDICT_SIEGE_H
#define TAUT_VERDICT_SIEGE_H
#include "attack/alarm.h"
#include "attack/network.h"
#include "attack/warn.h"
#include "certify/certify.h"
#include "verdict/crew.h"

typedef struct {
    char *path, sha[65]; /* of the model's file */
    const char *data;    /* the name of the examples' data, or NULL; the caller's */
    const char *names;   /* of the classes, with commas between them; NULL: classes are numbers; the caller's */
    char about[256];     /* model, data and kernels in words; a saved state with other words is refused */
    taut_model *model;   /* the caller's */
    taut_target target;  /* the model, as attacks see it */
    int64_t n;
    double *x, *z;  /* inputs (n, dim), their logits on the model's kernels (n, classes) */
    int32_t *label; /* (n) */
    bool text;      /* x are embeddings; else they are pixels */
    taut_certificate cert;
    taut_target ref;    /* the same network on the ref kernels: cert.model */
    double *radius;     /* (n) certified, l2; NULL: nothing is certified */
    int32_t *predicted; /* (n) by the ref kernels */
    const char *why;    /* the reason why nothing is certified; NULL: something is */
    taut_campaign c;    /* what is tried, and what broke whom */
    taut_warnings warnings;
    taut_watch watch; /* holds each success against the certificates; counts contradictions */
    double seconds;   /* that the campaign took, certificates not included */
    int64_t shown;    /* the gallery keeps at most so many images */
    cJSON *gallery;
} taut_siege;

/* What taut_siege_lead does beside the attacks of the campaign. */
typedef struct {
    bool no_certify;
    const char *runs_on; /* radii are for these kernels, on which the model was opened; NULL: for f itself */
    const char *folder;  /* where inputs that contradict a certificate are saved; NULL: nowhere */
    const char *state;   /* the file of the results so far, read and written; NULL: none */
    const char *join;    /* a folder through which processes share the examples; NULL: none do */
    int64_t batch;       /* examples attacked and saved together; 0: 256, of a join 16 */
    int64_t gallery;     /* keep at most so many of the images whose class an attack changed */
    int (*told)(double done, void *arg); /* 0 to 1 for the certificates, then again for the attacks; not 0: stop */
    void *arg;
} taut_siege_way;

/* Reads the examples and computes their logits on the model, which was opened from the file `path`.  Refused: encoders
 * and forecasters, since attacks change the class of an image or the next token of a text. */
taut_status taut_siege_open(taut_siege *, taut_model *, const char *path, taut_examples *) TAUT_MUST_USE;
void taut_siege_close(taut_siege *); /* fine after a failed open */
/* Proves the model in norm flat and fills `radius` and `predicted`.  No radius is above `room`. */
taut_status taut_siege_certify(taut_siege *, double room, const taut_siege_way *) TAUT_MUST_USE;
/* siege_join.c: how certificates of the examples are shared; attacks them together with other processes. */
taut_status taut_siege_share(taut_crew_shared *, taut_siege *, const taut_siege_way *) TAUT_MUST_USE;
taut_status taut_siege_join_attack(taut_siege *, const taut_siege_way *) TAUT_MUST_USE;
/* Certifies, then attacks everything that the state has not tried yet. */
taut_status taut_siege_lead(taut_siege *, const taut_siege_way *) TAUT_MUST_USE;

/* `eps` is a place in the campaign's list of radii.
 *     l2         the largest l2 norm of a move of that radius, rounded up
 *     slack      2 round: how far the difference of two computed logits can be from the real one
 *     certified  how many right answers of the ref kernels have a certified radius above that l2 norm */
double taut_siege_l2(const taut_siege *, int eps);
double taut_siege_slack(const taut_siege *);
int64_t taut_siege_certified(const taut_siege *, int eps);

/* gallery.c: keeps some of the images whose class this part of the campaign changed, for the report. */
void taut_gallery_see(taut_siege *, const taut_campaign_part *);

/* siege_json.c: all results; `attacks` is the list that was asked for, as text.  NULL or incomplete: memory is out. */
cJSON *taut_siege_json(const taut_siege *, const char *attacks);

/* replay.c: looks at a saved contradiction again.  Takes its input in the place of example 0, proves the certificate
 * anew and puts both inputs through the ref kernels.  *json, which the caller frees, says whether the contradiction is
 * still there. */
taut_status taut_siege_replay(taut_siege *, const char *file, cJSON **json) TAUT_MUST_USE;
#endif
