/* The forms that image sets have on a disk: IDX (MNIST, Fashion-MNIST) and CIFAR-10's binary version, compressed or not;
 * pictures in class folders; NumPy's arrays. */
#ifndef TAUT_DATA_IMAGE_FILES_H
#define TAUT_DATA_IMAGE_FILES_H
#include "data/images.h"

/* Each looks for its own files in the folder; classes: labels must be below it. */
taut_status taut_idx_open(taut_images **out, const char *folder, int64_t classes) TAUT_MUST_USE;
taut_status taut_cifar_open(taut_images **out, const char *folder) TAUT_MUST_USE;
taut_status taut_image_folder_open(taut_images **out, const char *folder, const taut_images_spec *) TAUT_MUST_USE;
taut_status taut_image_arrays_open(taut_images **out, const char *path, const taut_images_spec *) TAUT_MUST_USE;
#endif
