/* A folder of class folders: FOLDER/CLASS/any.png, of which val_fraction validate, drawn by the seed; or
 * FOLDER/train/CLASS/any.png and FOLDER/test (or val, valid, validation).  Classes are numbered in the order of their names, by
 * bytes.  Files that end otherwise than in .png, .jpg or .jpeg are left out, as are names that begin with a dot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/image_files.h"
#include "data/picture_file.h"

enum { CLASSES = 256 };

typedef struct {
    char *path;
    uint8_t class;
    uint8_t split;
} entry;
typedef struct {
    entry *of;
    size_t count, room;
    char *name[CLASSES];
    int classes, empty; /* empty: class folders without a picture */
} list;

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

typedef struct {
    list *l;
    uint8_t class, split;
    size_t found;
} where;

static taut_status add_picture(const char *folder, const char *name, void *arg)
{
    where *w = arg;
    list *l = w->l;
    if (!taut_picture_named(name)) return TAUT_OK;
    if (l->count == l->room) {
        entry *more = taut_realloc(l->of, (l->room = 2 * l->room + 1024) * sizeof *more);
        if (!more) return taut_no_memory(folder);
        l->of = more;
    }
    char *path = taut_folder_path(folder, name);
    if (!path) return taut_no_memory(folder);
    l->of[l->count++] = (entry){ path, w->class, w->split };
    w->found++;
    return TAUT_OK;
}

/* The first split names the classes; the others may have fewer, but no new ones. */
static taut_status class_of(where *w, const char *folder, const char *name)
{
    list *l = w->l;
    for (int i = 0; i < l->classes; i++)
        if (strcmp(l->name[i], name) == 0) {
            w->class = (uint8_t)i;
            return TAUT_OK;
        }
    if (w->split == TAUT_VALID)
        return taut_fail(TAUT_BAD_DATA, "%s/%s: a class that no training image has", folder, name);
    if (l->classes == CLASSES) return taut_fail(TAUT_BAD_DATA, "%s: more than %d classes", folder, CLASSES);
    if (strchr(name, ',')) return taut_fail(TAUT_BAD_DATA, "%s/%s: a class's name has no comma", folder, name);
    w->class = (uint8_t)l->classes;
    if (!(l->name[l->classes] = taut_strdup(name))) return taut_no_memory(name);
    l->classes++;
    return TAUT_OK;
}

static taut_status add_class(const char *folder, const char *name, void *arg)
{
    where *w = arg;
    char *path = taut_folder_path(folder, name);
    if (!path) return taut_no_memory(name);
    taut_status s = TAUT_OK;
    if (is_folder(path)) {
        s = class_of(w, folder, name);
        w->found = 0;
        if (!s) s = taut_folder_names(path, add_picture, w);
        if (!s && !w->found) w->l->empty++;
    }
    free(path);
    return s;
}

/* FOLDER/train and the first of its siblings that is there; false: there are no such two. */
static bool two_splits(char *path[2], const char *folder)
{
    static const char *const second[] = { "test", "val", "valid", "validation" };
    path[0] = taut_folder_path(folder, "train");
    path[1] = NULL;
    for (int i = 0; i < 4 && !path[1]; i++) {
        path[1] = taut_folder_path(folder, second[i]);
        if (path[1] && is_folder(path[1])) break;
        free(path[1]);
        path[1] = NULL;
    }
    if (path[0] && path[1] && is_folder(path[0])) return true;
    free(path[0]);
    free(path[1]);
    return false;
}

/* In one folder, each picture's number decides by itself: a permutation of the numbers, of which the last ones validate. */
static void cut(list *l, double val_fraction, uint64_t seed)
{
    const uint64_t key = taut_rng_key(seed, TAUT_RNG_DATA, 0);
    const uint64_t train = (uint64_t)((1 - val_fraction) * (double)l->count);
    for (size_t i = 0; i < l->count; i++)
        l->of[i].split = taut_rng_place(key, i, l->count) < train ? TAUT_TRAIN : TAUT_VALID;
}

