/* Numbers as people write them in recipes and arguments: all of the text or nothing, in every locale. */
#ifndef TAUT_BASE_NUMBER_H
#define TAUT_BASE_NUMBER_H
#include <stdbool.h>
#include <stdint.h>

#include "taut.h"

/* false: not a whole decimal number of 64 bits (no spaces, no exponent, nothing behind it). */
bool taut_number_int(int64_t *out, const char *text);
/* Decimal, or a fraction such as 8/255; false: anything else, NaN, an infinity or overflow. */
bool taut_number_real(double *out, const char *text);
/* Numbers between blanks or commas, at most `room`; how many there are, -1: more, or something else is in it. */
int taut_number_list(double *out, int room, const char *text);
/* The shortest decimal that reads back as the same bits. */
void taut_number_print(char dst[32], double value);

/* taut_number_up, taut_number_down, for people: taut.h */
#endif
