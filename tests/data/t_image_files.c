/* IDX and CIFAR-10 files: read right, compressed or not; every damage is one clear line. */
#include "data/image_files.h"

#include <sys/stat.h>
#include <zlib.h>

#include "harness.h"
#include "temp.h"

enum { N = 5, M = 3, H = 4, W = 3, RECORD = 3073 };

static void put(const char *folder, const char *name, const void *data, size_t len, bool packed)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", name, packed ? ".gz" : "");
    char full[2048];
    snprintf(full, sizeof full, "%s/%s", folder, path);
    if (!packed) {
        FILE *f = fopen(full, "wb");
        if (!f || fwrite(data, 1, len, f) != len || fclose(f)) abort();
        return;
    }
    gzFile f = gzopen(full, "wb");
    if (!f || gzwrite(f, data, (unsigned)len) != (int)len || gzclose(f) != Z_OK) abort();
}

static size_t idx_head(uint8_t *to, int sizes, const int64_t *size)
{
    const uint8_t magic[] = { 0, 0, 8, (uint8_t)sizes };
    memcpy(to, magic, 4);
    for (int i = 0; i < sizes; i++)
        for (int b = 0; b < 4; b++) to[4 + 4 * i + b] = (uint8_t)(size[i] >> (24 - 8 * b));
    return 4 + 4 * (size_t)sizes;
}

/* A folder of its own for every case; images count up, labels go 0, 1, 2, ... */
static const char *idx_folder(const char *name, bool packed)
{
    const char *folder = temp_path(name);
    const int64_t count[] = { N, M };
    static const char *const split[] = { "train", "t10k" };
    uint8_t bytes[64 + N * H * W];
    char file[64];
    if (mkdir(folder, 0755)) abort();
    for (int s = 0; s < 2; s++) {
        size_t len = idx_head(bytes, 3, (int64_t[]){ count[s], H, W });
        for (int64_t i = 0; i < count[s] * H * W; i++) bytes[len++] = (uint8_t)(i + 100 * s);
        snprintf(file, sizeof file, "%s-images-idx3-ubyte", split[s]);
        put(folder, file, bytes, len, packed);
        len = idx_head(bytes, 1, &count[s]);
        for (int64_t i = 0; i < count[s]; i++) bytes[len++] = (uint8_t)i;
        snprintf(file, sizeof file, "%s-labels-idx1-ubyte", split[s]);
        put(folder, file, bytes, len, packed);
    }
    return folder;
}

static void idx_right(void)
{
    for (int packed = 0; packed < 2; packed++) {
        taut_images *s = NULL;
        const char *folder = idx_folder(packed ? "idx.gz" : "idx", packed);
        CHECK(!taut_images_open(&s, &(taut_images_spec){ folder, 0, 0.1, 1, 0, 0 }), taut_last_error());
        CHECK(s->count[0] == N && s->count[1] == M && s->frame.height == H && s->frame.width == W, "its sizes");
        CHECK(s->frame.channels == 1 && s->pixels[0][17] == 17 && s->pixels[1][3] == 103 && s->label[0][4] == 4,
              "bytes");
        taut_images_free(s);
        CHECK(taut_idx_open(&s, folder, 4) == TAUT_BAD_DATA && strstr(taut_last_error(), "label 4 of training image 4"),
              taut_last_error());
    }
}

/* The file written over by `len` bytes; `want` is in the line. */
static void idx_wrong(const char *file, const void *data, size_t len, bool packed, const char *want)
{
    static int number;
    char name[32];
    taut_images *s = NULL;
    snprintf(name, sizeof name, "bad%d", number++);
    const char *folder = idx_folder(name, false);
    put(folder, file, data, len, packed);
    CHECK(taut_idx_open(&s, folder, 10) == TAUT_BAD_DATA && strstr(taut_last_error(), want), taut_last_error());
}

