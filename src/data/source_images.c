/* Images as examples: byte b is the number b / 255. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/images.h"

typedef struct {
    taut_source base;
    taut_images *images;
} source;

static int64_t images_count(const taut_source *base, taut_split split)
{
    return ((const source *)base)->images->count[split];
}

static void images_get(const taut_source *base, taut_slot to, taut_split split, int64_t index)
{
    const taut_images *s = ((const source *)base)->images;
    const int64_t len = taut_frame_len(s->frame);
    const uint8_t *from = s->pixels[split] + index * len;
    for (int64_t i = 0; i < len; i++) to.reals[i] = from[i] / 255.0;
    *to.target = s->label[split][index];
}

static void images_draw(const taut_source *base, taut_slot to, uint64_t seed, int64_t number)
{
    const int64_t all = images_count(base, TAUT_TRAIN);
    const uint64_t key = taut_rng_key(seed, TAUT_RNG_BATCH, (uint64_t)(number / all)); /* another order every epoch */
    images_get(base, to, TAUT_TRAIN, (int64_t)taut_rng_place(key, (uint64_t)(number % all), (uint64_t)all));
}

static void images_free(taut_source *base)
{
    taut_images_free(((source *)base)->images);
    free(base);
}

static const taut_source_ops images_ops = { images_count, images_get, images_draw, images_free };

taut_status taut_source_images(taut_source **out, taut_images *images)
{
    source *s = taut_calloc(1, sizeof *s);
    if (!s) {
        taut_images_free(images);
        return taut_no_memory("images");
    }
    *s = (source){ { &images_ops, { 0, 1, taut_frame_len(images->frame), 1, images->classes }, NULL }, images };
    *out = &s->base;
    return TAUT_OK;
}
