/* log.jsonl: one JSON object a line, append-only, each line on its way to the disk when the call returns.
 * A line that could not be written whole is taken back, so the file never holds half a line. */
#ifndef TAUT_BASE_LOG_H
#define TAUT_BASE_LOG_H
#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/status.h"

typedef struct taut_log taut_log;

/* keep_steps < 0: start fresh.  Else resume: keep the lines that are whole JSON objects and whose "step",
 * if they have one, is at most keep_steps; the others (of the lost future, or torn by a crash) go. */
taut_status taut_log_open(taut_log **out, const char *path, int64_t keep_steps) TAUT_MUST_USE;
/* Takes ownership of object, also when it fails; NULL means that building it ran out of memory. */
taut_status taut_log_line(taut_log *log, cJSON *object) TAUT_MUST_USE;
void taut_log_close(taut_log *log);
/* cJSON allocates with malloc, not with taut_malloc: setting its hooks would change a library that the
 * program around us may use too. */
#endif
