/* Sets of images by name. */
#include "data/images.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "data/find.h"
#include "data/image_files.h"
#include "data/names.h"
#include "data/shapes.h"

static const taut_known_images known[] = {
    { "shapes",
      { TAUT_SHAPES_SIDE, TAUT_SHAPES_SIDE, TAUT_SHAPES_CHANNELS },
      TAUT_SHAPES_CLASSES,
      "0.5 0.5 0.5",
      "0.29 0.29 0.29",
      6000,
      "disc,square,triangle,plus,ring,stripes" },
    { "mnist", { 28, 28, 1 }, 10, "0.1307", "0.3081", 0, NULL },
    { "fashion-mnist",
      { 28, 28, 1 },
      10,
      "0.2860",
      "0.3530",
      0,
      "t-shirt,trouser,pullover,dress,coat,sandal,shirt,sneaker,bag,boot" },
    { "cifar10",
      { 32, 32, 3 },
      10,
      "0.4914 0.4822 0.4465",
      "0.2470 0.2435 0.2616",
      0,
      "plane,car,bird,cat,deer,dog,frog,horse,ship,truck" },
};

const taut_known_images *taut_images_known(const char *source)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, source) == 0) return &known[i];
    return NULL;
}

taut_status taut_images_create(taut_images **out, taut_frame frame, int64_t classes, int64_t train, int64_t valid)
{
    taut_images *s = taut_calloc(1, sizeof *s);
    if (!s) return taut_no_memory("images");
    *s = (taut_images){ .frame = frame, .classes = classes, .count = { train, valid } };
    bool done = true;
    for (int i = 0; i < 2; i++) {
        s->pixels[i] = taut_malloc((size_t)(s->count[i] * taut_frame_len(frame) + 1));
        s->label[i] = taut_malloc((size_t)s->count[i] + 1);
        done = done && s->pixels[i] && s->label[i];
    }
    if (!done) {
        taut_images_free(s);
        return taut_no_memory("images");
    }
    *out = s;
    return TAUT_OK;
}

void taut_images_free(taut_images *s)
{
    if (!s) return;
    for (int i = 0; i < 2; i++) {
        free(s->pixels[i]);
        free(s->label[i]);
    }
    free(s->names);
    free(s);
}

static taut_status open_shapes(taut_images **out, const taut_images_spec *spec)
{
    const taut_known_images *k = &known[0];
    const int64_t length = spec->length, train = (int64_t)((1 - spec->val_fraction) * (double)length);
    if (train == length)
        return taut_fail(TAUT_BAD_DATA, "shapes: of %lld images none would validate", (long long)length);
    const taut_status status = taut_images_create(out, k->frame, k->classes, train, length - train);
    if (status) return status;
    taut_images *s = *out;
    for (int64_t i = 0; i < length; i++) {
        const int split = i < train ? TAUT_TRAIN : TAUT_VALID;
        const int64_t at = i < train ? i : i - train;
        s->label[split][at] = (uint8_t)taut_shapes_draw(s->pixels[split] + at * taut_frame_len(k->frame), spec->seed,
                                                        i);
    }
    return TAUT_OK;
}

static int64_t classes_in(const taut_images *s)
{
    int64_t most = 0;
    for (int i = 0; i < 2; i++)
        for (int64_t j = 0; j < s->count[i]; j++) most = s->label[i][j] > most ? s->label[i][j] : most;
    return most + 1;
}

void taut_images_moments(const taut_images *s, double mean[TAUT_CHANNELS], double std[TAUT_CHANNELS])
{
    const int64_t channels = s->frame.channels, all = s->count[TAUT_TRAIN] * taut_frame_len(s->frame);
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0, square = 0;
        for (int64_t i = c; i < all; i += channels) {
            const double v = s->pixels[TAUT_TRAIN][i] / 255.0;
            sum += v;
            square += v * v;
        }
        const double count = (double)(all / channels);
        mean[c] = sum / count;
        std[c] = sqrt(fmax(0, square / count - mean[c] * mean[c]));
    }
}

