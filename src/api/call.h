/* What every function of taut.h does first: look at its arguments. */
#ifndef TAUT_API_CALL_H
#define TAUT_API_CALL_H
#include <stddef.h>

#include "base/status.h"

/* Answers TAUT_BAD_CALL with a line when an argument that is needed is NULL. */
#define NEED(argument)                                                                           \
    do {                                                                                         \
        if (!(argument)) return taut_fail(TAUT_BAD_CALL, "%s: %s is NULL", __func__, #argument); \
    } while (0)

/* Options of a caller that may be older or newer than the library: all zero where he gave none.  A struct that is larger
 * than ours is taken only if what we do not know is zero. */
taut_status taut_options_take(void *into, size_t ours, const void *given, const char *function) TAUT_MUST_USE;
#endif
