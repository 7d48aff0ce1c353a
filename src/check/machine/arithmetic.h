/* Is the arithmetic of this very program what the checker rests on? */
#ifndef TAUT_CHECK_MACHINE_ARITHMETIC_H
#define TAUT_CHECK_MACHINE_ARITHMETIC_H
#include "base/status.h"

taut_status ck_arithmetic(void) TAUT_MUST_USE; /* TAUT_DEVICE: nothing can be checked here */
#endif
