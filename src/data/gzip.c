#include "data/gzip.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"

/* Everything that is left in f, in *bytes; how much.  NULL: memory is out.  zlib reads a file that is not compressed as it
 * is. */
static size_t read_all(uint8_t **bytes, gzFile f, size_t most)
{
    size_t room = 1 << 20, used = 0;
    int got = 1;
    *bytes = taut_malloc(room);
    while (*bytes && got > 0 && used <= most) {
        if (used == room) {
            uint8_t *more = taut_realloc(*bytes, room *= 2);
            if (!more) free(*bytes);
            if (!(*bytes = more)) return 0;
        }
        const size_t left = room - used;
        got = gzread(f, *bytes + used, (unsigned)(left < (1 << 30) ? left : 1 << 30));
        used += got > 0 ? (size_t)got : 0;
    }
    return used;
}

static taut_status unpack(uint8_t **data, size_t *len, gzFile f, const char *path, size_t most)
{
    int code;
    *len = read_all(data, f, most);
    if (!*data) return taut_no_memory(path);
    const char *why = gzerror(f, &code);
    taut_status s = TAUT_OK;
    if (code != Z_OK && code != Z_STREAM_END) s = taut_fail(TAUT_BAD_DATA, "%s: damaged or truncated (%s)", path, why);
    if (*len > most) s = taut_fail(TAUT_BAD_DATA, "%s: more than %zu bytes", path, most);
    if (!s) return s;
    free(*data);
    *data = NULL;
    return s;
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

taut_status taut_gzip_read(uint8_t **data, size_t *len, const char *folder, const char *name, size_t most)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.gz", folder, name);
    if (!taut_file_exists(path)) snprintf(path, sizeof path, "%s/%s", folder, name);
    gzFile f = gzopen(path, "rb");
    if (!f) return taut_fail(TAUT_BAD_DATA, "%s(.gz): there is no such file, or it cannot be read", path);
    if (is_folder(path)) {
        gzclose(f);
        return taut_fail(TAUT_BAD_DATA, "%s is a folder, where a file is wanted", path);
    }
    const taut_status s = unpack(data, len, f, path, most);
    gzclose(f);
    return s;
}
