/* Printing a bound never rounds it down. */
#ifndef TAUT_BOUND_PRINT_H
#define TAUT_BOUND_PRINT_H
#include "bound/up.h"

/* Six digits, the last rounded up: the decimal that is printed is at least the bound.  Returns text. */
const char *up_text(char text[32], taut_up b);
#endif
