#include "api/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

const char *taut_version(void) { return TAUT_VERSION; }
void taut_string_free(char *text) { free(text); }
void taut_ids_free(int32_t *ids) { free(ids); }

taut_status taut_options_take(void *into, size_t ours, const void *given, const char *function)
{
    memset(into, 0, ours);
    if (!given) return TAUT_OK;
    size_t theirs;
    memcpy(&theirs, given, sizeof theirs);
    if (theirs < sizeof theirs || theirs > 1 << 16 || theirs % sizeof theirs) /* no pointer is cut in two */
        return taut_fail(TAUT_BAD_CALL, "%s: the options' size is %zu, not that of a struct", function, theirs);
    for (size_t i = ours; i < theirs; i++)
        if (((const char *)given)[i])
            return taut_fail(TAUT_BAD_CALL, "%s: an option that this library (%s) does not know", function,
                             TAUT_VERSION);
    memcpy(into, given, theirs < ours ? theirs : ours);
    return TAUT_OK;
}

taut_status taut_json_out(char **json, cJSON *object, taut_status s)
{
    *json = s || !object ? NULL : taut_json_text(object, true);
    cJSON_Delete(object);
    return s ? s : *json ? TAUT_OK : taut_no_memory("an answer");
}
