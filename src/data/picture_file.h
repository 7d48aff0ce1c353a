/* Pictures as files, and the names in a folder. */
#ifndef TAUT_DATA_PICTURE_FILE_H
#define TAUT_DATA_PICTURE_FILE_H
#include "data/picture.h"

bool taut_picture_named(const char *name); /* does it end in .png, .jpg or .jpeg? */
taut_status taut_picture_file_frame(taut_frame *, const char *path) TAUT_MUST_USE;
/* Its pixels in this size, resized if it has another, and with as many channels. */
taut_status taut_picture_file(uint8_t *pixels, taut_frame, const char *path) TAUT_MUST_USE;

char *taut_folder_path(const char *folder, const char *name); /* FOLDER/NAME; the caller frees.  NULL: no memory */
/* Calls `each` with every name of a folder that does not begin with a dot, in the order of its bytes, until one fails. */
taut_status taut_folder_names(const char *folder, taut_status (*each)(const char *folder, const char *name, void *arg),
                              void *arg) TAUT_MUST_USE;
#endif
