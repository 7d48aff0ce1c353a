/* Is the arithmetic of this very program what every proof rests on?  Compilers drop roundings, libraries set modes of the
 * processor, a BLAS or a libm may be wrong: so it is tried, once per process and before the first proof.
 * docs/arithmetic.md has the list.  src/check/machine/arithmetic.c does the same for the checker, with its own code. */
#ifndef TAUT_BOUND_ARITHMETIC_H
#define TAUT_BOUND_ARITHMETIC_H
#include <stdbool.h>

#include "base/far.h"
#include "base/status.h"

/* TAUT_DEVICE: no proof may be made here, and the line says what is wrong and how to build or run instead.  Milliseconds
 * the first time; later only the modes of the calling thread are looked at. */
taut_status taut_arithmetic_test(void) TAUT_MUST_USE;

/* The parts that have a file of their own.  Each answers with the name of what is wrong, or NULL. */
const char *taut_arithmetic_blas(bool *memory); /* *memory becomes false when there is too little of it to try */
const char *taut_arithmetic_libm(void);
const char *taut_arithmetic_far(const taut_far *, bool *memory); /* of a device: what it does for proofs */
#endif