static taut_status gather(list *l, const char *folder, const taut_images_spec *spec)
{
    char *split[2];
    taut_status s = TAUT_OK;
    if (two_splits(split, folder)) {
        for (uint8_t i = 0; i < 2; i++) {
            if (!s) s = taut_folder_names(split[i], add_class, &(where){ .l = l, .split = i });
            free(split[i]);
        }
    } else {
        s = taut_folder_names(folder, add_class, &(where){ .l = l, .split = TAUT_TRAIN });
        if (!s) cut(l, spec->val_fraction, spec->seed);
    }
    if (!s && !l->count)
        s = taut_fail(
            TAUT_BAD_DATA,
            "%s: no images: no train-images-idx3-ubyte, data_batch_1.bin, x.npy, nor class folders with .png or "
            ".jpg are in it",
            folder);
    if (!s && (l->classes < 2 || l->empty))
        s = taut_fail(TAUT_BAD_DATA, "%s: %d class folders, %d of them without a .png or .jpg; at least 2 are wanted",
                      folder, l->classes, l->empty);
    return s;
}

/* Colour if any picture has it; the size of all, or the one that is asked for. */
static taut_status common_frame(taut_frame *out, const list *l, int64_t side)
{
    for (size_t i = 0; i < l->count; i++) {
        taut_frame f;
        const taut_status s = taut_picture_file_frame(&f, l->of[i].path);
        if (s) return s;
        if (side) f.height = f.width = side;
        if (i == 0) *out = f;
        if (f.height != out->height || f.width != out->width)
            return taut_fail(TAUT_BAD_DATA,
                             "%s: %lld x %lld pixels, where %s has %lld x %lld (data.resize = 32 makes all 32 x 32)",
                             l->of[i].path, (long long)f.height, (long long)f.width, l->of[0].path,
                             (long long)out->height, (long long)out->width);
        if (f.channels > out->channels) out->channels = f.channels;
    }
    return TAUT_OK;
}

static taut_status fill(taut_images *images, const list *l)
{
    int64_t at[2] = { 0, 0 };
    taut_status s = TAUT_OK;
    for (size_t i = 0; !s && i < l->count; i++) {
        const entry *e = &l->of[i];
        const int64_t place = at[e->split]++;
        images->label[e->split][place] = e->class;
        s = taut_picture_file(images->pixels[e->split] + place * taut_frame_len(images->frame), images->frame, e->path);
    }
    return s;
}

static taut_status name_classes(taut_images *images, const list *l)
{
    size_t size = 1;
    for (int i = 0; i < l->classes; i++) size += strlen(l->name[i]) + 1;
    char *to = images->names = taut_malloc(size);
    if (!to) return taut_no_memory("names of classes");
    *to = 0;
    for (int i = 0; i < l->classes; i++) to += sprintf(to, "%s%s", i ? "," : "", l->name[i]);
    return TAUT_OK;
}

taut_status taut_image_folder_open(taut_images **out, const char *folder, const taut_images_spec *spec)
{
    list l = { 0 };
    taut_frame frame = { 0, 0, 0 };
    int64_t count[2] = { 0, 0 };
    taut_status s = gather(&l, folder, spec);
    if (!s) s = common_frame(&frame, &l, spec->side);
    for (size_t i = 0; !s && i < l.count; i++) count[l.of[i].split]++;
    if (!s && !count[TAUT_VALID])
        s = taut_fail(TAUT_BAD_DATA, "%s: of %zu pictures none would validate", folder, l.count);
    if (!s && (int64_t)l.count > ((int64_t)1 << 34) / taut_frame_len(frame))
        s = taut_fail(TAUT_BAD_DATA, "%s: more than 16 GiB of pixels (data.resize = 32 makes all 32 x 32)", folder);
    if (!s) s = taut_images_create(out, frame, l.classes, count[0], count[1]);
    if (!s) {
        s = fill(*out, &l);
        if (!s) s = name_classes(*out, &l);
        if (s) taut_images_free(*out);
    }
    for (size_t i = 0; i < l.count; i++) free(l.of[i].path);
    for (int i = 0; i < l.classes; i++) free(l.name[i]);
    free(l.of);
    return s;
}
