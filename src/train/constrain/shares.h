/* Shares of the learning rate by mass and sensitivity (modula), as the enforced paper trains with. */
#ifndef TAUT_TRAIN_CONSTRAIN_SHARES_H
#define TAUT_TRAIN_CONSTRAIN_SHARES_H
#include "model/spec.h"

typedef enum { TAUT_SHARES_NONE, TAUT_SHARES_SCALAR, TAUT_SHARES_ONE } taut_shares;

/* What the matrix called path multiplies the learning rate by: 1 with TAUT_SHARES_NONE. */
double taut_share_of(const taut_model_spec *, taut_shares, double blocks_mass, const char *path);
#endif