static void idx_damage(void)
{
    static const char images[] = "train-images-idx3-ubyte", labels[] = "t10k-labels-idx1-ubyte";
    uint8_t b[64 + N * H * W] = { 0 };
    size_t head = idx_head(b, 3, (int64_t[]){ N, H, W });
    idx_wrong(images, b, head + N * H * W - 1, false, "promise 60 bytes, it has 59");
    idx_wrong(images, b, head + N * H * W + 1, false, "promise 60 bytes, it has 61");
    idx_wrong(images, b, 10, false, "not IDX");
    idx_wrong(images, b, 0, false, "not IDX");
    idx_head(b, 3, (int64_t[]){ N, 0, W });
    idx_wrong(images, b, head, false, "a size of 0");
    idx_head(b, 3, (int64_t[]){ 0xffffffff, 0xffffffff, 0xffffffff });
    idx_wrong(images, b, head, false, "a size of");
    idx_head(b, 3, (int64_t[]){ N, W, H });
    idx_wrong(images, b, head + N * H * W, false, "differ in size");
    idx_head(b, 3, (int64_t[]){ N - 1, H, W });
    idx_wrong(images, b, head + (N - 1) * H * W, false, "4 training images and 5 labels");
    b[2] = 9;
    idx_wrong(images, b, head + (N - 1) * H * W, false, "not IDX");
    head = idx_head(b, 1, (int64_t[]){ M });
    b[head] = 10;
    idx_wrong(labels, b, head + M, false, "label 10 of test image 0 is not below 10");
    idx_wrong(labels, "\x1f\x8b\x08\0\0\0\0\0\0\3garbage", 17, false, "damaged or truncated");
    /* a compressed file cut short, and one with a flipped bit */
    const char *folder = idx_folder("cut", true);
    char path[2048];
    uint8_t *big = calloc(1, 200000);
    snprintf(path, sizeof path, "%s/%s.gz", folder, images);
    for (int i = 0; i < 200000; i++) big[i] = (uint8_t)rng_int(0, 255);
    head = idx_head(big, 3, (int64_t[]){ N, 100, 100 });
    put(folder, images, big, head + N * 10000, true);
    taut_images *s = NULL;
    if (truncate(path, 20000)) abort();
    CHECK(taut_idx_open(&s, folder, 10) == TAUT_BAD_DATA && strstr(taut_last_error(), "damaged"), taut_last_error());
    free(big);
    CHECK(taut_images_open(&s, &(taut_images_spec){ temp_dir, 0, 0.1, 1, 0, 0 }) == TAUT_BAD_DATA &&
              strstr(taut_last_error(), "no images"),
          "empty");
    CHECK(taut_images_open(&s, &(taut_images_spec){ "no-such-set", 0, 0.1, 1, 0, 0 }) == TAUT_BAD_DATA, "nowhere");
}

static void cifar(void)
{
    const char *folder = temp_path("cifar");
    static uint8_t b[2 * RECORD];
    char name[64];
    taut_images *s = NULL;
    if (mkdir(folder, 0755)) abort();
    for (int i = 0; i < 6; i++) {
        b[0] = (uint8_t)i, b[RECORD] = 9;
        for (int j = 1; j < RECORD; j++) b[j] = (uint8_t)(j + i), b[RECORD + j] = 7;
        snprintf(name, sizeof name, i < 5 ? "data_batch_%d.bin" : "test_batch.bin", i + 1);
        CHECK(taut_cifar_open(&s, folder) == TAUT_BAD_DATA && strstr(taut_last_error(), name), "a file is missing");
        put(folder, name, b, sizeof b, i % 2);
    }
    CHECK(!taut_images_open(&s, &(taut_images_spec){ folder, 0, 0.1, 1, 0, 0 }), taut_last_error());
    CHECK(s->count[0] == 10 && s->count[1] == 2 && s->classes == 10 && s->frame.channels == 3, "its sizes");
    CHECK(s->label[0][4] == 2 && s->label[0][5] == 9 && s->label[1][0] == 5, "labels in order");
    const uint8_t *p = s->pixels[0] + 4 * 3072; /* of data_batch_3: byte j is j + 2 */
    CHECK(p[0] == 3 && p[1] == (uint8_t)(1 + 1024 + 2) && p[3 * 33 + 2] == (uint8_t)(1 + 2048 + 33 + 2),
          "colours side by side");
    taut_images_free(s);
    b[RECORD] = 10;
    put(folder, "test_batch.bin", b, sizeof b, true);
    CHECK(taut_cifar_open(&s, folder) == TAUT_BAD_DATA && strstr(taut_last_error(), "label 10 of image 1"), "a label");
    put(folder, "data_batch_1.bin", b, sizeof b - 1, false);
    CHECK(taut_cifar_open(&s, folder) == TAUT_BAD_DATA && strstr(taut_last_error(), "6145 bytes"), taut_last_error());
    put(folder, "data_batch_1.bin", b, 0, false);
    CHECK(taut_cifar_open(&s, folder) == TAUT_BAD_DATA && strstr(taut_last_error(), "0 bytes"), taut_last_error());
}

int main(void)
{
    test_begin();
    temp_begin();
    idx_right();
    idx_damage();
    cifar();
    return test_end("image_files", "IDX and CIFAR-10, right and damaged");
}
