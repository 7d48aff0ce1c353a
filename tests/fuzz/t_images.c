/* Image sets: IDX and CIFAR-10 files, plain and compressed.  The first byte of an input says which file the rest is. */
#include "fuzz.h"

#include <zlib.h>

#include "data/image_files.h"

static const char *const names[] = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                     "t10k-labels-idx1-ubyte", "test_batch.bin" };
enum { FILES = 5, RECORD = 3073 };
static const uint8_t idx_images[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1, 9, 8, 7, 6 };
static const uint8_t idx_labels[] = { 0, 0, 8, 1, 0, 0, 0, 2, 1, 0 };
static uint8_t record[RECORD];

static const uint8_t *sound(int i, size_t *len)
{
    *len = i == 4 ? sizeof record : i % 2 ? sizeof idx_labels : sizeof idx_images;
    return i == 4 ? record : i % 2 ? idx_labels : idx_images;
}

static void put_sound(int i)
{
    size_t len;
    const uint8_t *data = sound(i, &len);
    temp_put(names[i], data, len);
}

static void fuzz_begin(void)
{
    uint8_t b[RECORD + 100];
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "data_batch_%d.bin", i + 1);
        temp_put(name, record, sizeof record);
    }
    for (int i = 0; i < FILES; i++) {
        size_t len;
        const uint8_t *data = sound(i, &len);
        put_sound(i);
        b[0] = (uint8_t)i;
        memcpy(b + 1, data, len);
        fuzz_seed(b, len + 1);
    }
    b[0] = FILES; /* the same labels, compressed */
    z_stream z = {
        .next_in = (uint8_t *)(uintptr_t)idx_labels, .avail_in = sizeof idx_labels, .next_out = b + 1, .avail_out = 99
    };
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, 0) != Z_OK || deflate(&z, Z_FINISH) != Z_STREAM_END) abort();
    fuzz_seed(b, 1 + z.total_out);
    deflateEnd(&z);
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    taut_images *set = NULL;
    if (len == 0) return;
    const int which = data[0] % (FILES + 1);
    char packed[64];
    snprintf(packed, sizeof packed, "%s.gz", names[1]);
    if (which == FILES) {
        remove(temp_path(names[1]));
        temp_put(packed, data + 1, len - 1);
    } else
        temp_put(names[which], data + 1, len - 1);
    const taut_status s = which == 4 ? taut_cifar_open(&set, temp_dir) : taut_idx_open(&set, temp_dir, 10);
    CHECK(!s == (set != NULL), "an image set or an error");
    taut_images_free(set);
    remove(temp_path(packed));
    put_sound(which == FILES ? 1 : which);
}
