/* The built-in text: lines of nested brackets that a small model can learn to close.
 *
 *     (mole [hen {owl 2+2=4 1+5=6 owl} 9+4=13 hen] mole)
 *
 * What there is to learn, from near to far: the spelling of the words; the sums; that the word after an
 * opening bracket comes back before the closing one; that the closing bracket is of the kind that opened, so
 * the nesting is a stack.  Plain ASCII, the same characters for every seed. */
#ifndef TAUT_DATA_BRACKETS_H
#define TAUT_DATA_BRACKETS_H
#include <stddef.h>
#include <stdint.h>

/* Fills text[0 .. len): a pure function of the seed; a longer text begins with the shorter one. */
void taut_brackets_fill(char *text, size_t len, uint64_t seed);
/* Every character that can occur, each once, in code point order. */
const char *taut_brackets_alphabet(void);
#endif
