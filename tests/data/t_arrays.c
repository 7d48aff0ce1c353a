/* Images in NumPy's arrays: every layout and type, stored or deflated, in a file or a folder; all else is one line. */
#include "data/npy.h"
#include "pictures.h"

#include <sys/stat.h>

#include "data/image_files.h"
#include "temp.h"

enum { N = 8, H = 6, W = 5, C = 3, ALL = N * H * W * C };
static const char *const names[] = { "x.npy", "y.npy", "x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy" };
static made part[4], zip;
static uint8_t pixels[ALL];

static taut_status open_set(taut_images **s, const char *name, double val)
{
    return taut_images_open(s, &(taut_images_spec){ temp_path(name), 0, val, 3, 0, 0 });
}

static void write_set(const char *const *name, int count, bool deflated)
{
    make_zip(&zip, name, part, count, deflated);
    temp_put("set.npz", zip.bytes, zip.len);
}

static void labels(made *out)
{
    int64_t y[N];
    for (int i = 0; i < N; i++) y[i] = i % 3;
    make_npy(out, "<i8", "(8,)", y, sizeof y);
}

/* Images are told apart by their pixels: number i begins with pixels[i * H * W * C]. */
static void same(const taut_images *s, const char *what)
{
    int seen = 0;
    for (int split = 0; split < 2; split++)
        for (int64_t j = 0; j < s->count[split]; j++)
            for (int i = 0; i < N; i++) {
                const uint8_t *p = s->pixels[split] + j * H * W * C;
                if (memcmp(p, pixels + i * H * W * C, H * W * C) == 0 && s->label[split][j] == i % 3) seen++;
            }
    CHECK(seen == N && s->classes == 3, what);
}

static void layouts(void)
{
    static uint8_t planes[ALL];
    static float reals[ALL];
    static double wide[ALL];
    taut_images *s = NULL;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < H * W; k++)
            for (int c = 0; c < C; c++) planes[(i * C + c) * H * W + k] = pixels[(i * H * W + k) * C + c];
    for (int i = 0; i < ALL; i++) reals[i] = pixels[i] / 255.0F, wide[i] = pixels[i];
    labels(&part[1]);
    for (int form = 0; form < 8; form++) {
        if (form / 2 == 0) make_npy(&part[0], "|u1", "(8, 6, 5, 3)", pixels, ALL);
        if (form / 2 == 1) make_npy(&part[0], "|u1", "(8, 3, 6, 5)", planes, ALL);
        if (form / 2 == 2) make_npy(&part[0], "<f4", "(8, 6, 5, 3)", reals, sizeof reals);
        if (form / 2 == 3) make_npy(&part[0], "<f8", "(8, 6, 5, 3)", wide, sizeof wide);
        write_set(names, 2, form % 2);
        CHECK(!open_set(&s, "set.npz", 0.25), taut_last_error());
        CHECK(s->count[0] == 6 && s->count[1] == 2 && s->frame.height == H && s->frame.width == W, "sizes");
        same(s, "the same images from every layout");
        taut_images_free(s);
    }
    if (mkdir(temp_path("arrays"), 0755)) abort();
    temp_put("arrays/x.npy", part[0].bytes, part[0].len);
    temp_put("arrays/y.npy", part[1].bytes, part[1].len);
    CHECK(!open_set(&s, "arrays", 0.25), taut_last_error());
    same(s, "from a folder");
    taut_images_free(s);
    CHECK(!open_set(&s, "arrays", 1) && s->count[0] == 0 && s->count[1] == N, "none to train on");
    same(s, "all validate");
    taut_images_free(s);
}

static void splits(void)
{
    taut_images *s = NULL;
    const uint8_t y[] = { 0, 1, 2, 0 };
    make_npy(&part[0], "|u1", "(4, 6, 5)", pixels, 120);
    make_npy(&part[1], "|u1", "(4, 1)", y, 4);
    make_npy(&part[2], "|u1", "(2, 6, 5)", pixels + 120, 60);
    make_npy(&part[3], "|u1", "(2,)", y, 2);
    write_set(names + 2, 4, true);
    CHECK(!open_set(&s, "set.npz", 0.5), taut_last_error());
    CHECK(s->count[0] == 4 && s->count[1] == 2 && s->frame.channels == 1, "both splits");
    CHECK(memcmp(s->pixels[0], pixels, 120) == 0 && memcmp(s->pixels[1], pixels + 120, 60) == 0, "in their order");
    CHECK(memcmp(s->label[0], y, 4) == 0 && memcmp(s->label[1], y, 2) == 0, "with their labels");
    taut_images_free(s);
}

