/* Numbers as people write them in recipes and arguments: all of the text or nothing, in every locale. */
#ifndef TAUT_BASE_NUMBER_H
#define TAUT_BASE_NUMBER_H
#include "taut.h"

/* Numbers between blanks or commas, at most `room`; how many there are, -1: more, or something else is in it. */
int taut_number_list(double *out, int room, const char *text);
/* taut_number_int, taut_number_real, taut_number_print, taut_number_up, taut_number_down: taut.h */
#endif
