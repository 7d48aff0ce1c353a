/* Images in NumPy's arrays: x and y, of which val_fraction validate, drawn by the seed; or x_train, y_train, x_test, y_test
 * (also x_val, y_val).  x is (n, height, width), (n, height, width, channels) or (n, channels, height, width): bytes, or reals
 * from 0 to 1, which are rounded to 255ths as every stored image is. */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "data/image_files.h"
#include "data/npy.h"

typedef struct {
    uint8_t *bytes[2];
    taut_npy x, y;
    taut_frame frame;
    bool planes; /* channels come before height and width */
    double scale;
} pair;

static taut_status read_array(uint8_t **bytes, taut_npy *a, const char *path, const char *name)
{
    size_t len;
    taut_status s = taut_npz_member(bytes, &len, path, name); /* its lines name the file already */
    if (s || !*bytes) return s;
    s = taut_npy_read(a, *bytes, len, name);
    return s ? taut_fail(s, "%s: %s", path, taut_last_error()) : TAUT_OK;
}

static taut_status shape_of(pair *p, const char *path)
{
    const taut_npy *x = &p->x;
    const int64_t *n = x->size;
    if (x->dims == 3)
        p->frame = (taut_frame){ n[1], n[2], 1 };
    else if (x->dims == 4 && n[3] <= TAUT_CHANNELS)
        p->frame = (taut_frame){ n[1], n[2], n[3] };
    else if (x->dims == 4 && n[1] <= TAUT_CHANNELS)
        p->frame = (taut_frame){ n[2], n[3], n[1] };
    else
        return taut_fail(TAUT_BAD_DATA, "%s: images are (n, height, width), or with 1 to %d channels last or second",
                         path, TAUT_CHANNELS);
    p->planes = x->dims == 4 && n[3] > TAUT_CHANNELS;
    const bool column = p->y.dims == 1 || (p->y.dims == 2 && p->y.size[1] == 1);
    if (!column || p->y.count != n[0])
        return taut_fail(TAUT_BAD_DATA, "%s: %lld images and %lld labels", path, (long long)n[0],
                         (long long)p->y.count);
    return TAUT_OK;
}

/* Bytes are bytes; reals from 0 to 1 are 255ths; whole numbers of any type from 0 to 255 are bytes too. */
static taut_status range_of(pair *p, const char *path)
{
    double most = 0;
    bool good = true, whole = true;
    for (int64_t i = 0; i < p->x.count && good; i++) {
        const double v = taut_npy_at(&p->x, i);
        good = v >= 0 && v <= 255; /* NaN is not */
        whole = whole && v == floor(v);
        most = fmax(most, v);
    }
    p->scale = p->x.kind == 'f' && most <= 1 ? 255 : 1;
    if (good && (whole || p->scale == 255)) return TAUT_OK;
    return taut_fail(TAUT_BAD_DATA, "%s: pixels are bytes, or reals from 0 to 1", path);
}

static taut_status read_pair(pair *p, bool *found, const char *path, const char *x, const char *y)
{
    taut_status s = read_array(&p->bytes[0], &p->x, path, x);
    *found = !s && p->bytes[0];
    if (!*found) return s;
    s = read_array(&p->bytes[1], &p->y, path, y);
    if (!s && !p->bytes[1]) s = taut_fail(TAUT_BAD_DATA, "%s: there is %s, but no %s", path, x, y);
    if (!s) s = shape_of(p, path);
    if (!s) s = range_of(p, path);
    for (int64_t i = 0; !s && i < p->y.count; i++) {
        const double label = taut_npy_at(&p->y, i);
        if (!(label >= 0 && label <= 255 && label == floor(label)))
            s = taut_fail(TAUT_BAD_DATA, "%s: label %lld is %g, where classes are 0 to 255", path, (long long)i, label);
    }
    return s;
}

static void copy(taut_images *to, int split, int64_t place, const pair *p, int64_t index)
{
    const taut_frame f = p->frame;
    const int64_t plane = f.height * f.width, len = taut_frame_len(f);
    uint8_t *pixels = to->pixels[split] + place * len;
    for (int64_t i = 0; i < plane; i++)
        for (int64_t c = 0; c < f.channels; c++) {
            const int64_t at = index * len + (p->planes ? c * plane + i : i * f.channels + c);
            *pixels++ = (uint8_t)lrint(p->scale * taut_npy_at(&p->x, at));
        }
    to->label[split][place] = (uint8_t)taut_npy_at(&p->y, index);
}

static taut_status one_pair(taut_images **out, const pair *p, const taut_images_spec *spec)
{
    const uint64_t key = taut_rng_key(spec->seed, TAUT_RNG_DATA, 0), all = (uint64_t)p->y.count;
    const uint64_t train = (uint64_t)((1 - spec->val_fraction) * (double)all);
    if (train < 1 || train == all)
        return taut_fail(TAUT_BAD_DATA, "%s: %lld images leave one of the two splits empty", spec->source,
                         (long long)all);
    const taut_status s = taut_images_create(out, p->frame, 256, (int64_t)train, (int64_t)(all - train));
    for (uint64_t i = 0, at[2] = { 0, 0 }; !s && i < all; i++) {
        const int split = taut_rng_place(key, i, all) < train ? TAUT_TRAIN : TAUT_VALID;
        copy(*out, split, (int64_t)at[split]++, p, (int64_t)i);
    }
    return s;
}

static taut_status two_pairs(taut_images **out, const pair p[2], const taut_images_spec *spec)
{
    const taut_frame a = p[0].frame, b = p[1].frame;
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
    for (int i = 0; i < 4; i++) free(p[i / 2].bytes[i % 2]);
    return s;
}
