/* Pictures by libpng and TurboJPEG.  Sizes are read and refused before memory is taken. */
#include "data/picture.h"

#include <math.h>
#include <png.h>
#include <stdbool.h>
#include <string.h>
#include <turbojpeg.h>

static bool is_png(const uint8_t *bytes, size_t len) { return len >= 8 && png_sig_cmp(bytes, 0, 8) == 0; }
static bool is_jpeg(const uint8_t *bytes, size_t len) { return len >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0; }

static taut_status fits(taut_frame f, const char *name)
{
    if (f.height >= 1 && f.width >= 1 && f.height <= TAUT_PICTURE_SIDE && f.width <= TAUT_PICTURE_SIDE) return TAUT_OK;
    return taut_fail(TAUT_BAD_DATA, "%s: a picture of %lld x %lld, where a side has 1 to %d pixels", name,
                     (long long)f.height, (long long)f.width, TAUT_PICTURE_SIDE);
}

static taut_status png(taut_frame *out, uint8_t *pixels, int64_t channels, const uint8_t *bytes, size_t len,
                       const char *name)
{
    png_image image = { .version = PNG_IMAGE_VERSION };
    taut_status s = TAUT_OK;
    if (!png_image_begin_read_from_memory(&image, bytes, len))
        s = taut_fail(TAUT_BAD_DATA, "%s: a damaged PNG (%s)", name, image.message);
    if (!s) *out = (taut_frame){ image.height, image.width, image.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1 };
    if (!s) s = fits(*out, name);
    if (!s && pixels) {
        image.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
        const png_color black = { 0, 0, 0 };
        if (!png_image_finish_read(&image, &black, pixels, 0, NULL))
            s = taut_fail(TAUT_BAD_DATA, "%s: a damaged PNG (%s)", name, image.message);
    }
    png_image_free(&image);
    return s;
}

static taut_status jpeg(taut_frame *out, uint8_t *pixels, int64_t channels, const uint8_t *bytes, size_t len,
                        const char *name)
{
    tjhandle h = tjInitDecompress();
    int width = 0, height = 0, sampling = 0, space = 0;
    if (!h) return taut_no_memory(name);
    taut_status s = TAUT_OK;
    if (tjDecompressHeader3(h, bytes, len, &width, &height, &sampling, &space))
        s = taut_fail(TAUT_BAD_DATA, "%s: a damaged JPEG (%s)", name, tjGetErrorStr2(h));
    *out = (taut_frame){ height, width, space == TJCS_GRAY ? 1 : 3 };
    if (!s) s = fits(*out, name);
    if (!s && pixels &&
        tjDecompress2(h, bytes, len, pixels, width, 0, height, channels == 3 ? TJPF_RGB : TJPF_GRAY,
                      TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING)) /* cut short: a warning */
        s = taut_fail(TAUT_BAD_DATA, "%s: a damaged JPEG (%s)", name, tjGetErrorStr2(h));
    tjDestroy(h);
    return s;
}

static taut_status read_picture(taut_frame *out, uint8_t *pixels, int64_t channels, const uint8_t *bytes, size_t len,
                                const char *name)
{
    if (is_png(bytes, len)) return png(out, pixels, channels, bytes, len, name);
    if (is_jpeg(bytes, len)) return jpeg(out, pixels, channels, bytes, len, name);
    return taut_fail(TAUT_BAD_DATA, "%s: neither PNG nor JPEG", name);
}

taut_status taut_picture_frame(taut_frame *out, const uint8_t *bytes, size_t len, const char *name)
{
    return read_picture(out, NULL, 0, bytes, len, name);
}

taut_status taut_picture_decode(uint8_t *pixels, taut_frame frame, const uint8_t *bytes, size_t len, const char *name)
{
    taut_frame seen;
    return read_picture(&seen, pixels, frame.channels, bytes, len, name);
}

/* The length of [a, a + 1] inside [lo, hi]. */
static double overlap(int64_t a, double lo, double hi) { return fmin((double)a + 1, hi) - fmax((double)a, lo); }

void taut_picture_resize(uint8_t *to, taut_frame t, const uint8_t *from, taut_frame f)
{
    const double high = (double)f.height / (double)t.height, wide = (double)f.width / (double)t.width;
    for (int64_t y = 0; y < t.height; y++)
        for (int64_t x = 0; x < t.width; x++) {
            const double top = (double)y * high, left = (double)x * wide;
            double sum[TAUT_CHANNELS] = { 0 };
            for (int64_t i = (int64_t)top; i < f.height && (double)i < top + high; i++)
                for (int64_t j = (int64_t)left; j < f.width && (double)j < left + wide; j++) {
                    const double share = overlap(i, top, top + high) * overlap(j, left, left + wide);
                    for (int64_t c = 0; c < t.channels; c++) sum[c] += share * from[(i * f.width + j) * f.channels + c];
                }
            for (int64_t c = 0; c < t.channels; c++) *to++ = (uint8_t)lrint(fmax(0, fmin(255, sum[c] / (high * wide))));
        }
}
