/* How a call says that the world failed: a status, and one line for the person. */
#ifndef TAUT_BASE_STATUS_H
#define TAUT_BASE_STATUS_H
#include "taut.h"

/* Store the line and hand the status back:  return taut_fail(TAUT_BAD_FILE, "%s: %s", path, why); */
taut_status taut_fail(taut_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
taut_status taut_no_memory(const char *what);
#endif
