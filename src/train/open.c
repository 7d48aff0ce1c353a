/* Which source a model trains on: what its architecture reads decides. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/images.h"
#include "data/text.h"
#include "train/recipe.h"

taut_status taut_recipe_give(taut_config *cfg, const char *key, const char *value)
{
    char *line = taut_malloc(strlen(key) + strlen(value) + 2);
    if (!line) return taut_no_memory(key);
    sprintf(line, "%s=%s", key, value);
    const taut_status s = taut_config_fill(cfg, line);
    free(line);
    return s;
}

taut_status taut_recipe_nothing(const taut_data_spec *d)
{
    return taut_fail(TAUT_BAD_DATA, "%s: nothing is left to train on: data.val_fraction = %g of it validates",
                     d->source, d->val_fraction);
}

static taut_images_spec images_spec(const taut_data_spec *d)
{
    return (taut_images_spec){ d->source, d->length, d->val_fraction, d->seed, d->side, d->hold_out };
}

static taut_status describe_images(taut_config *cfg, taut_frame f, int64_t classes, const char *mean, const char *std,
                                   const char *names)
{
    const struct {
        const char *key;
        int64_t value;
    } number[] = { { "model.image_height", f.height },
                   { "model.image_width", f.width },
                   { "model.image_channels", f.channels },
                   { "model.classes", classes } };
    const char *const text[][2] = { { "model.pixel_mean", mean },
                                    { "model.pixel_std", std },
                                    { "data.class_names", names } };
    char value[32];
    taut_status s = TAUT_OK;
    for (int i = 0; !s && i < 4; i++) {
        snprintf(value, sizeof value, "%lld", (long long)number[i].value);
        s = taut_recipe_give(cfg, number[i].key, value);
    }
    for (int i = 0; !s && i < 3; i++)
        if (text[i][1]) s = taut_recipe_give(cfg, text[i][0], text[i][1]);
    return s;
}

/* Images that taut does not know by name are looked at, unless the recipe says everything itself. */
static taut_status look_at_images(taut_config *cfg)
{
    static const char *const keys[] = { "image_height", "image_width", "image_channels",
                                        "classes",      "pixel_mean",  "pixel_std" };
    taut_data_spec d;
    taut_images *images = NULL;
    double moment[2][TAUT_CHANNELS];
    char key[64], text[2][128] = { "", "" };
    bool said = true;
    for (int i = 0; i < 6 && said; i++) {
        snprintf(key, sizeof key, "model.%s", keys[i]);
        said = taut_config_has(cfg, key);
    }
    if (said) return TAUT_OK;
    taut_data_spec_read(&d, cfg);
    const taut_images_spec spec = images_spec(&d);
    taut_status s = taut_images_open(&images, &spec);
    if (s) return s;
    if (images->count[TAUT_TRAIN] == 0) {
        taut_images_free(images);
        return taut_recipe_nothing(&d);
    }
    taut_images_moments(images, moment[0], moment[1]);
    for (int64_t c = 0; c < images->frame.channels; c++)
        for (int i = 0; i < 2; i++) {
            const double shown = i ? fmax(moment[i][c], 1e-3) : moment[i][c]; /* a channel without contrast */
            snprintf(text[i] + strlen(text[i]), 24, "%s%.4f", c ? " " : "", shown);
        }
    s = describe_images(cfg, images->frame, images->classes, text[0], text[1], images->names);
    taut_images_free(images);
    return s;
}

/* A set of images describes itself, so that the resolved recipe, and with it the model's file, holds all that is needed to read
 * it again. */
