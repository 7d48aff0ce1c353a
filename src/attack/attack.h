/* One attack on a set of examples.  Every example is judged by itself and its random numbers are a function of (seed, its
 * id, the attack, the run, the step): the same result for any batch size, order or thread count.
 *
 * An example is done when an input of another class is found inside the ball; the rest of the attack is spent on the
 * others.  (The original AutoAttack lets every example run to the end; which are broken is the same.) */
#ifndef TAUT_ATTACK_ATTACK_H
#define TAUT_ATTACK_ATTACK_H
#include "attack/ball.h"
#include "attack/target.h"

typedef enum { TAUT_FGSM, TAUT_PGD, TAUT_APGD, TAUT_FAB, TAUT_SQUARE } taut_attack_kind;

typedef struct {
    const char *name; /* "APGD-CE" */
    taut_attack_kind kind;
    taut_loss loss;
    int64_t steps;    /* iterations; Square: queries */
    int64_t restarts; /* runs from different random starts */
    int64_t targets;  /* pull to each of the first so many wrong classes of the clean logits; 0: untargeted */
    int64_t draws;    /* APGD: gradients averaged over so many passes of a randomised network */
    double step;      /* PGD: the step over eps */
    bool fixed_start; /* PGD: the first run starts at the clean input */
    bool shrink;      /* APGD, L1: 3 eps, 2 eps, eps over 30, 30 and 40 % of the steps */
    bool rescale;     /* Square: the schedule of p is stretched from 10,000 queries to `steps` */
    bool minimal;     /* FAB: go on after a success, for the shortest distance */
} taut_attack;

typedef struct {
    taut_target *target;
    taut_ball ball;
    uint64_t seed;
    int64_t n;
    const double *x;      /* (n, dim) clean inputs, in the box */
    const double *z;      /* (n, classes) their logits: where targets are ranked */
    const int32_t *label; /* (n) */
    const uint64_t *id;   /* (n) what names each example */
    /* out: where broken[e], adv[e] is an input of another class and distance[e] how far it is, at most eps.  What is
     * broken already is left alone. */
    double *adv, *distance;
    bool *broken;
    int64_t still; /* APGD's starts whose gradient was 0 everywhere */
} taut_hunt;

taut_status taut_attack_run(taut_hunt *, const taut_attack *) TAUT_MUST_USE;

/* ---- for the attacks themselves ---- */

enum { TAUT_CHASE_ARRAYS = 6, TAUT_CHASE_STATE = 64, TAUT_CHASE_WORTH = 1 << 14 }; /* entries worth threads */

/* One run: which restart and which target, the class pulled to of each example (or NULL), and workspace. */
typedef struct {
    taut_hunt *h;
    const taut_attack *a;
    int64_t restart;
    const int32_t *wrong;
    int64_t *live, lives;             /* rows that are not broken yet */
    double *z, *loss;                 /* (n, classes), (n) */
    double *array[TAUT_CHASE_ARRAYS]; /* (n, dim) each */
    void *state;                      /* n times TAUT_CHASE_STATE bytes */
    uint64_t *key, *pass_key;         /* (n): this run's key of each example; a pass's */
    double *work;                     /* 3 dim a thread */
} taut_chase;

void taut_fgsm(taut_chase *);
void taut_pgd(taut_chase *);
void taut_apgd(taut_chase *);
void taut_fab(taut_chase *);
void taut_square(taut_chase *);

/* Rows of live whose z says another class than the label: adv, distance and broken are set from y, and they leave live. */
void taut_chase_settle(taut_chase *, const double *y);
double *taut_chase_work(const taut_chase *); /* the calling thread's */
/* Keys of one pass of every live example: this run's, step `step`, draw `draw`. */
const uint64_t *taut_chase_keys(taut_chase *, int64_t step, int64_t draw);

/* apgd.c: how many steps there are until the step size is looked at again, from how many it was last; 0: never yet. */
int64_t taut_apgd_window(taut_ball_kind, int64_t last, int64_t steps);
/* square.c: the share p of pixels a window has at a query, and the window's sides. */
double taut_square_share(int64_t query, int64_t queries, bool rescale);
void taut_square_window(int64_t *high, int64_t *wide, double p, int64_t height, int64_t width, taut_ball_kind);
#endif
