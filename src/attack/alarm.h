/* The contradiction alarm.  A certificate says that no input nearer than `radius` (l2) to x is given another class than
 * `predicted` by the ref kernels; where a network may abstain, NaN is no answer and no contradiction.  An attack's success
 * is held against that: if the input lies inside, measured with rounding up, and the ref kernels themselves give it another
 * class, one of the two is wrong.
 *
 * A success on float kernels that the ref kernels do not repeat is no contradiction: the certificate is about the latter.
 * Where radii are for the float kernels themselves (as_run below), it is one. */
#ifndef TAUT_ATTACK_ALARM_H
#define TAUT_ATTACK_ALARM_H
#include "attack/campaign.h"

typedef enum { TAUT_ALARM_QUIET, TAUT_ALARM_ROUNDING, TAUT_ALARM_RINGS } taut_alarm;

double taut_alarm_distance(const double *x, const double *y, int64_t n); /* l2, never below the real one; NaN: +inf */
/* ROUNDING: inside the radius, but ref does not repeat it, by more than `slack` (how far two computed logits together can
 * be from the real ones, which the certificate is about), or abstains.  ref is a target on ref kernels. */
taut_status taut_alarm_check(taut_alarm *out, taut_target *ref, const double *x, const double *adv, int32_t predicted,
                             double radius, double slack) TAUT_MUST_USE;

/* What is needed to see it again, as safetensors: both inputs in double, and the figures. */
typedef struct {
    char model[65]; /* SHA-256 of its file */
    char attack[32], norm[8], eps[32];
    int64_t example, seed;
    int32_t label, predicted;
    double radius, distance;
    int64_t dim;
    double *x, *adv;
} taut_reproducer;

taut_status taut_reproducer_load(taut_reproducer *, const char *path) TAUT_MUST_USE;
void taut_reproducer_free(taut_reproducer *); /* of one that was loaded */

/* Holds every success of a campaign against the certificates as it is found: give taut_watch_part to taut_campaign_run. */
typedef struct {
    const taut_campaign *c;
    taut_target *ref;         /* on ref kernels; NULL: nothing is certified, nothing is held against it */
    const double *radius;     /* (n) certified, l2; 0: not certified */
    const int32_t *predicted; /* (n) by the ref kernels, what is certified */
    const int32_t *label;
    double slack;               /* twice the certificate's rounding */
    bool as_run;                /* radii are for the kernels that are attacked: what ref does not repeat counts, too */
    const char *model, *folder; /* SHA-256; where reproducers go, NULL: nowhere */
    int64_t alarms, rounding;
    char saved[512]; /* the last reproducer written */
} taut_watch;
taut_status taut_watch_part(void *watch, const taut_campaign_part *) TAUT_MUST_USE;
#endif