taut_status taut_images_match(taut_images *s, const char *names)
{
    taut_names ours = { 0 }, theirs = { 0 };
    int64_t at[256], found = 0;
    if (!s->names || !names) return TAUT_OK;
    taut_status status = taut_names_read(&ours, names, "data.class_names");
    if (!status) status = taut_names_read(&theirs, s->names, "the classes of the images");
    for (int64_t i = 0; !status && i < theirs.count; i++)
        found += (at[i] = taut_names_find(&ours, theirs.name[i])) >= 0;
    for (int64_t i = 0; !status && found && i < theirs.count; i++)
        if (at[i] < 0)
            status = taut_fail(TAUT_BAD_DATA, "the class '%.60s' is none of the model's: %.300s", theirs.name[i],
                               names);
    if (!status && found) {
        for (int split = 0; split < 2; split++)
            for (int64_t i = 0; i < s->count[split]; i++) s->label[split][i] = (uint8_t)at[s->label[split][i]];
        s->classes = ours.count;
    }
    taut_names_free(&ours);
    taut_names_free(&theirs);
    return status;
}

static bool holds(const char *folder, const char *file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (taut_file_exists(path)) return true;
    snprintf(path, sizeof path, "%s/%s.gz", folder, file);
    return taut_file_exists(path);
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static taut_status open_found(taut_images **out, const char *path, const taut_images_spec *spec)
{
    const taut_known_images *k = taut_images_known(spec->source);
    if (holds(path, "train-images-idx3-ubyte")) return taut_idx_open(out, path, k ? k->classes : 256);
    if (holds(path, "data_batch_1.bin")) return taut_cifar_open(out, path);
    const size_t len = strlen(path);
    const bool zip = len > 4 && strcasecmp(path + len - 4, ".npz") == 0;
    if (!is_folder(path) && !zip)
        return taut_fail(TAUT_BAD_DATA,
                         "%s: images are a folder of class folders with .png or .jpg, an .npz or a folder "
                         "of .npy files, or IDX or CIFAR-10's files",
                         path);
    if (zip || holds(path, "x.npy") || holds(path, "x_train.npy")) return taut_image_arrays_open(out, path, spec);
    return taut_image_folder_open(out, path, spec);
}

/* The training images alone, cut in two by the seed. */
static taut_status hold_out(taut_images **images, const taut_images_spec *spec)
{
    const taut_images *all = *images;
    const int64_t count = all->count[TAUT_TRAIN], len = taut_frame_len(all->frame);
    const int64_t train = count - (int64_t)(spec->hold_out * (double)count);
    const uint64_t key = taut_rng_key(spec->seed, TAUT_RNG_DATA, 1);
    taut_images *s = NULL;
    if (train < 1 || train == count)
        return taut_fail(TAUT_BAD_DATA, "%s: data.hold_out = %g of %lld images leaves one of the two splits empty",
                         spec->source, spec->hold_out, (long long)count);
    const taut_status status = taut_images_create(&s, all->frame, all->classes, train, count - train);
    if (status) return status;
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = (int64_t)taut_rng_place(key, (uint64_t)i, (uint64_t)count);
        const int split = place < train ? TAUT_TRAIN : TAUT_VALID;
        const int64_t at = place < train ? place : place - train;
        memcpy(s->pixels[split] + at * len, all->pixels[TAUT_TRAIN] + i * len, (size_t)len);
        s->label[split][at] = all->label[TAUT_TRAIN][i];
    }
    s->names = (*images)->names, (*images)->names = NULL;
    taut_images_free(*images);
    *images = s;
    return TAUT_OK;
}

static taut_status open_any(taut_images **out, const taut_images_spec *spec)
{
    if (strcmp(spec->source, "shapes") == 0) return open_shapes(out, spec);
    char *path;
    taut_status s = taut_data_find(&path, spec->source);
    if (s) return s;
    s = open_found(out, path, spec);
    free(path);
    if (!s && !taut_images_known(spec->source) && !(*out)->names) (*out)->classes = classes_in(*out);
    return s;
}

taut_status taut_images_open(taut_images **out, const taut_images_spec *spec)
{
    taut_status s = open_any(out, spec);
    if (s || !(spec->hold_out > 0)) return s;
    s = hold_out(out, spec);
    if (s) taut_images_free(*out);
    return s;
}
