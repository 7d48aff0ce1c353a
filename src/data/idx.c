/* IDX: big-endian, 4 bytes of magic (0, 0, 8 for bytes, the number of sizes), the sizes, then the bytes.
 *     train-images-idx3-ubyte, t10k-images-idx3-ubyte    count x height x width
 *     train-labels-idx1-ubyte, t10k-labels-idx1-ubyte    count
 * Everything is checked: magic, sizes against the file's length and each other, labels against the classes. */
#include <stdlib.h>
#include <string.h>

#include "data/gzip.h"
#include "data/image_files.h"

static const size_t LARGEST = (size_t)1 << 31;

typedef struct {
    uint8_t *file, *bytes; /* the whole, and what is behind the sizes */
    int64_t size[3];
} idx;

static int64_t big_endian(const uint8_t *p)
{
    return (int64_t)p[0] << 24 | (int64_t)p[1] << 16 | (int64_t)p[2] << 8 | (int64_t)p[3];
}

static taut_status read_idx(idx *x, const char *folder, const char *name, int sizes)
{
    size_t len;
    *x = (idx){ .size = { 1, 1, 1 } };
    const taut_status s = taut_gzip_read(&x->file, &len, folder, name, LARGEST);
    if (s) return s;
    const size_t head = 4 + 4 * (size_t)sizes;
    const uint8_t magic[] = { 0, 0, 8, (uint8_t)sizes };
    if (len < head || memcmp(x->file, magic, 4) != 0)
        return taut_fail(TAUT_BAD_DATA, "%s/%s: not IDX bytes with %d sizes", folder, name, sizes);
    int64_t all = 1;
    for (int i = 0; i < sizes; i++) {
        x->size[i] = big_endian(x->file + 4 + 4 * i);
        if (x->size[i] < 1 || x->size[i] > (int64_t)LARGEST / all)
            return taut_fail(TAUT_BAD_DATA, "%s/%s: a size of %lld", folder, name, (long long)x->size[i]);
        all *= x->size[i];
    }
    if ((size_t)all != len - head)
        return taut_fail(TAUT_BAD_DATA, "%s/%s: its sizes promise %lld bytes, it has %lld", folder, name,
                         (long long)all, (long long)(len - head));
    x->bytes = x->file + head;
    return TAUT_OK;
}

static taut_status check_labels(const idx *images, const idx *labels, int64_t classes, const char *folder,
                                const char *split)
{
    if (images->size[0] != labels->size[0])
        return taut_fail(TAUT_BAD_DATA, "%s: %lld %s images and %lld labels", folder, (long long)images->size[0], split,
                         (long long)labels->size[0]);
    for (int64_t i = 0; i < labels->size[0]; i++)
        if (labels->bytes[i] >= classes)
            return taut_fail(TAUT_BAD_DATA, "%s: the label %d of %s image %lld is not below %lld", folder,
                             labels->bytes[i], split, (long long)i, (long long)classes);
    return TAUT_OK;
}

taut_status taut_idx_open(taut_images **out, const char *folder, int64_t classes)
{
    static const char *const images[] = { "train-images-idx3-ubyte", "t10k-images-idx3-ubyte" };
    static const char *const labels[] = { "train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte" };
    static const char *const split[] = { "training", "test" };
    idx x[2] = { 0 }, y[2] = { 0 };
    taut_status s = TAUT_OK;
    for (int i = 0; !s && i < 2; i++) {
        s = read_idx(&x[i], folder, images[i], 3);
        if (!s) s = read_idx(&y[i], folder, labels[i], 1);
        if (!s) s = check_labels(&x[i], &y[i], classes, folder, split[i]);
    }
    if (!s && (x[0].size[1] != x[1].size[1] || x[0].size[2] != x[1].size[2]))
        s = taut_fail(TAUT_BAD_DATA, "%s: training and test images differ in size", folder);
    const taut_frame frame = { x[0].size[1], x[0].size[2], 1 };
    if (!s) s = taut_images_create(out, frame, classes, x[0].size[0], x[1].size[0]);
    for (int i = 0; i < 2; i++) {
        if (!s) memcpy((*out)->pixels[i], x[i].bytes, (size_t)(x[i].size[0] * taut_frame_len(frame)));
        if (!s) memcpy((*out)->label[i], y[i].bytes, (size_t)y[i].size[0]);
        free(x[i].file);
        free(y[i].file);
    }
    return s;
}
