/* What taut attack works with: the model, its examples, their certificates, what was found. */
#ifndef TAUT_CLI_ATTACK_H
#define TAUT_CLI_ATTACK_H
#include "attack/alarm.h"
#include "attack/campaign.h"
#include "attack/network.h"
#include "attack/warn.h"
#include "certify/example.h"
#include "model.h"

typedef struct {
    const cli_args *args;
    char *path, sha[65];
    cli_model m;
    taut_source *data;
    taut_target target;
    int64_t n;
    double *x, *z;  /* (n, dim), (n, classes) */
    int32_t *label; /* (n) */
    bool text;      /* x are embeddings */
    taut_certificate cert;
    taut_target ref;    /* on cert.model */
    double *radius;     /* (n), NULL: nothing is certified */
    int32_t *predicted; /* (n) */
    const char *why;    /* nothing is certified */
    taut_campaign c;
    taut_warnings warnings;
    taut_watch watch;
    const char *state;
    double seconds;
    int64_t shown; /* images in the gallery, at most */
    cJSON *gallery;
} attack_scene;

/* attack_scene.c */
taut_status attack_open(attack_scene *);
taut_status attack_certify(attack_scene *, double room); /* radii of all examples, flat, good up to room */
void attack_close(attack_scene *);
double attack_l2(const attack_scene *, int eps); /* every move of this radius is at most so long in l2, rounded up */
double attack_slack(const attack_scene *);       /* how far two computed logits together can be from the real ones */
int64_t attack_certified(const attack_scene *, int eps);

/* attack_print.c */
void attack_print(const attack_scene *);
int attack_print_json(const attack_scene *);

/* attack_gallery.c */
void attack_gallery_see(attack_scene *, const taut_campaign_part *);

/* attack_replay.c */
int attack_replay(attack_scene *, const char *file);
#endif
