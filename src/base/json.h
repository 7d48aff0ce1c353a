/* JSON text in which every number reads back as the same bits.  (cJSON's own printing keeps fifteen digits when that is
 * nearly the same: not good enough for a proof, or for comparing two runs.) */
#ifndef TAUT_BASE_JSON_H
#define TAUT_BASE_JSON_H
#include <cjson/cJSON.h>
#include <stdbool.h>

/* The caller frees; NULL: out of memory.  NaN and infinities become null.  `lines`: laid out for people, else one line. */
char *taut_json_text(const cJSON *, bool lines);
#endif