taut_status taut_recipe_defaults(taut_config *cfg)
{
    const int what = taut_config_choice(cfg, "model.arch", taut_arch_names, TAUT_ARCH_GPT);
    if (what == TAUT_ARCH_FORECASTER) return taut_recipe_series_defaults(cfg);
    if (what == TAUT_ARCH_CLASSIFIER) return taut_labelled_defaults(cfg);
    if (!taut_arch_reads_images((taut_arch)what)) return TAUT_OK;
    const char *source = taut_config_text(cfg, "data.source", "brackets");
    const taut_known_images *k = taut_images_known(source);
    if (!k) return taut_config_has(cfg, "data.source") ? look_at_images(cfg) : TAUT_OK;
    char length[32];
    snprintf(length, sizeof length, "%lld", (long long)k->length);
    const taut_status s = k->length ? taut_recipe_give(cfg, "data.length", length) : TAUT_OK;
    return s ? s : describe_images(cfg, k->frame, k->classes, k->mean, k->std, NULL);
}

static taut_status open_text(taut_source **out, const taut_data_spec *d, const taut_model_spec *m,
                             const taut_vocab *given)
{
    taut_text *text = NULL;
    const taut_status s = taut_text_open(&text, d->source, d->tokens, d->val_fraction, given, d->length, d->seed);
    if (s) return s;
    if (!given && taut_text_check(text, m->context)) {
        taut_text_free(text);
        return taut_fail(TAUT_BAD_DATA, "%s: %s", d->source, taut_last_error());
    }
    const bool hides = m->arch == TAUT_ARCH_ENCODER && !m->headless; /* features predict no hidden token */
    const taut_status made = taut_source_text(out, text, m->context, hides ? d->mask_rate : 0);
    if (made || d->rows == 0) return made;
    taut_task *task = &(*out)->task;
    if (d->rows >= task->tokens) {
        task->tokens = task->answers = d->rows;
        return TAUT_OK;
    }
    const int64_t need = task->tokens;
    taut_source_free(*out);
    *out = NULL;
    return taut_fail(TAUT_BAD_CONFIG, "data.rows = %lld is less than the %lld tokens of %s", (long long)d->rows,
                     (long long)need, d->source);
}

static taut_status open_images(taut_source **out, const taut_data_spec *d, const taut_model_spec *m,
                               const taut_vocab *given)
{
    (void)given;
    taut_images *images = NULL;
    const taut_pixels_spec *i = &m->image;
    const taut_images_spec spec = images_spec(d);
    if (strcmp(d->source, "none") == 0) /* a model that was converted */
        return taut_fail(TAUT_BAD_DATA, "this model names no images of its own: give some, as --data NAME");
    taut_status s = taut_images_open(&images, &spec);
    if (s) return s;
    s = taut_images_match(images, d->class_names);
    if (s) {
        taut_images_free(images);
        return taut_fail(s, "%s: %s", d->source, taut_last_error());
    }
    const taut_frame f = images->frame;
    const int64_t classes = images->classes;
    const bool mixes = d->augment.mixup > 0 || d->augment.cutmix > 0;
    const bool same = f.height == i->height && f.width == i->width && f.channels == i->channels;
    if (same && classes <= m->classes && (!mixes || m->classes <= taut_frame_len(f))) {
        images->classes = m->classes;
        return taut_source_images(out, images, &d->augment);
    }
    taut_images_free(images);
    return taut_fail(TAUT_BAD_DATA,
                     "%s: images of %lld x %lld x %lld in %lld classes; the model reads %lld x %lld x %lld "
                     "in %lld",
                     d->source, (long long)f.height, (long long)f.width, (long long)f.channels, (long long)classes,
                     (long long)i->height, (long long)i->width, (long long)i->channels, (long long)m->classes);
}

taut_status taut_recipe_source(taut_source **out, const taut_data_spec *d, const taut_model_spec *m,
                               const taut_vocab *given)
{
    if (m->arch == TAUT_ARCH_FORECASTER) return taut_recipe_series_source(out, d, m);
    if (m->arch == TAUT_ARCH_CLASSIFIER) return taut_labelled_source(out, d, m, given);
    return (taut_arch_reads_images(m->arch) ? open_images : open_text)(out, d, m, given);
}
