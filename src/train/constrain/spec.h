/* What the [constrain] section of a recipe asks for. */
#ifndef TAUT_TRAIN_CONSTRAIN_SPEC_H
#define TAUT_TRAIN_CONSTRAIN_SPEC_H
#include "base/config.h"

typedef enum {
    TAUT_FREE,
    TAUT_SPECTRAL_DECAY,
    TAUT_NORMALISE,
    TAUT_STIEFEL,
    TAUT_HAMMER,
    TAUT_SOFTCAP,
    TAUT_HARDCAP,
    TAUT_HARDCAP_TABLE,
    TAUT_CLIP,
    TAUT_CLIPPED_DECAY,
    TAUT_BJORCK,
    TAUT_CAYLEY,
    TAUT_POLAR
} taut_constraint;

/* Caps by what a matrix is for, in the order of taut_cap_role. */
typedef enum { TAUT_CAP_QK, TAUT_CAP_V, TAUT_CAP_O, TAUT_CAP_IN, TAUT_CAP_OUT, TAUT_CAP_HEAD } taut_cap_role;
enum { TAUT_CAP_ROLES = 6 };

typedef struct {
    taut_constraint method;
    double cap;                  /* RMS->RMS norm of every matrix; 0: none */
    double role[TAUT_CAP_ROLES]; /* 0: as cap */
    double lo, lambda;           /* clip; spectral_decay and clipped_decay */
    double embed, position;      /* RMS of a row of the token and position tables; 0: no cap */
    int64_t every, iterations;   /* steps between two constraints; of a power iteration */
    double target;               /* what the proved Lipschitz constant of every saved model is at most; 0: off */
    int64_t fill;                /* every so many steps the head is scaled until the constant is the target; 0: never */
    bool flat, l2;               /* of that constant: norm flat, not tokens; units l2, not RMS */
} taut_constrain_spec;

/* `muon` chooses the default method of a recipe with a target. */
taut_status taut_constrain_spec_read(taut_constrain_spec *, taut_config *, bool muon) TAUT_MUST_USE;

/* The cap of the matrix called path ("block.0.attn.q.weight"); 0: none. */
double taut_cap_of(const taut_constrain_spec *, const char *path);
#endif
