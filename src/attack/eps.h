/* Radii as people write them: 8/255, 0.03, or a list 2/255,4/255. */
#ifndef TAUT_ATTACK_EPS_H
#define TAUT_ATTACK_EPS_H
#include "attack/ball.h"
#include "base/status.h"

enum { TAUT_EPS_MOST = 16 };
typedef struct {
    double value[TAUT_EPS_MOST];
    char text[TAUT_EPS_MOST][32]; /* as written */
    int count;
} taut_eps;

/* Positive and finite; boxed: inputs lie in [0, 1], so an Linf radius above 1 is no radius but a forgotten /255. */
taut_status taut_eps_parse(taut_eps *, const char *list, taut_ball_kind, bool boxed) TAUT_MUST_USE;
#endif
