#include "data/picture_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"

char *taut_folder_path(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = taut_malloc(size);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static int visible(const struct dirent *d) { return d->d_name[0] != '.'; }
static int by_bytes(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

taut_status taut_folder_names(const char *folder, taut_status (*each)(const char *folder, const char *name, void *arg),
                              void *arg)
{
    struct dirent **d;
    taut_status s = TAUT_OK;
    const int n = scandir(folder, &d, visible, by_bytes);
    if (n < 0) return taut_fail(TAUT_BAD_DATA, "%s: cannot be read", folder);
    for (int i = 0; i < n; i++) {
        if (!s) s = each(folder, d[i]->d_name, arg);
        free(d[i]);
    }
    free(d);
    return s;
}

static bool ends(const char *name, const char *with)
{
    const size_t n = strlen(name), w = strlen(with);
    return n > w && strcasecmp(name + n - w, with) == 0;
}

bool taut_picture_named(const char *name) { return ends(name, ".png") || ends(name, ".jpg") || ends(name, ".jpeg"); }

taut_status taut_picture_file_frame(taut_frame *out, const char *path)
{
    char *bytes;
    size_t len;
    taut_status s = taut_file_read(&bytes, &len, path);
    if (s) return s;
    s = taut_picture_frame(out, (const uint8_t *)bytes, len, path);
    free(bytes);
    return s;
}

taut_status taut_picture_file(uint8_t *pixels, taut_frame frame, const char *path)
{
    char *bytes;
    size_t len;
    taut_frame own;
    taut_status s = taut_file_read(&bytes, &len, path);
    if (s) return s;
    s = taut_picture_frame(&own, (const uint8_t *)bytes, len, path);
    own.channels = frame.channels;
    uint8_t *whole = s ? NULL : taut_malloc((size_t)taut_frame_len(own));
    if (!s && !whole) s = taut_no_memory(path);
    if (!s) s = taut_picture_decode(whole, own, (const uint8_t *)bytes, len, path);
    if (!s) taut_picture_resize(pixels, frame, whole, own);
    free(whole);
    free(bytes);
    return s;
}
