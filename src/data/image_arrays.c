/* Images in NumPy's arrays: x and y, of which val_fraction validate, drawn by the seed; or x_train, y_train, x_test, y_test
 * (also x_val, y_val).  x is (n, height, width), (n, height, width, channels) or (n, channels, height, width): bytes, or reals
 * from 0 to 1, which are rounded to 255ths as every stored image is. */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "data/image_array.h"
#include "data/image_files.h"

typedef struct {
    taut_image_array x;
    uint8_t *bytes; /* of y */
    taut_npy y;
} pair;

static taut_status read_pair(pair *p, bool *found, const char *path, const char *x, const char *y)
{
    taut_status s = taut_image_array_open(&p->x, path, x);
    *found = !s && p->x.bytes;
    if (!*found) return s;
    s = taut_npz_array(&p->bytes, &p->y, path, y);
    if (!s && !p->bytes) s = taut_fail(TAUT_BAD_DATA, "%s: there is %s, but no %s", path, x, y);
    const bool column = p->y.dims == 1 || (p->y.dims == 2 && p->y.size[1] == 1);
    if (!s && (!column || p->y.count != p->x.count))
        s = taut_fail(TAUT_BAD_DATA, "%s: %lld images and %lld labels", path, (long long)p->x.count,
                      (long long)p->y.count);
    for (int64_t i = 0; !s && i < p->y.count; i++) {
        const double label = taut_npy_at(&p->y, i);
        if (!(label >= 0 && label <= 255 && label == floor(label)))
            s = taut_fail(TAUT_BAD_DATA, "%s: label %lld is %g, where classes are 0 to 255", path, (long long)i, label);
    }
    return s;
}

static void copy(taut_images *to, int split, int64_t place, const pair *p, int64_t index)
{
    taut_image_array_get(&p->x, to->pixels[split] + place * taut_frame_len(p->x.frame), index);
    to->label[split][place] = (uint8_t)taut_npy_at(&p->y, index);
}

static taut_status one_pair(taut_images **out, const pair *p, const taut_images_spec *spec)
{
    const uint64_t key = taut_rng_key(spec->seed, TAUT_RNG_DATA, 0), all = (uint64_t)p->y.count;
    const uint64_t train = (uint64_t)((1 - spec->val_fraction) * (double)all);
    if (train == all)
        return taut_fail(TAUT_BAD_DATA, "%s: of %lld images none would validate", spec->source, (long long)all);
    const taut_status s = taut_images_create(out, p->x.frame, 256, (int64_t)train, (int64_t)(all - train));
    for (uint64_t i = 0, at[2] = { 0, 0 }; !s && i < all; i++) {
        const int split = taut_rng_place(key, i, all) < train ? TAUT_TRAIN : TAUT_VALID;
        copy(*out, split, (int64_t)at[split]++, p, (int64_t)i);
    }
    return s;
}

static taut_status two_pairs(taut_images **out, const pair p[2], const taut_images_spec *spec)
{
    const taut_frame a = p[0].x.frame, b = p[1].x.frame;
    if (a.height != b.height || a.width != b.width || a.channels != b.channels)
        return taut_fail(TAUT_BAD_DATA, "%s: training and test images differ in size", spec->source);
    const taut_status s = taut_images_create(out, a, 256, p[0].y.count, p[1].y.count);
    for (int split = 0; !s && split < 2; split++)
        for (int64_t i = 0; i < p[split].y.count; i++) copy(*out, split, i, &p[split], i);
    return s;
}

taut_status taut_image_arrays_open(taut_images **out, const char *path, const taut_images_spec *spec)
{
    pair p[2] = { 0 };
    bool train = false, test = false;
    taut_status s = read_pair(&p[0], &train, path, "x_train", "y_train");
    if (!s && train) s = read_pair(&p[1], &test, path, "x_test", "y_test");
    if (!s && train && !test) s = read_pair(&p[1], &test, path, "x_val", "y_val");
    if (!s && train && !test) s = taut_fail(TAUT_BAD_DATA, "%s: there is x_train, but no x_test or x_val", path);
    if (!s && train) s = two_pairs(out, p, spec);
    if (!s && !train) {
        s = read_pair(&p[0], &train, path, "x", "y");
        if (!s && !train) s = taut_fail(TAUT_BAD_DATA, "%s: no array x or x_train is in it", path);
        if (!s) s = one_pair(out, &p[0], spec);
    }
    for (int i = 0; i < 2; i++) {
        taut_image_array_free(&p[i].x);
        free(p[i].bytes);
    }
    return s;
}
