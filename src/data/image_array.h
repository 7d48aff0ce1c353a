/* Images in one array of NumPy's: (n, height, width), (n, height, width, channels) or (n, channels, height, width), bytes or
 * reals from 0 to 1, which are rounded to 255ths as every stored image is. */
#ifndef TAUT_DATA_IMAGE_ARRAY_H
#define TAUT_DATA_IMAGE_ARRAY_H
#include "data/images.h"
#include "data/npy.h"

typedef struct {
    uint8_t *bytes; /* NULL: there is no such array */
    taut_npy x;
    taut_frame frame;
    int64_t count;
    bool planes; /* channels come before height and width */
    double scale;
} taut_image_array;

/* NAME of an .npz or of a folder of .npy files; with no name the file itself is the array. */
taut_status taut_image_array_open(taut_image_array *, const char *path, const char *name) TAUT_MUST_USE;
void taut_image_array_get(const taut_image_array *, uint8_t *pixels, int64_t index); /* frame's bytes */
void taut_image_array_free(taut_image_array *);
#endif
