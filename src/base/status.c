#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[1024];

const char *taut_last_error(void) { return last_error; }

taut_status taut_fail(taut_status status, const char *format, ...)
{
    char line[sizeof last_error]; /* an argument may be the last error itself */
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    /* names come from files and people: whatever they hold, an error stays one plain line */
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127) *p = '?';
    snprintf(last_error, sizeof last_error, "%s", line);
    return status;
}

taut_status taut_no_memory(const char *what) { return taut_fail(TAUT_NO_MEMORY, "out of memory: %s", what); }
