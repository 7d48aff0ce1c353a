#include "data/gzip.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"

/* zlib reads a file that is not compressed as it is. */
static taut_status unpack(uint8_t **data, size_t *len, gzFile f, const char *path, size_t most)
{
    size_t room = 1 << 20, used = 0;
    uint8_t *bytes = taut_malloc(room);
    while (bytes && used <= most) {
        if (used == room) {
            uint8_t *more = taut_realloc(bytes, room *= 2);
            if (!more) free(bytes);
            if (!(bytes = more)) break;
        }
        const size_t ask = room - used < (1 << 30) ? room - used : 1 << 30;
        const int got = gzread(f, bytes + used, (unsigned)ask);
        if (got <= 0) break;
        used += (size_t)got;
    }
    if (!bytes) return taut_no_memory(path);
    int code;
    const char *why = gzerror(f, &code);
    *data = bytes;
    *len = used;
    taut_status s = TAUT_OK;
    if (code != Z_OK && code != Z_STREAM_END) s = taut_fail(TAUT_BAD_DATA, "%s: damaged or truncated (%s)", path, why);
    if (used > most) s = taut_fail(TAUT_BAD_DATA, "%s: more than %zu bytes", path, most);
    if (!s) return s;
    free(bytes);
    *data = NULL;
    return s;
}

taut_status taut_gzip_read(uint8_t **data, size_t *len, const char *folder, const char *name, size_t most)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.gz", folder, name);
    if (!taut_file_exists(path)) snprintf(path, sizeof path, "%s/%s", folder, name);
    gzFile f = gzopen(path, "rb");
    if (!f) return taut_fail(TAUT_BAD_DATA, "%s(.gz): there is no such file, or it cannot be read", path);
    const taut_status s = unpack(data, len, f, path, most);
    gzclose(f);
    return s;
}
