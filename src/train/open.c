/* Which source a model trains on: what its architecture reads decides. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/images.h"
#include "data/series.h"
#include "data/text.h"
#include "train/recipe.h"

static taut_series_spec series_spec(const taut_data_spec *d)
{
    return (taut_series_spec){ d->source, d->length, d->seed, d->target, d->full };
}

/* A series says how many columns and time features its rows have. */
static taut_status series_defaults(taut_config *cfg)
{
    taut_data_spec d;
    taut_series *series = NULL;
    char line[2][96];
    taut_status s = taut_config_fill(cfg, "data.source=waves");
    if (!s) s = taut_config_fill(cfg, "data.length=4000");
    if (s || (taut_config_has(cfg, "model.columns") && taut_config_has(cfg, "model.marks"))) return s;
    taut_data_spec_read(&d, cfg);
    const taut_series_spec spec = series_spec(&d);
    s = taut_series_open(&series, &spec);
    if (s) return s;
    snprintf(line[0], sizeof line[0], "model.columns=%d", (int)series->cols);
    snprintf(line[1], sizeof line[1], "model.marks=%d", (int)series->marks);
    taut_series_free(series);
    for (int i = 0; !s && i < 2; i++) s = taut_config_fill(cfg, line[i]);
    return s;
}

static taut_images_spec images_spec(const taut_data_spec *d)
{
    return (taut_images_spec){ d->source, d->length, d->val_fraction, d->seed, d->side };
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
    char line[16384];
    taut_status s = TAUT_OK;
    for (int i = 0; !s && i < 4; i++) {
        snprintf(line, sizeof line, "%s=%lld", number[i].key, (long long)number[i].value);
        s = taut_config_fill(cfg, line);
    }
    for (int i = 0; !s && i < 3; i++) {
        if (!text[i][1] || strlen(text[i][1]) > sizeof line - 64) continue; /* names without end: then they have none */
        snprintf(line, sizeof line, "%s=%s", text[i][0], text[i][1]);
        s = taut_config_fill(cfg, line);
    }
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
    if (what == TAUT_ARCH_FORECASTER) return series_defaults(cfg);
    if (!taut_arch_reads_images((taut_arch)what)) return TAUT_OK;
    const char *source = taut_config_text(cfg, "data.source", "brackets");
    const taut_known_images *k = taut_images_known(source);
    if (!k) return taut_config_has(cfg, "data.source") ? look_at_images(cfg) : TAUT_OK;
    char length[64];
    snprintf(length, sizeof length, "data.length=%lld", (long long)k->length);
    const taut_status s = k->length ? taut_config_fill(cfg, length) : TAUT_OK;
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
    return taut_source_text(out, text, m->context, m->arch == TAUT_ARCH_ENCODER ? d->mask_rate : 0);
}

static taut_status open_images(taut_source **out, const taut_data_spec *d, const taut_model_spec *m,
                               const taut_vocab *given)
{
    (void)given;
    taut_images *images = NULL;
    const taut_pixels_spec *i = &m->image;
    const taut_images_spec spec = images_spec(d);
    const taut_status s = taut_images_open(&images, &spec);
    if (s) return s;
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

static taut_status open_series(taut_source **out, const taut_data_spec *d, const taut_model_spec *m,
                               const taut_vocab *given)
{
    (void)given;
    taut_series *series = NULL;
    const taut_series_spec spec = series_spec(d);
    const taut_status s = taut_series_open(&series, &spec);
    if (s) return s;
    const int64_t cols = series->cols, marks = series->marks;
    if (cols == m->columns && marks == m->marks) return taut_source_series(out, series, m->seq, m->label, m->ahead);
    taut_series_free(series);
    return taut_fail(TAUT_BAD_DATA, "%s: rows of %lld columns and %lld time features; the model reads %lld and %lld",
                     d->source, (long long)cols, (long long)marks, (long long)m->columns, (long long)m->marks);
}

taut_status taut_recipe_source(taut_source **out, const taut_data_spec *d, const taut_model_spec *m,
                               const taut_vocab *given)
{
    if (m->arch == TAUT_ARCH_FORECASTER) return open_series(out, d, m, given);
    return (taut_arch_reads_images(m->arch) ? open_images : open_text)(out, d, m, given);
}
