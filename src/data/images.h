/* Images as bytes with their classes, in two splits, and as a source of examples. */
#ifndef TAUT_DATA_IMAGES_H
#define TAUT_DATA_IMAGES_H
#include "data/source.h"

enum { TAUT_CHANNELS = 4 }; /* at most */

/* height, width and channels of an image; a pixel is at ((y * width) + x) * channels + channel */
typedef struct {
    int64_t height, width, channels;
} taut_frame;

static inline int64_t taut_frame_len(taut_frame f) { return f.height * f.width * f.channels; }

typedef struct {
    taut_frame frame;
    int64_t classes;
    int64_t count[2]; /* of each split */
    uint8_t *pixels[2], *label[2];
    char *names; /* of the classes, with commas between them; NULL: they have none */
} taut_images;

/* A set that taut knows by name, and what a recipe that names it need not say. */
typedef struct {
    const char *name;
    taut_frame frame;
    int64_t classes;
    const char *mean, *std; /* of each channel of its training images */
    int64_t length;         /* images, of a built-in set; 0: what its files hold */
    const char *names;      /* of its classes, with commas between them; NULL: numbers */
} taut_known_images;
const taut_known_images *taut_images_known(const char *source); /* or NULL */

/* "shapes" is built in: `length` images from the seed, the last val_fraction of them for validation; none of them may be
 * left to train on, for those who only look.  Anything else is found as
 * data: a folder with IDX files or CIFAR-10's, whose test images validate (idx.c, cifar.c), a folder of class folders with
 * pictures (image_folder.c), NumPy's arrays in an .npz or a folder (image_arrays.c). */
typedef struct {
    const char *source;
    int64_t length;
    double val_fraction;
    uint64_t seed;
    int64_t side; /* pictures are made side x side; 0: they stay as they are */
    double
        hold_out; /* this share of the training images, drawn by the seed, validates; the set's own that do are left out */
} taut_images_spec;
taut_status taut_images_open(taut_images **out, const taut_images_spec *) TAUT_MUST_USE;
void taut_images_free(taut_images *);

/* Room for images of this frame; the caller fills it. */
taut_status taut_images_create(taut_images **out, taut_frame, int64_t classes, int64_t train,
                               int64_t valid) TAUT_MUST_USE;

/* The mean and the standard deviation of each channel of the training images, in [0, 1]. */
void taut_images_moments(const taut_images *, double mean[TAUT_CHANNELS], double std[TAUT_CHANNELS]);

/* Classes with names that a model has, too, get the model's numbers: a folder may hold some of its classes, in another order.
 * Where not one name is the model's, classes stay in their order; where some are, one that is not is refused. */
taut_status taut_images_match(taut_images *, const char *names) TAUT_MUST_USE;

/* Training images made different every time (augment.c). */
typedef struct {
    bool flip;            /* left and right exchanged, half of the time */
    int64_t crop;         /* moved by up to so many pixels in each direction */
    bool reflect;         /* what comes in from outside is the image reflected at its border; else 0 */
    double turn, zoom;    /* turned by up to so many degrees, made larger or smaller by up to 1 + zoom */
    double colour;        /* brightness, contrast and saturation times 1 - colour to 1 + colour each */
    int64_t erase;        /* a box of that side, cut off at the border, gets the image's mean colour */
    double spared;        /* the share of images that are not turned, zoomed, coloured or erased */
    int64_t plain_from;   /* from this number of the stream on all are spared; 0: nowhere */
    double mixup, cutmix; /* alpha of the share's Beta(alpha, alpha); 0: never.  With both, half of the time each */
} taut_augment;

/* source_images.c: (1, height * width * channels) pixels in [0, 1], and one class.  The training stream goes through all
 * images in a new order every time, augmented as asked; a split is as it is.  Owns the images from the call on, even if
 * it fails. */
taut_status taut_source_images(taut_source **out, taut_images *, const taut_augment *) TAUT_MUST_USE;
#endif
