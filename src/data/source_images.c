/* Images as examples: byte b is the number b / 255. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/rng.h"
#include "data/augment.h"

typedef struct {
    taut_source base;
    taut_images *images;
    taut_augment augment;
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

/* Image number `number` of the stream, changed by draws that are its own. */
static int64_t drawn(double *out, const source *s, const taut_augment *how, uint64_t seed, int64_t number)
{
    const taut_images *m = s->images;
    const int64_t all = m->count[TAUT_TRAIN];
    const uint64_t order = taut_rng_key(seed, TAUT_RNG_BATCH, (uint64_t)(number / all)); /* another one every epoch */
    const int64_t index = (int64_t)taut_rng_place(order, (uint64_t)(number % all), (uint64_t)all);
    taut_augment_image(out, m->pixels[TAUT_TRAIN] + index * taut_frame_len(m->frame), m->frame, how,
                       taut_rng_key(seed, TAUT_RNG_AUGMENT, (uint64_t)number));
    return index;
}

/* Its partner is the image a third of the stream away, augmented by itself but plain if and only if the first one is. */
static void images_draw(const taut_source *base, taut_slot to, uint64_t seed, int64_t number)
{
    const source *s = (const source *)base;
    const taut_images *m = s->images;
    const uint8_t *label = m->label[TAUT_TRAIN];
    taut_augment how = s->augment;
    if (how.plain_from > 0 && number >= how.plain_from) how.spared = 1;
    *to.target = label[drawn(to.reals, s, &how, seed, number)];
    if (!base->task.shared) return;
    double *other = taut_malloc((size_t)base->task.d * sizeof *other);
    TAUT_CHECK(other, "no memory for one image");
    const int32_t second = label[drawn(other, s, &how, seed, number + m->count[TAUT_TRAIN] / 3 + 1)];
    const double first = taut_augment_mix(to.reals, other, m->frame, &s->augment,
                                          taut_rng_key(seed, TAUT_RNG_AUGMENT, (uint64_t)number));
    free(other);
    for (int64_t c = 0; c < base->task.answers; c++) to.share[c] = 0;
    to.share[*to.target] += first;
    to.share[second] += 1 - first;
    if (to.share[second] > to.share[*to.target]) *to.target = second;
}

static void images_free(taut_source *base)
{
    taut_images_free(((source *)base)->images);
    free(base);
}

static const taut_source_ops images_ops = { images_count, images_get, images_draw, images_free };

taut_status taut_source_images(taut_source **out, taut_images *images, const taut_augment *augment)
{
    source *s = taut_calloc(1, sizeof *s);
    if (!s) {
        taut_images_free(images);
        return taut_no_memory("images");
    }
    *s = (source){ .images = images, .augment = *augment };
    s->base.ops = &images_ops;
    s->base.task = (taut_task){ .t = 1,
                                .d = taut_frame_len(images->frame),
                                .asked = 1,
                                .answers = images->classes,
                                .shared = taut_augment_mixes(augment) };
    *out = &s->base;
    return TAUT_OK;
}
