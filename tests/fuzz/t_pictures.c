/* Pictures: PNG and JPEG, from the first byte to the pixels. */
#include "fuzz.h"

#include "data/picture.h"
#include "pictures.h"

static void fuzz_begin(void)
{
    static made m;
    uint8_t p[8 * 8 * 4];
    for (size_t i = 0; i < sizeof p; i++) p[i] = (uint8_t)(13 * i);
    const unsigned formats[] = { PNG_FORMAT_GRAY, PNG_FORMAT_RGB, PNG_FORMAT_RGBA };
    for (int i = 0; i < 3; i++) {
        make_png(&m, p, 8, 8, formats[i]);
        fuzz_seed(m.bytes, m.len);
    }
    make_jpeg(&m, p, 8, 8, TJPF_GRAY);
    fuzz_seed(m.bytes, m.len);
    make_jpeg(&m, p, 8, 8, TJPF_RGB);
    fuzz_seed(m.bytes, m.len);
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    taut_frame f;
    if (taut_picture_frame(&f, data, len, "fuzz") || taut_frame_len(f) > 1 << 20) return;
    uint8_t *pixels = malloc((size_t)taut_frame_len(f));
    const taut_status s = taut_picture_decode(pixels, f, data, len, "fuzz");
    CHECK(!s || *taut_last_error(), "pixels, or a line");
    free(pixels);
}
