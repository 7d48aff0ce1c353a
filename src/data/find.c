/* Looking for data in the few places where it is kept. */
#include "data/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

static char *join(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = taut_malloc(size);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

taut_status taut_data_find(char **path, const char *name)
{
    *path = NULL;
    const char *own = getenv("TAUT_DATA");
    const char *const folders[] = { own && *own ? own : NULL, "./data", "/usr/share/datasets" };
    if (!*name) return taut_fail(TAUT_BAD_DATA, "data without a name");
    if (taut_file_exists(name)) {
        *path = taut_strdup(name);
        return *path ? TAUT_OK : taut_no_memory(name);
    }
    for (int i = 0; i < 3 && name[0] != '/'; i++) {
        if (!folders[i]) continue;
        char *candidate = join(folders[i], name);
        if (!candidate) return taut_no_memory(name);
        if (taut_file_exists(candidate)) {
            *path = candidate;
            return TAUT_OK;
        }
        free(candidate);
    }
    if (name[0] == '/') return taut_fail(TAUT_BAD_DATA, "%s: no such file", name);
    return taut_fail(TAUT_BAD_DATA, "%s: not found here, in %s, in ./data or in /usr/share/datasets", name,
                     folders[0] ? folders[0] : "$TAUT_DATA (which is not set)");
}
