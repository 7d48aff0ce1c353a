/* CIFAR-10, binary version: records of a label (0 .. 9) and 32 x 32 bytes each of red, green and blue.
 * data_batch_1.bin .. data_batch_5.bin train, test_batch.bin validates.  Here the three colours of a pixel stand side by
 * side. */
#include <stdio.h>
#include <stdlib.h>

#include "data/gzip.h"
#include "data/image_files.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, RECORD = 1 + 3 * PLANE, FILES = 6, CLASSES = 10 };

typedef struct {
    uint8_t *bytes;
    int64_t records;
} file;

static taut_status read_file(file *f, const char *folder, int number)
{
    char name[32] = "test_batch.bin";
    size_t len;
    if (number < FILES - 1) snprintf(name, sizeof name, "data_batch_%d.bin", number + 1);
    const taut_status s = taut_gzip_read(&f->bytes, &len, folder, name, (size_t)1 << 31);
    if (s) return s;
    f->records = (int64_t)(len / RECORD);
    if (len == 0 || len % RECORD)
        return taut_fail(TAUT_BAD_DATA, "%s/%s: %zu bytes are no whole number of images of %d bytes", folder, name, len,
                         RECORD);
    for (int64_t i = 0; i < f->records; i++)
        if (f->bytes[i * RECORD] >= CLASSES)
            return taut_fail(TAUT_BAD_DATA, "%s/%s: the label %d of image %lld is not below %d", folder, name,
                             f->bytes[i * RECORD], (long long)i, CLASSES);
    return TAUT_OK;
}

static void copy_record(uint8_t *pixels, uint8_t *label, const uint8_t *record)
{
    *label = *record++;
    for (int i = 0; i < PLANE; i++)
        for (int c = 0; c < 3; c++) pixels[3 * i + c] = record[c * PLANE + i];
}

taut_status taut_cifar_open(taut_images **out, const char *folder)
{
    file f[FILES] = { 0 };
    int64_t train = 0;
    taut_status s = TAUT_OK;
    for (int i = 0; !s && i < FILES; i++) {
        s = read_file(&f[i], folder, i);
        if (i < FILES - 1) train += f[i].records;
    }
    if (!s) s = taut_images_create(out, (taut_frame){ SIDE, SIDE, 3 }, CLASSES, train, f[FILES - 1].records);
    for (int i = 0, at = 0; i < FILES; i++) {
        const int split = i < FILES - 1 ? TAUT_TRAIN : TAUT_VALID;
        if (split == TAUT_VALID) at = 0;
        for (int64_t r = 0; !s && r < f[i].records; r++, at++)
            copy_record((*out)->pixels[split] + (int64_t)at * 3 * PLANE, (*out)->label[split] + at,
                        f[i].bytes + r * RECORD);
        free(f[i].bytes);
    }
    return s;
}
