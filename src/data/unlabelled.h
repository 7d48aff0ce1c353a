/* Images or texts without classes, to be judged by a model; each knows where it comes from. */
#ifndef TAUT_DATA_UNLABELLED_H
#define TAUT_DATA_UNLABELLED_H
#include "data/images.h"

typedef struct {
    char *file;
    int64_t
        place;  /* of a text its line, from 1 on; of an image in an array its number, from 0 on; -1: the file is one */
    char *text; /* NULL: an image */
    uint8_t *pixels; /* NULL: a text */
} taut_unlabelled_one;

typedef struct {
    taut_unlabelled_one *of;
    int64_t count, room;
} taut_unlabelled;

/* unlabelled_images.c: a picture (PNG, JPEG); every picture of a folder and of the folders in it, in the order of their names;
 * the images of an .npy, or x, else x_test, of an .npz or a folder of .npy files.  Sizes must be the frame's, or are made so. */
taut_status taut_unlabelled_images(taut_unlabelled *, const char *path, taut_frame, bool resize) TAUT_MUST_USE;
/* Each line of a file that is not blank; of .csv and .tsv files each row: the columns of these names (with commas between them;
 * NULL: the usual ones of a header, or the only column); a file of lines has no columns. */
taut_status taut_unlabelled_texts(taut_unlabelled *, const char *path, const char *columns) TAUT_MUST_USE;
bool taut_text_table(const char *path); /* is it called .csv or .tsv? */
void taut_unlabelled_free(taut_unlabelled *);

/* One more, whose text or pixels the caller fills in; NULL: no memory. */
taut_unlabelled_one *taut_unlabelled_add(taut_unlabelled *, const char *file, int64_t place);
#endif
