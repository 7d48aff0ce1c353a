/* What every function of taut.h does first, look at its arguments, and what many do last: hand JSON text out. */
#ifndef TAUT_API_CALL_H
#define TAUT_API_CALL_H
#include <cjson/cJSON.h>
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

/* The object as text; frees it.  NULL is an object that memory was too short for.  A status that is not TAUT_OK is handed back
 * and makes no text. */
taut_status taut_json_out(char **json, cJSON *object, taut_status) TAUT_MUST_USE;
#endif