/* true is white; whole numbers that are 0 and 1 could be white or nearly black, so they are refused. */
static void masks(void)
{
    taut_images *s = NULL;
    static uint8_t mask[ALL];
    for (int i = 0; i < ALL; i++) mask[i] = pixels[i] & 1;
    labels(&part[1]);
    make_npy(&part[0], "|b1", "(8, 6, 5, 3)", mask, ALL);
    write_set(names, 2, false);
    CHECK(!open_set(&s, "set.npz", 1), taut_last_error());
    int wrong = 0;
    for (int i = 0; i < ALL; i++) wrong += s->pixels[TAUT_VALID][i] != 0 && s->pixels[TAUT_VALID][i] != 255;
    CHECK(wrong == 0 && memchr(s->pixels[TAUT_VALID], 255, ALL), "true is 255");
    taut_images_free(s);
    make_npy(&part[0], "|u1", "(8, 6, 5, 3)", mask, ALL);
    write_set(names, 2, false);
    s = NULL;
    CHECK(open_set(&s, "set.npz", 1) == TAUT_BAD_DATA && strstr(taut_last_error(), "up to 1"),
          "bytes that are 0 and 1");
    memset(mask, 0, ALL);
    make_npy(&part[0], "|u1", "(8, 6, 5, 3)", mask, ALL);
    write_set(names, 2, false);
    CHECK(!open_set(&s, "set.npz", 1), "black bytes are black");
    taut_images_free(s);
}

static void numbers(void)
{
    const uint8_t big[] = { 0xff, 0xfe, 0x01, 0x00 };
    taut_npy a;
    make_npy(&part[0], ">i2", "(2,)", big, 4);
    CHECK(!taut_npy_read(&a, part[0].bytes, part[0].len, "a") && a.count == 2, "big-endian");
    CHECK(taut_npy_at(&a, 0) == -2 && taut_npy_at(&a, 1) == 256, "its numbers");
    make_npy(&part[0], "<u2", "(2,)", big, 4);
    CHECK(!taut_npy_read(&a, part[0].bytes, part[0].len, "a") && taut_npy_at(&a, 0) == 0xfeff, "little-endian");
}

static void refused(const char *why)
{
    taut_images *s = NULL;
    CHECK(open_set(&s, "set.npz", 0.25) == TAUT_BAD_DATA && strstr(taut_last_error(), why) &&
              !strchr(taut_last_error(), '\n'),
          taut_last_error());
}

static void bad(void)
{
    double nan = NAN;
    const struct {
        const char *why, *descr, *shape;
        const void *data;
        size_t len;
    } x[] = { { "float32 or float64", "|S9", "(8, 6, 5, 3)", pixels, ALL },
              { "its length", "|u1", "(8, 6, 5, 4)", pixels, ALL },
              { "its sizes", "|u1", "(0, 6)", pixels, 0 },
              { "its sizes", "|u1", "(9999999999999, 99999999)", pixels, ALL },
              { "from 0 to 1", "<f8", "(1, 1, 1)", &nan, 8 },
              { "channels", "|u1", "(8, 90)", pixels, ALL },
              { "1 images and 8", "|u1", "(1, 6, 5)", pixels, 30 } };
    for (int i = 0; i < 7; i++) {
        make_npy(&part[0], x[i].descr, x[i].shape, x[i].data, x[i].len);
        labels(&part[1]);
        if (strcmp(x[i].why, "from 0 to 1") == 0) make_npy(&part[1], "|u1", "(1,)", pixels, 1);
        write_set(names, 2, false);
        refused(x[i].why);
    }
    const int64_t wrong[N] = { 300 };
    make_npy(&part[0], "|u1", "(8, 6, 5, 3)", pixels, ALL);
    make_npy(&part[1], "<i8", "(8,)", wrong, sizeof wrong);
    write_set(names, 2, false);
    refused("label 0 is 300");
    write_set(names, 1, false);
    refused("no y");
    write_set(names + 1, 1, false);
    refused("no array x");
    labels(&part[1]);
    write_set(names, 2, true);
    zip.bytes[60] ^= 1;
    temp_put("set.npz", zip.bytes, zip.len);
    refused("damaged");
    write_set(names, 2, true);
    size_t entry = 0;
    while (memcmp(zip.bytes + entry, "PK\1\2", 4) != 0) entry++;
    memcpy(zip.bytes + entry + 24, "\xf0\xff\xff\xff", 4); /* 4 GiB from a few hundred bytes */
    temp_put("set.npz", zip.bytes, zip.len);
    refused("too large");
    temp_put("set.npz", zip.bytes, 100);
    refused("no zip file");
}

int main(void)
{
    test_begin();
    temp_begin();
    for (int i = 0; i < ALL; i++) pixels[i] = (uint8_t)rng_int(0, 255);
    layouts();
    splits();
    masks();
    numbers();
    bad();
    return test_end("arrays", "layouts and types of .npy and .npz");
}
