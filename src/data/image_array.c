#include "data/image_array.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"

static taut_status shape_of(taut_image_array *a, const char *path)
{
    const int64_t *n = a->x.size;
    if (a->x.dims == 3)
        a->frame = (taut_frame){ n[1], n[2], 1 };
    else if (a->x.dims == 4 && n[3] <= TAUT_CHANNELS)
        a->frame = (taut_frame){ n[1], n[2], n[3] };
    else if (a->x.dims == 4 && n[1] <= TAUT_CHANNELS)
        a->frame = (taut_frame){ n[2], n[3], n[1] };
    else
        return taut_fail(TAUT_BAD_DATA, "%s: images are (n, height, width), or with 1 to %d channels last or second",
                         path, TAUT_CHANNELS);
    a->planes = a->x.dims == 4 && n[3] > TAUT_CHANNELS;
    a->count = n[0];
    return TAUT_OK;
}

/* Bytes are bytes; reals from 0 to 1 are 255ths, and so is true; whole numbers of any type from 0 to 255 are bytes too, unless
 * none is above 1: then nobody knows whether 1 is white. */
static taut_status range_of(taut_image_array *a, const char *path)
{
    double most = 0;
    bool good = true, whole = true;
    for (int64_t i = 0; i < a->x.count && good; i++) {
        const double v = taut_npy_at(&a->x, i);
        good = v >= 0 && v <= 255; /* NaN is not */
        whole = whole && v == floor(v);
        most = fmax(most, v);
    }
    const bool unit = a->x.kind == 'f' || a->x.kind == 'b';
    a->scale = unit && most <= 1 ? 255 : 1;
    if (good && !unit && most == 1)
        return taut_fail(TAUT_BAD_DATA, "%s: whole numbers up to 1: bytes go to 255, and reals from 0 to 1 are floats",
                         path);
    if (good && (whole || a->scale == 255)) return TAUT_OK;
    return taut_fail(TAUT_BAD_DATA, "%s: pixels are bytes, or reals from 0 to 1", path);
}

static taut_status read_file(uint8_t **bytes, taut_npy *x, const char *path)
{
    char *text = NULL;
    size_t len;
    const taut_status s = taut_file_read(&text, &len, path);
    *bytes = (uint8_t *)text;
    return s ? s : taut_npy_read(x, *bytes, len, path);
}

taut_status taut_image_array_open(taut_image_array *a, const char *path, const char *name)
{
    *a = (taut_image_array){ 0 };
    taut_status s = name ? taut_npz_array(&a->bytes, &a->x, path, name) : read_file(&a->bytes, &a->x, path);
    if (!s && a->bytes) s = shape_of(a, path);
    if (!s && a->bytes) s = range_of(a, path);
    if (s) taut_image_array_free(a);
    return s;
}

void taut_image_array_get(const taut_image_array *a, uint8_t *pixels, int64_t index)
{
    const taut_frame f = a->frame;
    const int64_t plane = f.height * f.width, len = taut_frame_len(f);
    for (int64_t i = 0; i < plane; i++)
        for (int64_t c = 0; c < f.channels; c++) {
            const int64_t at = index * len + (a->planes ? c * plane + i : i * f.channels + c);
            *pixels++ = (uint8_t)lrint(a->scale * taut_npy_at(&a->x, at));
        }
}

void taut_image_array_free(taut_image_array *a)
{
    free(a->bytes);
    *a = (taut_image_array){ 0 };
}
