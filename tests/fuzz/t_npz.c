/* NumPy's arrays in a zip file, as images. */
#include "fuzz.h"

#include "data/image_files.h"
#include "pictures.h"

static void fuzz_begin(void)
{
    static made part[2], zip;
    const char *const names[] = { "x.npy", "y.npy" };
    const uint8_t x[4 * 2 * 3] = { 1, 2, 3 }, y[] = { 0, 1, 2, 0 };
    make_npy(&part[0], "|u1", "(4, 2, 3)", x, sizeof x);
    make_npy(&part[1], "|u1", "(4,)", y, sizeof y);
    for (int deflated = 0; deflated < 2; deflated++) {
        make_zip(&zip, names, part, 2, deflated);
        fuzz_seed(zip.bytes, zip.len);
    }
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    taut_images *set = NULL;
    const taut_images_spec spec = { .source = "fuzz", .val_fraction = 0.3, .seed = 1 };
    const taut_status s = taut_image_arrays_open(&set, fuzz_file(data, len), &spec);
    CHECK(!s == (set != NULL), "an image set or an error");
    taut_images_free(set);
}
