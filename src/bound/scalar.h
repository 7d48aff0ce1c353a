/* Functions no IEEE operation gives: exp at a double, rounded up and rounded down by Arb; and a look at the
 * arithmetic itself, to be asked before a certificate is written. */
#ifndef TAUT_BOUND_SCALAR_H
#define TAUT_BOUND_SCALAR_H
#include "bound/up.h"

taut_up up_exp(double x); /* NaN: +inf */
taut_lo lo_exp(double x); /* NaN: 0; never +inf */

/* Round to nearest, subnormals alive, no excess precision: what every bound here assumes of this thread. */
bool arithmetic_is_ieee(void);
#endif
