/* A bound as text for people: six digits, never below it. */
#ifndef TAUT_BOUND_PRINT_H
#define TAUT_BOUND_PRINT_H
#include "base/number.h"
#include "bound/up.h"

static inline const char *up_text(char text[32], taut_up b) { return taut_number_up(text, b.v); }
#endif
