/* Which program this is. */
#ifndef TAUT_BASE_PROGRAM_H
#define TAUT_BASE_PROGRAM_H
#include "base/status.h"

/* SHA-256 of the file that this code was loaded from: the library, or the program that it is part of. */
taut_status taut_program_hash(char hex[65]) TAUT_MUST_USE;
#endif
