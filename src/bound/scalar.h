/* Functions no IEEE operation gives: exp at a double, rounded up and rounded down by Arb. */
#ifndef TAUT_BOUND_SCALAR_H
#define TAUT_BOUND_SCALAR_H
#include "bound/up.h"

taut_up up_exp(double x); /* NaN: +inf */
taut_lo lo_exp(double x); /* NaN: 0; never +inf */
#endif
