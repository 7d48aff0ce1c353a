/* Profiles times radii times examples: who was broken by what, in parts that can be saved and taken up again.
 *
 * Every profile is run on every example that the model gets right, whatever the other profiles did, so that they can be
 * compared; inside a profile its attacks share the work (profile.h).  The worst case is over all profiles. */
#ifndef TAUT_ATTACK_CAMPAIGN_H
#define TAUT_ATTACK_CAMPAIGN_H
#include <cjson/cJSON.h>

#include "attack/eps.h"
#include "attack/profile.h"

enum { TAUT_CAMPAIGN_PROFILES = 8 };
enum { TAUT_HELD = -1, TAUT_UNTRIED = -2, TAUT_WRONG = -3 }; /* else the number of the attack that broke it */

typedef struct {
    taut_profile profile[TAUT_CAMPAIGN_PROFILES];
    int profiles;
    taut_ball_kind kind;
    taut_eps eps;
    uint64_t seed;
    int64_t n;
    int8_t *by;       /* (eps, profile, n) */
    double *distance; /* the same: how far the input that broke it is */
} taut_campaign;

/* Parses "pgd,aa-standard"; every example untried. */
taut_status taut_campaign_open(taut_campaign *, const char *attacks, taut_ball_kind, const char *eps, bool boxed,
                               taut_profile_options, uint64_t seed, int64_t n) TAUT_MUST_USE;
void taut_campaign_close(taut_campaign *);

/* After each part: what was found for examples first .. first+count-1; adv holds their inputs, good where by says so.
 * A status other than OK ends the campaign. */
typedef struct {
    int eps, profile;
    int64_t first, count;
    const double *x, *adv;
    const bool *broken;
} taut_campaign_part;
typedef taut_status (*taut_campaign_seen)(void *arg, const taut_campaign_part *);

/* Attacks everything that is untried, `batch` examples at a time.  x (n, dim), z their logits, label. */
taut_status taut_campaign_run(taut_campaign *, taut_target *, const double *x, const double *z, const int32_t *label,
                              int64_t batch, taut_campaign_seen, void *arg) TAUT_MUST_USE;

/* The same for one part of at most `batch` examples, by its number: parts of a profile at a radius follow each other. */
int64_t taut_campaign_parts(const taut_campaign *, int64_t batch);
taut_campaign_part taut_campaign_part_at(const taut_campaign *, int64_t part,
                                         int64_t batch); /* without x, adv, broken */
taut_status taut_campaign_run_part(taut_campaign *, taut_target *, const double *x, const double *z,
                                   const int32_t *label, taut_campaign_part, taut_campaign_seen,
                                   void *arg) TAUT_MUST_USE;

int8_t *taut_campaign_by(const taut_campaign *, int eps, int profile);
double *taut_campaign_distance(const taut_campaign *, int eps, int profile);
/* Examples that stand: against the attacks 0 .. upto of a profile; against everything at a radius. */
int64_t taut_campaign_left(const taut_campaign *, int eps, int profile, int upto);
int64_t taut_campaign_worst(const taut_campaign *, int eps);
int64_t taut_campaign_clean(const taut_campaign *);

/* state.c: what was found so far as JSON; `about` describes model and data.  load refuses a state of anything else.  describe:
 * all that decides the results. */
cJSON *taut_campaign_describe(const taut_campaign *, const char *about);
taut_status taut_campaign_save(const taut_campaign *, const char *about, int64_t alarms,
                               const char *path) TAUT_MUST_USE;
taut_status taut_campaign_load(taut_campaign *, const char *about, int64_t *alarms, const char *path) TAUT_MUST_USE;
#endif
