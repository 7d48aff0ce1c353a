/* Logits of examples from a table other than ref, many at a time, before the examples are judged one by one. */
#ifndef TAUT_VERDICT_AHEAD_H
#define TAUT_VERDICT_AHEAD_H
#include "certify/certify.h"
#include "verdict/examples.h"

typedef struct {
    double *logits; /* (n, classes), of each example's last question; NULL: nobody knows how wrong they would be */
    taut_up round;  /* how far one of them is from the real one at most */
} taut_ahead;

/* path: the file that the certificate is about.  A model with a module whose rounding on the table nobody knows is none of
 * this file's business: no logits, and no error. */
taut_status taut_ahead_make(taut_ahead *, const taut_certificate *, const char *path, const char *table,
                            const taut_examples *) TAUT_MUST_USE;
void taut_ahead_free(taut_ahead *);
#endif
