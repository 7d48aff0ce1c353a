/* One proved constant in other units and norms: a translation, not a new proof. */
#ifndef TAUT_CERTIFY_UNITS_H
#define TAUT_CERTIFY_UNITS_H
#include "certify/certify.h"

enum { TAUT_UNITS = 4 };
typedef struct {
    taut_norm norm;
    bool rms;           /* |v|_RMS = |v| / sqrt(numbers in v): of a token, in flat of everything */
    taut_up factor;     /* times the certificate's constant, in l2 and its own norm */
    taut_up lip;        /* the constant in these units */
    const char *reason; /* why the factor suffices */
} taut_unit;

/* The certificate's own unit first. */
void taut_units(taut_unit unit[TAUT_UNITS], const taut_certificate *c);
#endif
