/* What follows from a certificate and its predictions: what people and reports are told beside the proof. */
#ifndef TAUT_VERDICT_ACCOUNT_H
#define TAUT_VERDICT_ACCOUNT_H
#include "verdict/predictions.h"

/* The certificate's JSON, and added to it: the constant in other units and of the series itself; the inputs that it holds for, in
 * words; where it is not finite, why; certified accuracy at some radii up to the room, of images in Linf too; of each example
 * its class, and what is known near it; medians; a scale to hold the constant against.  The caller's; incomplete when memory is
 * out. */
cJSON *taut_account(const taut_certificate *, const taut_predictions *);

enum { TAUT_WHY_ROOM = 512 };
const char *taut_why_not(char line[TAUT_WHY_ROOM], const taut_certificate *); /* why it has no finite constant */
#endif
