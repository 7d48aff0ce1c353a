/* Named lists of attacks, run one after the other on what the ones before left unbroken, always from the clean input: the
 * result is the worst case a point.
 *     fgsm  pgd  apgd-ce  apgd-dlr  apgd-t  fab  fab-t  square      one attack
 *     aa-standard   APGD-CE, APGD-T, FAB-T, Square      (100 steps, 9 targets, 5000 queries; L1: CE 5 runs, 5 targets)
 *     aa-plus       CE x 5, DLR x 5, FAB x 5, Square, APGD-T, FAB-T
 *     aa-rand       CE and DLR, gradients averaged over 20 passes
 *     ta-10         what torchattacks calls AutoAttack: 10 steps, all targets, Square with a stretched schedule */
#ifndef TAUT_ATTACK_PROFILE_H
#define TAUT_ATTACK_PROFILE_H
#include "attack/attack.h"

enum { TAUT_PROFILE_ATTACKS = 6 };
typedef struct {
    const char *name;
    taut_attack attack[TAUT_PROFILE_ATTACKS];
    int attacks;
} taut_profile;

typedef struct {
    int64_t steps, restarts, targets, queries; /* 0: the profile's own */
    double step;                               /* PGD's step over eps; 0: 2.5 / steps */
    bool fixed_start;
} taut_profile_options;

/* Refuses a name nobody has, with the nearest one, and an attack without a form for this norm. */
taut_status taut_profile_find(taut_profile *, const char *name, taut_ball_kind, taut_profile_options) TAUT_MUST_USE;
#endif
