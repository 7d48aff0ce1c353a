/* Images without classes: pictures, folders of them, arrays. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "data/image_array.h"
#include "data/picture_file.h"
#include "data/unlabelled.h"

typedef struct {
    taut_unlabelled *u;
    taut_frame frame;
    bool resize;
} wanted;

static bool same_size(taut_frame a, taut_frame b) { return a.height == b.height && a.width == b.width; }

static taut_status other_size(const char *path, taut_frame f, taut_frame w)
{
    return taut_fail(TAUT_BAD_DATA, "%s: %lld x %lld pixels; the model reads %lld x %lld (--resize makes it so)", path,
                     (long long)f.height, (long long)f.width, (long long)w.height, (long long)w.width);
}

static taut_status add(uint8_t **pixels, const wanted *w, const char *path, int64_t place)
{
    taut_unlabelled_one *one = taut_unlabelled_add(w->u, path, place);
    *pixels = one ? one->pixels = taut_malloc((size_t)taut_frame_len(w->frame)) : NULL;
    return *pixels ? TAUT_OK : taut_no_memory(path);
}

static taut_status take_picture(const wanted *w, const char *path)
{
    taut_frame f;
    uint8_t *pixels;
    taut_status s = taut_picture_file_frame(&f, path);
    if (s) return s;
    if (!same_size(f, w->frame) && !w->resize) return other_size(path, f, w->frame);
    if (w->frame.channels != 1 && w->frame.channels != 3)
        return taut_fail(TAUT_BAD_DATA, "%s: the model reads %lld channels; pictures have 1 or 3", path,
                         (long long)w->frame.channels);
    s = add(&pixels, w, path, -1);
    return s ? s : taut_picture_file(pixels, w->frame, path);
}

static taut_status take_images(const wanted *w, const taut_image_array *a, const char *path)
{
    const taut_frame f = a->frame;
    taut_status s = TAUT_OK;
    if (!same_size(f, w->frame) && !w->resize) return other_size(path, f, w->frame);
    if (f.channels != w->frame.channels)
        return taut_fail(TAUT_BAD_DATA, "%s: images of %lld channels; the model reads %lld", path,
                         (long long)f.channels, (long long)w->frame.channels);
    if (a->x.count < 1) return taut_fail(TAUT_BAD_DATA, "%s: no image is in it", path);
    uint8_t *own = taut_malloc((size_t)taut_frame_len(f)), *pixels;
    if (!own) return taut_no_memory(path);
    for (int64_t i = 0; !s && i < a->count; i++) {
        s = add(&pixels, w, path, i);
        taut_image_array_get(a, own, i);
        if (!s) taut_picture_resize(pixels, w->frame, own, f);
    }
    free(own);
    return s;
}

/* x of an .npz or a folder, else x_test; a.bytes stays NULL where neither is there. */
static taut_status find_array(taut_image_array *a, const char *path)
{
    const taut_status s = taut_image_array_open(a, path, "x");
    return s || a->bytes ? s : taut_image_array_open(a, path, "x_test");
}

static taut_status take_array(const wanted *w, const char *path, bool single)
{
    taut_image_array a;
    taut_status s = single ? taut_image_array_open(&a, path, NULL) : find_array(&a, path);
    if (!s && !a.bytes) s = taut_fail(TAUT_BAD_DATA, "%s: no array x or x_test is in it", path);
    if (!s) s = take_images(w, &a, path);
    taut_image_array_free(&a);
    return s;
}

/* A link to a folder is not followed: it may lead around. */
static bool is_folder(const char *path, bool links)
{
    struct stat s;
    return (links ? stat(path, &s) : lstat(path, &s)) == 0 && S_ISDIR(s.st_mode);
}

static taut_status take_named(const char *folder, const char *name, void *arg)
{
    const wanted *w = arg;
    char *path = taut_folder_path(folder, name);
    if (!path) return taut_no_memory(folder);
    taut_status s = TAUT_OK;
    if (is_folder(path, false))
        s = taut_folder_names(path, take_named, arg);
    else if (taut_picture_named(name))
        s = take_picture(w, path);
    free(path);
    return s;
}

static taut_status take_folder(wanted *w, const char *folder)
{
    const int64_t before = w->u->count;
    taut_image_array a;
    taut_status s = find_array(&a, folder);
    const bool arrays = !s && a.bytes;
    if (arrays) s = take_images(w, &a, folder);
    taut_image_array_free(&a);
    if (!s && !arrays) s = taut_folder_names(folder, take_named, w);
    if (!s && w->u->count == before)
        s = taut_fail(TAUT_BAD_DATA, "%s: neither .png or .jpg files nor x.npy are in it", folder);
    return s;
}

taut_status taut_unlabelled_images(taut_unlabelled *u, const char *path, taut_frame frame, bool resize)
{
    wanted w = { u, frame, resize };
    const size_t len = strlen(path);
    const char *end = len > 4 ? path + len - 4 : "";
    if (is_folder(path, true)) return take_folder(&w, path);
    if (strcasecmp(end, ".npy") == 0) return take_array(&w, path, true);
    if (strcasecmp(end, ".npz") == 0) return take_array(&w, path, false);
    return take_picture(&w, path);
}
