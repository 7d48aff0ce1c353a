#include "attack/profile.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "taut.h"

#define APGD_CE(runs, times)                                                                                     \
    {                                                                                                            \
        .name = "APGD-CE", .kind = TAUT_APGD, .loss = TAUT_LOSS_CE, .steps = times, .restarts = runs, .draws = 1 \
    }
#define APGD_DLR(runs, times)                                                                                      \
    {                                                                                                              \
        .name = "APGD-DLR", .kind = TAUT_APGD, .loss = TAUT_LOSS_DLR, .steps = times, .restarts = runs, .draws = 1 \
    }
#define APGD_T(count, times)                                                                                     \
    {                                                                                                            \
        .name = "APGD-T", .kind = TAUT_APGD, .loss = TAUT_LOSS_DLR_T, .steps = times, .restarts = 1, .draws = 1, \
        .targets = count                                                                                         \
    }
#define FAB(runs)                                                       \
    {                                                                   \
        .name = "FAB", .kind = TAUT_FAB, .steps = 100, .restarts = runs \
    }
#define FAB_T(count, times)                                                                \
    {                                                                                      \
        .name = "FAB-T", .kind = TAUT_FAB, .steps = times, .restarts = 1, .targets = count \
    }
#define SQUARE(stretch)                                                                         \
    {                                                                                           \
        .name = "Square", .kind = TAUT_SQUARE, .steps = 5000, .restarts = 1, .rescale = stretch \
    }

enum { ALL = 1 << 30 }; /* targets: every wrong class */

static const taut_profile profiles[] = {
    { "fgsm", { { .name = "FGSM", .kind = TAUT_FGSM, .steps = 1, .restarts = 1 } }, 1 },
    { "pgd", { { .name = "PGD", .kind = TAUT_PGD, .steps = 40, .restarts = 1 } }, 1 },
    { "apgd-ce", { APGD_CE(1, 100) }, 1 },
    { "apgd-dlr", { APGD_DLR(1, 100) }, 1 },
    { "apgd-t", { APGD_T(9, 100) }, 1 },
    { "fab", { FAB(1) }, 1 },
    { "fab-t", { FAB_T(9, 100) }, 1 },
    { "square", { SQUARE(false) }, 1 },
    { "aa-standard", { APGD_CE(1, 100), APGD_T(9, 100), FAB_T(9, 100), SQUARE(false) }, 4 },
    { "aa-plus", { APGD_CE(5, 100), APGD_DLR(5, 100), FAB(5), SQUARE(false), APGD_T(9, 100), FAB_T(9, 100) }, 6 },
    { "aa-rand", { APGD_CE(1, 100), APGD_DLR(1, 100) }, 2 },
    { "ta-10", { APGD_CE(1, 10), APGD_T(ALL, 10), FAB_T(ALL, 10), SQUARE(true) }, 4 },
};
enum { PROFILES = sizeof profiles / sizeof *profiles };

/* AutoAttack's own changes for L1. */
static void suit_l1(taut_profile *p)
{
    for (int i = 0; i < p->attacks; i++) {
        taut_attack *a = &p->attack[i];
        if (a->kind != TAUT_APGD) continue;
        a->shrink = true;
        if (strcmp(p->name, "aa-standard") != 0) continue;
        if (a->targets)
            a->targets = 5;
        else
            a->restarts = 5;
    }
}

static void suit(taut_profile *p, taut_ball_kind kind, taut_profile_options o)
{
    if (kind == TAUT_BALL_L1) suit_l1(p);
    for (int i = 0; i < p->attacks; i++) {
        taut_attack *a = &p->attack[i];
        if (strcmp(p->name, "aa-rand") == 0) a->draws = 20;
        if (a->kind == TAUT_SQUARE) {
            if (o.queries) a->steps = o.queries;
            continue;
        }
        if (o.steps && a->kind != TAUT_FGSM) a->steps = o.steps;
        if (o.restarts && a->kind != TAUT_FGSM) a->restarts = o.restarts;
        if (o.targets && a->targets) a->targets = o.targets;
        a->fixed_start = o.fixed_start;
        a->step = o.step > 0 ? o.step : 2.5 / (double)a->steps;
    }
}

taut_status taut_profile_find(taut_profile *p, const char *name, taut_ball_kind kind, taut_profile_options o)
{
    const char *names[PROFILES];
    char list[256] = "";
    if (strcasecmp(name, "autoattack") == 0 || strcasecmp(name, "aa") == 0) name = "aa-standard";
    for (int i = 0; i < PROFILES; i++) {
        names[i] = profiles[i].name;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", names[i]);
        if (strcasecmp(name, names[i]) != 0) continue;
        *p = profiles[i];
        suit(p, kind, o);
        return TAUT_OK;
    }
    const char *near = taut_nearest(name, names, PROFILES);
    return taut_fail(TAUT_BAD_CONFIG, "no attack is called %s%s%s%s: there are %s", name, near ? " (did you mean " : "",
                     near ? near : "", near ? "?)" : "", list);
}
